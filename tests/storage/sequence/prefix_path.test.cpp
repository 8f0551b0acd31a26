// SPDX-License-Identifier: Apache-2.0
// Paths over an index, without blocks and without a cache: what each operation does to units, pins and lengths.
#include <quire/core/types.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/run_tree.hpp>
#include <quire/sequence/prefix_path.hpp>
#include <quire/sequence/sequence_lengths.hpp>

#include "storage/sequence/path_fixture.hpp"
#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::head;
using quire_test::joined;
using quire_test::path_workshop;
using quire_test::settled_sums;
using quire_test::text;
using quire_test::traveller;

auto units_of(traveller const& s) -> std::vector<unit_id> { return {s.path.units().begin(), s.path.units().end()}; }
} // namespace

#define QUIRE_TEST_WORKSHOPS path_workshop<run_tree<>>, path_workshop<flat_index<>>

TEMPLATE_TEST_CASE("S26: taking units makes room and changes no length, and giving them back undoes it", "",
                   QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = traveller{};
  w.attach(s, ascending(9));
  CHECK(s.path.units_for(w.index, w.unit, s.at, 9) == 3);
  auto const before = w.index.free_units();
  CHECK_FALSE(static_cast<bool>(w.take(s, 9))); // nothing was copied
  CHECK(s.at.committed == 0);
  CHECK(s.path.size() == 3);
  CHECK(s.path.pinned() == 0);
  CHECK(w.index.free_units().value() == before.value() - 3);
  w.check({&s});
  s.path.give_back(w.index, w.unit, s.at, unit_id::none());
  CHECK(s.path.size() == 0);
  CHECK(w.index.free_units() == before);
  w.check({&s});
  w.drop(s);
}

TEMPLATE_TEST_CASE("S26: commit advances over what was taken and publishes what is full", "", QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = traveller{};
  w.attach(s, ascending(9));
  CHECK(w.append(s, ascending(9)) == settled_sums{.published = 2});
  CHECK(s.at.committed == 9);
  CHECK(s.path.pinned() == 2);
  CHECK(s.path.shared_until(w.unit) == 8);
  CHECK(w.index.published(s.path.units()[1]));
  CHECK_FALSE(w.index.published(s.path.units()[2]));
  for (std::uint32_t p = 0; p < 9; ++p) { CHECK(s.path.token(w.index, w.unit, p) == ascending(9)[p]); }
  w.check({&s});
  CHECK(w.append(s, {10, 11, 12}) == settled_sums{.published = 1});
  w.check({&s});
  w.drop(s);
  CHECK(w.index.evictable() == unit_count{3});
  CHECK(w.index.free_units() == unit_count{TestType::units - 3});
}

TEMPLATE_TEST_CASE("S22: attach goes on at P - 1 at most, and its write is skipped or copied", "",
                   QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = traveller{};
  w.attach(s, ascending(8));
  w.append(s, ascending(8));
  w.drop(s);
  for (auto const skip : {true, false}) {
    auto t = traveller{};
    w.attach(t, ascending(8), skip);
    CHECK(t.at.committed == 7);
    CHECK(t.path.size() == 2);
    CHECK(t.path.pinned() == 2);
    CHECK((t.at.skips() == 1) == skip);
    CHECK(t.path.must_copy(w.index, w.unit, t.at) == !skip);
    CHECK(t.path.units_for(w.index, w.unit, t.at, 1) == (skip ? 0U : 1U));
    CHECK(t.path.units_for(w.index, w.unit, t.at, 2) == (skip ? 1U : 2U));
    auto const shared = t.path.units()[1];
    auto const source = w.take(t, 1);
    CHECK((source == shared) == !skip);
    CHECK((t.path.units()[1] == shared) == skip);
    // the copy holds the prompt's token again: it takes the place of what nobody uses any more
    CHECK(w.commit(t, {8}, source) == (skip ? settled_sums{} : settled_sums{.idle_twins = 1}));
    CHECK((t.path.units()[1] == shared) == skip);
    w.check({&t});
    w.drop(t);
    CHECK(w.index.evictable() == unit_count{2});
  }
}

TEMPLATE_TEST_CASE("S22: a copy of a published unit that goes on with another token is a unit of its own", "",
                   QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = traveller{};
  auto t = traveller{};
  w.attach(s, ascending(8));
  w.append(s, ascending(8));
  w.attach(t, ascending(8), false);
  auto const source = w.take(t, 1);
  CHECK(t.path.pinned() == 2); // until the copy is done its source is protected
  CHECK(w.commit(t, {99}, source) == settled_sums{.published = 1});
  CHECK(t.path.units()[0] == s.path.units()[0]);
  CHECK_FALSE(t.path.units()[1] == s.path.units()[1]);
  for (std::uint32_t p = 4; p < 7; ++p) { CHECK(t.path.token(w.index, w.unit, p) == ascending(8)[p]); }
  CHECK(t.path.token(w.index, w.unit, 7) == 99);
  CHECK(s.path.token(w.index, w.unit, 7) == 8);
  w.check({&s, &t});
  w.drop(s);
  w.drop(t);
}

TEMPLATE_TEST_CASE("S23: giving back after a copy was taken restores the path", "", QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = traveller{};
  auto reader = traveller{};
  w.attach(s, ascending(6));
  w.append(s, ascending(6));
  w.fork(s, reader, 6);
  auto const before = units_of(reader);
  auto const free = w.index.free_units();
  CHECK(reader.path.must_copy(w.index, w.unit, reader.at));
  CHECK_FALSE(s.path.must_copy(w.index, w.unit, s.at)); // the writer keeps its unit
  auto const source = w.take(reader, 3);
  CHECK(source == before[1]);
  CHECK_FALSE(reader.path.units()[1] == before[1]);
  CHECK(reader.path.size() == 3);
  CHECK(w.index.tokens(reader.path.units()[1])[1] == 6); // the valid front came along
  CHECK(w.index.holders(before[1]) == 2);
  reader.path.give_back(w.index, w.unit, reader.at, source);
  CHECK(units_of(reader) == before);
  CHECK(w.index.free_units() == free);
  w.check({&s, &reader});
  w.drop(reader);
  w.drop(s);
}

TEMPLATE_TEST_CASE("S23: after its copy a reader writes on, and the last one alone needs none", "",
                   QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = traveller{};
  auto a = traveller{};
  auto b = traveller{};
  w.attach(s, ascending(6));
  w.append(s, ascending(6));
  w.fork(s, a, 6);
  w.fork(s, b, 5);
  CHECK(w.index.holders(s.path.units()[1]) == 3);
  CHECK(w.append(a, {70}) == settled_sums{});
  CHECK(w.index.holders(s.path.units()[1]) == 2);
  CHECK_FALSE(a.path.must_copy(w.index, w.unit, a.at)); // its own now
  w.drop(s);
  CHECK(w.index.holders(b.path.units()[1]) == 1);
  CHECK_FALSE(b.path.must_copy(w.index, w.unit, b.at)); // nobody else reads it
  CHECK(w.append(b, {80, 81, 82}) == settled_sums{.published = 1});
  CHECK(w.append(a, {71}) == settled_sums{.published = 1});
  CHECK(a.path.token(w.index, w.unit, 5) == 6);
  CHECK(b.path.token(w.index, w.unit, 5) == 80);
  w.check({&a, &b});
  w.drop(a);
  w.drop(b);
}

TEMPLATE_TEST_CASE("S23: what one holder of a unit has filled and published, the others adopt", "",
                   QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = traveller{};
  auto reader = traveller{};
  w.attach(s, ascending(7));
  w.append(s, ascending(7));
  w.fork(s, reader, 7);
  CHECK(w.append(s, {8, 9}) == settled_sums{.published = 1}); // the unit that both hold
  CHECK(w.index.published(reader.path.units()[1]));
  CHECK(reader.path.pinned() == 1);
  w.check({&s, &reader});
  CHECK(reader.path.must_copy(w.index, w.unit, reader.at)); // full and immutable
  CHECK(w.settle(reader, false) == settled_sums{.adopted = 1});
  CHECK(reader.path.pinned() == 2);
  w.check({&s, &reader});
  w.drop(s);
  CHECK(w.index.evictable() == unit_count{0}); // the reader pins it
  w.check({&reader});
  w.drop(reader);
  CHECK(w.index.evictable() == unit_count{2});
}

TEMPLATE_TEST_CASE("case 29: the own unit takes the place of an equal one that is idle, and gives way to one in use",
                   "", QUIRE_TEST_WORKSHOPS) {
  for (auto const busy : {false, true}) {
    auto w = TestType{};
    auto a = traveller{};
    auto b = traveller{};
    w.attach(a, ascending(13));
    w.attach(b, ascending(13)); // nothing is there yet
    w.append(a, ascending(13));
    auto const there = units_of(a);
    if (!busy) { w.drop(a); }
    auto const free = w.index.free_units().value();
    CHECK(w.append(b, ascending(13)) == (busy ? settled_sums{.busy_twins = 3} : settled_sums{.idle_twins = 3}));
    for (std::size_t u = 0; u < 3; ++u) { CHECK((b.path.units()[u] == there[u]) == busy); }
    CHECK(w.index.free_units().value() == free - 1); // only the partial last unit is b's own
    w.check({&a, &b});
    w.drop(b);
    w.drop(a);
    CHECK(w.index.cached() == unit_count{3});
  }
}

TEMPLATE_TEST_CASE("case 29: an equal unit may end where the own path goes on", "", QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto a = traveller{};
  auto b = traveller{};
  w.attach(a, ascending(8));
  w.attach(b, ascending(12));
  w.append(a, ascending(8));
  CHECK(w.append(b, ascending(12)) == settled_sums{.published = 1, .busy_twins = 2});
  CHECK(b.path.pinned() == 3);
  w.check({&a, &b});
  w.drop(a);
  w.drop(b);
}

TEMPLATE_TEST_CASE("S26: nothing is published beyond what may be, and what is behind it waits", "",
                   QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = traveller{};
  w.attach(s, ascending(16));
  s.path.publish_until(9);
  CHECK(s.path.publish_end() == 9);
  CHECK(w.append(s, ascending(16)) == settled_sums{.published = 2});
  s.path.publish_until(prefix_path::publish_all);
  CHECK(w.settle(s, false) == settled_sums{});
  CHECK(w.settle(s) == settled_sums{.published = 2});
  w.check({&s});
  w.drop(s);
}

TEMPLATE_TEST_CASE("case 17: a reader that may not publish still follows one that did", "", QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = traveller{};
  auto child = traveller{};
  w.attach(s, ascending(6));
  s.path.publish_until(0);
  w.append(s, ascending(12));
  w.fork(s, child, 12); // both hold three private units
  child.path.publish_until(prefix_path::publish_all);
  CHECK(w.settle(child) == settled_sums{.published = 3});
  w.check({&s, &child});
  CHECK(w.settle(s, false) == settled_sums{.adopted = 3});
  w.drop(child);
  w.drop(s);
  CHECK(w.index.evictable() == unit_count{3});
}

TEMPLATE_TEST_CASE("B7: a fork has the length asked for and shares every unit", "", QUIRE_TEST_WORKSHOPS) {
  for (std::uint32_t at = 0; at <= 10; ++at) {
    auto w = TestType{};
    auto s = traveller{};
    auto child = traveller{};
    w.attach(s, ascending(10));
    w.append(s, ascending(10));
    auto const free = w.index.free_units();
    w.fork(s, child, at);
    CHECK(w.index.free_units() == free);
    CHECK(child.path.size() == (at + 3) / 4);
    CHECK(child.path.pinned() == std::min(2U, (at + 3) / 4));
    CHECK(child.path.forked());
    CHECK(s.path.forked());
    for (std::uint32_t u = 0; u < child.path.size(); ++u) { CHECK(child.path.units()[u] == s.path.units()[u]); }
    w.check({&s, &child});
    w.drop(s);
    w.check({&child});
    w.append(child, {99});
    CHECK(child.path.token(w.index, w.unit, at) == 99);
    for (std::uint32_t p = 0; p < at; ++p) { CHECK(child.path.token(w.index, w.unit, p) == ascending(10)[p]); }
    w.check({&child});
    w.drop(child);
    CHECK(w.index.free_units().value() + w.index.cached().value() == TestType::units);
  }
}

TEMPLATE_TEST_CASE("B6: would_release foretells which units a truncation makes evictable", "", QUIRE_TEST_WORKSHOPS) {
  for (std::uint32_t length = 0; length < 15; ++length) {
    for (auto const forked : {0U, 5U, 9U, 15U}) {
      auto w = TestType{};
      auto s = traveller{};
      auto other = traveller{};
      w.attach(s, ascending(15));
      w.append(s, ascending(15));
      w.fork(s, other, forked);
      auto const units = w.unit.blocks(length);
      auto alone = std::uint32_t{0}; // private ones that go with it
      for (auto u = std::max(units, s.path.pinned()); u < s.path.size(); ++u) {
        alone += w.index.holders(s.path.units()[u]) == 1 ? 1U : 0U;
      }
      auto const available = w.available();
      auto const told = s.path.would_release(w.index, units).value();
      w.truncate(s, length);
      CAPTURE(length, forked);
      CHECK(w.available() == available + told + alone);
      CHECK(s.path.size() == units);
      CHECK(s.at.committed == length);
      w.check({&s, &other});
      w.append(s, {77, 78});
      w.check({&s, &other});
      w.drop(s);
      w.drop(other);
      CHECK(w.index.free_units().value() + w.index.cached().value() == TestType::units);
    }
  }
}

TEMPLATE_TEST_CASE("case 79: after a cut into a shared unit the sequence is a reader of it, until it is alone", "",
                   QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = traveller{};
  auto other = traveller{};
  w.attach(s, ascending(7));
  w.append(s, ascending(7));
  CHECK(s.path.owns_tail());
  w.fork(s, other, 7);
  CHECK_FALSE(other.path.owns_tail());
  w.truncate(s, 6);
  CHECK_FALSE(s.path.owns_tail());
  CHECK(s.path.must_copy(w.index, w.unit, s.at));
  w.drop(other);
  CHECK_FALSE(s.path.must_copy(w.index, w.unit, s.at));
  w.truncate(s, 5);
  CHECK(s.path.owns_tail());
  s.path.disown_tail(); // a group says that others read its last block
  CHECK_FALSE(s.path.owns_tail());
  w.truncate(s, 3); // into what is published: nothing unpublishes
  CHECK(w.index.published(s.path.units()[0]));
  CHECK(s.path.must_copy(w.index, w.unit, s.at));
  w.check({&s});
  w.drop(s);
}

TEMPLATE_TEST_CASE("S26: drop leaves an empty path, twins and holds included", "", QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto a = traveller{};
  auto b = traveller{};
  auto c = traveller{};
  w.attach(a, ascending(9));
  w.attach(b, ascending(9));
  w.append(a, ascending(9));
  CHECK(w.append(b, ascending(9)).busy_twins == 2);
  w.fork(b, c, 9);
  w.drop(b);
  CHECK(c.path.token(w.index, w.unit, 4) == 5);
  w.check({&a, &b, &c});
  w.drop(c);
  w.drop(a);
  for (auto const* s : {&a, &b, &c}) {
    CHECK(s->path.size() == 0);
    CHECK(s->path.pinned() == 0);
    CHECK_FALSE(s->path.forked());
    CHECK_FALSE(static_cast<bool>(s->path.pin()));
  }
  CHECK(w.index.free_units() == unit_count{TestType::units - 2});
  CHECK(w.index.evictable() == unit_count{2});
}

TEMPLATE_TEST_CASE("B17: ids that come later are written then, and publish what is full", "", QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = traveller{};
  w.attach(s, ascending(9));
  w.take(s, 9);
  CHECK(w.commit(s, ascending(9), {}, false) == settled_sums{});
  CHECK(s.at.known == 0);
  auto const resolve = [&](text const& tokens) {
    s.path.keep_tokens(w.index, w.unit, s.at.known, tokens);
    s.at.known += static_cast<std::uint32_t>(tokens.size());
    return w.settle(s);
  };
  CHECK(resolve(ascending(3)) == settled_sums{});
  CHECK(resolve(ascending(5, 4)) == settled_sums{.published = 2});
  w.check({&s});
  w.drop(s);
  auto t = traveller{};
  w.attach(t, ascending(9));
  CHECK(t.at.committed == 8);
  w.drop(t);
}

TEST_CASE("prefix_path: nothing allocates below what is reserved") {
  auto w = path_workshop<run_tree<>>{};
  auto s = traveller{};
  auto child = traveller{};
  w.attach(s, ascending(9));
  child.path.reserve(path_workshop<run_tree<>>::units);
  auto const prompt = ascending(30);
  auto const more = text{7};
  CHECK(quire_test::allocations_of([&] {
          w.take(s, 30);
          s.path.keep_tokens(w.index, w.unit, 0, prompt);
          s.path.own_tail();
          s.at.committed = s.at.known = 30;
          while (!s.path.settle(w.index, w.unit, s.at).empty()) {}
          s.path.fork(w.index, child.path, 8);
          child.at = {.committed = 30, .known = 30, .skip_until = 0};
          auto const source = w.take(child, 1);
          w.release(child.path.leave_source(w.index, 7, source));
          w.release(s.path.truncate(w.index, 3));
          w.release(child.path.drop(w.index));
          w.release(s.path.drop(w.index));
        }) == 0);
}

TEMPLATE_TEST_CASE("S26: any sequence of operations keeps every text and every count", "", QUIRE_TEST_WORKSHOPS) {
  struct request : traveller {
    text tokens;
  };
  for (auto seed = 1U; seed <= 40; ++seed) {
    auto w = TestType{};
    auto random = std::mt19937{seed};
    auto const below = [&](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
    auto live = std::vector<request>(5);
    auto const few = [&](std::uint32_t n) { // few texts, so that many are equal
      auto out = text(n);
      for (auto& t : out) { t = static_cast<token_id>(below(2)); }
      return out;
    };
    for (auto round = 0; round < 120; ++round) {
      auto& r = live[below(live.size())];
      CAPTURE(seed, round);
      switch (auto const open = static_cast<bool>(r.path.pin()); open ? 1 + below(5) : 0) {
      case 0: {
        auto const prompt = few(1 + below(14));
        w.attach(r, prompt, below(2) == 0);
        r.tokens = head(prompt, r.at.committed);
        break;
      }
      case 1:
      case 2: {
        auto tokens = few(1 + below(5));
        for (std::uint32_t i = 0; i < std::min<std::size_t>(tokens.size(), r.at.skips()); ++i) { // what is stored there
          tokens[i] = r.path.token(w.index, w.unit, r.at.committed + i);
        }
        auto const q = static_cast<std::uint32_t>(tokens.size());
        auto const units = r.path.units_for(w.index, w.unit, r.at, q);
        auto evicted = std::vector<unit_id>(units);
        if (units > w.index.free_units().value() && w.index.evict(evicted).value() == 0) { break; }
        if (units > w.index.free_units().value() || r.tokens.size() + q > 100) { break; }
        auto const free = w.index.free_units().value();
        auto const source = w.take(r, q);
        REQUIRE(w.index.free_units().value() == free - units);
        if (below(4) == 0) {
          r.path.give_back(w.index, w.unit, r.at, source);
          REQUIRE(w.index.free_units().value() == free);
          break;
        }
        w.commit(r, tokens, source);
        r.tokens = joined(r.tokens, tokens);
        break;
      }
      case 3: {
        auto& child = live[below(live.size())];
        if (child.path.pin() || &child == &r) { break; }
        auto const length = below(r.tokens.size() + 1);
        w.fork(r, child, length);
        child.tokens = head(r.tokens, length);
        break;
      }
      case 4: {
        auto const length = below(r.tokens.size() + 1);
        w.truncate(r, length);
        r.tokens.resize(length);
        break;
      }
      default:
        w.drop(r);
        r.tokens.clear();
        break;
      }
      w.check({&live[0], &live[1], &live[2], &live[3], &live[4]});
      for (auto const& each : live) {
        REQUIRE(each.at.committed == each.tokens.size());
        for (std::uint32_t p = 0; p < each.tokens.size(); ++p) {
          REQUIRE(each.path.token(w.index, w.unit, p) == each.tokens[p]);
        }
      }
    }
    for (auto& r : live) { w.drop(r); }
    CHECK(w.index.free_units().value() + w.index.evictable().value() == TestType::units);
  }
}
