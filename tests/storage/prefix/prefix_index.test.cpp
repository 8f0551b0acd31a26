// SPDX-License-Identifier: Apache-2.0
// What every prefix index does, for both models and for digests from perfect to useless.
#include <quire/core/config_error.hpp>
#include <quire/identity/constant_digest.hpp>
#include <quire/prefix/concepts.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/lfu_eviction.hpp>
#include <quire/prefix/run_tree.hpp>

#include "isolation/truncated_digest.hpp"
#include "storage/prefix/index_fixture.hpp"
#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"
#include "support/throwing_contract.hpp"

#include <array>
#include <cstdint>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::contract_violation;
using quire_test::head;
using quire_test::joined;
using quire_test::shelf;
using quire_test::text;
using quire_test::truncated_digest;
using list = std::vector<std::uint32_t>;

// --- the concept ---------------------------------------------------------------------------------------------------
// An index in which expression number Missing is left out, Wrong returns another type, or Throws is not noexcept.
struct other {};
template <int Missing, int Wrong = -1, int Throws = -1>
struct candidate {
  template <int N, class T>
  using returns = std::conditional_t<N == Wrong, other, T>;
  using digest_policy_type = xxh3_128_digest;
  candidate(unit_count, token_count, xxh3_128_digest)
    requires(Missing != 0);
  auto open_root(std::span<std::byte const>) -> returns<1, node_id>
    requires(Missing != 1);
  auto share_unit(unit_id) -> returns<2, void>
    requires(Missing != 2);
  auto drop_unit(unit_id) -> returns<3, void>
    requires(Missing != 3);
  auto drop_units(std::span<unit_id const>) -> returns<31, void>
    requires(Missing != 31);
  auto holders(unit_id) const -> returns<4, std::uint32_t>
    requires(Missing != 4);
  auto pin(prefix_match const&) -> returns<5, prefix_pin>
    requires(Missing != 5);
  auto pin_back(prefix_pin const&, unit_count) -> returns<6, prefix_pin>
    requires(Missing != 6);
  auto publish(prefix_pin&, std::span<unit_id const>) -> returns<7, publish_result>
    requires(Missing != 7);
  auto adopt(prefix_pin&, unit_id) -> returns<8, void>
    requires(Missing != 8);
  auto release(prefix_pin&&) -> returns<9, void>
    requires(Missing != 9);
  template <class Sink>
  auto remove(std::span<std::uint8_t>, Sink) -> returns<10, void>
    requires(Missing != 10);
  template <class Visit>
  auto for_each_node(Visit) const -> returns<11, void>
    requires(Missing != 11);
  auto audit(std::span<std::uint32_t const>) const -> returns<12, std::string>
    requires(Missing != 12);
  auto close_roots() noexcept(Throws != 30) -> returns<30, void>
    requires(Missing != 30);
  auto close_root(node_id) noexcept(Throws != 13) -> returns<13, void>
    requires(Missing != 13);
  auto take_unit() noexcept(Throws != 14) -> returns<14, unit_id>
    requires(Missing != 14);
  auto published(unit_id) const noexcept(Throws != 15) -> returns<15, bool>
    requires(Missing != 15);
  auto free_units() const noexcept(Throws != 16) -> returns<16, unit_count>
    requires(Missing != 16);
  auto capacity() const noexcept(Throws != 17) -> returns<17, unit_count>
    requires(Missing != 17);
  auto match(node_id, std::span<token_id const>, std::span<unit_id>) const noexcept(Throws != 18)
      -> returns<18, prefix_match>
    requires(Missing != 18);
  auto would_pin(prefix_match const&) const noexcept(Throws != 19) -> returns<19, unit_count>
    requires(Missing != 19);
  auto would_release(prefix_pin const&, unit_count) const noexcept(Throws != 20) -> returns<20, unit_count>
    requires(Missing != 20);
  auto evict(std::span<unit_id>) noexcept(Throws != 21) -> returns<21, unit_count>
    requires(Missing != 21);
  auto tokens(unit_id) noexcept(Throws != 22) -> returns<22, std::span<token_id>>
    requires(Missing != 22);
  auto tokens(unit_id) const noexcept(Throws != 23) -> returns<23, std::span<token_id const>>
    requires(Missing != 23);
  auto token_at(std::int64_t) noexcept(Throws != 24) -> returns<24, token_id&>
    requires(Missing != 24);
  auto evictable() const noexcept(Throws != 25) -> returns<25, unit_count>
    requires(Missing != 25);
  auto cached() const noexcept(Throws != 26) -> returns<26, unit_count>
    requires(Missing != 26);
  auto hash_collisions() const noexcept(Throws != 27) -> returns<27, std::uint64_t>
    requires(Missing != 27);
  auto metadata_bytes() const noexcept(Throws != 28) -> returns<28, byte_count>
    requires(Missing != 28);
  auto eviction() noexcept(Throws != 29) -> lru_eviction& // whatever the policy is
      requires(Missing != 29);
};
static_assert(prefix_index<candidate<-1>>);
static_assert(!prefix_index<int>);
static_assert(!prefix_index<void>);
template <int... N>
constexpr auto missing_refused(std::integer_sequence<int, N...>) -> bool {
  return (!prefix_index<candidate<N>> && ...);
}
template <int... N>
constexpr auto wrong_refused(std::integer_sequence<int, N...>) -> bool {
  return (!prefix_index<candidate<-1, N + 1>> && ...);
}
template <int... N>
constexpr auto throwing_refused(std::integer_sequence<int, N...>) -> bool {
  return (!prefix_index<candidate<-1, -1, N + 13>> && ...);
}
static_assert(missing_refused(std::make_integer_sequence<int, 32>{}));
static_assert(wrong_refused(std::make_integer_sequence<int, 28>{}));
static_assert(!prefix_index<candidate<-1, 30>> && !prefix_index<candidate<-1, 31>>);
static_assert(throwing_refused(std::make_integer_sequence<int, 17>{}));

struct without_digests : candidate<-1> { // whoever holds an index must be able to name what its digests are made by
  using candidate<-1>::candidate;

private:
  using digest_policy_type = xxh3_128_digest;
};
struct match_of_mutable : candidate<-1> {
  using candidate<-1>::candidate;
  auto match(node_id, std::span<token_id const>, std::span<unit_id>) noexcept -> prefix_match;
};
struct published_of_mutable : candidate<-1> {
  using candidate<-1>::candidate;
  auto published(unit_id) noexcept -> bool;
};
struct audit_of_mutable : candidate<-1> {
  using candidate<-1>::candidate;
  auto audit(std::span<std::uint32_t const>) -> std::string;
};
struct publish_of_writable : candidate<-1> {
  using candidate<-1>::candidate;
  auto publish(prefix_pin&, std::span<unit_id>) -> publish_result;
};
struct release_by_reference : candidate<-1> { // would leave a pin to be given back twice
  using candidate<-1>::candidate;
  auto release(prefix_pin&) -> void;
};
static_assert(!prefix_index<without_digests>);
static_assert(!prefix_index<match_of_mutable>);
static_assert(!prefix_index<published_of_mutable>);
static_assert(!prefix_index<audit_of_mutable>);
static_assert(!prefix_index<publish_of_writable>);
static_assert(!prefix_index<release_by_reference>);

static_assert(prefix_index<run_tree<>> && prefix_index<flat_index<>>);
static_assert(!std::is_copy_constructible_v<prefix_pin> && std::is_nothrow_move_constructible_v<prefix_pin>);
} // namespace

#define QUIRE_TEST_INDEXES                                                                                          \
  run_tree<>, flat_index<>, (run_tree<lru_eviction, constant_digest>), (flat_index<lru_eviction, constant_digest>), \
      (run_tree<lru_eviction, truncated_digest>), (flat_index<lru_eviction, truncated_digest>)

TEMPLATE_TEST_CASE("S21: the longest resident prefix of full blocks is found", "", QUIRE_TEST_INDEXES) {
  for (auto const unit : {1U, 2U, 3U, 5U, 16U, 17U}) {
    auto s = shelf<TestType>{64, unit};
    auto const prompt = ascending(6 * unit);
    s.use(prompt);
    CHECK(s.find(prompt) == list{0, 1, 2, 3, 4, 5});
    for (std::size_t n = 0; n <= prompt.size(); ++n) { // shorter
      CHECK(s.find(head(prompt, n)).size() == n / unit);
    }
    for (std::size_t n = 0; n < prompt.size(); ++n) { // one token differs
      auto changed = prompt;
      changed[n] = 0;
      CHECK(s.find(changed).size() == n / unit);
    }
    CHECK(s.find(joined(prompt, ascending(3 * unit, 999))).size() == 6); // longer
  }
}

TEMPLATE_TEST_CASE("S21: the same tokens after another prefix never match", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  s.use({1, 2, 7, 8});
  s.use({1, 2, 9, 9}); // a branch: {7, 8} has an entry of its own
  CHECK(s.find({7, 8}).empty());
  CHECK(s.find({3, 4, 7, 8}).empty());
  s.use({3, 4});
  CHECK(s.find({3, 4, 7, 8}) == list{3});
  s.use({3, 4, 7, 8});
  CHECK(s.find({3, 4, 7, 8}) == list{3, 4}); // its own copy behind its own prefix
  CHECK(s.find({1, 2, 7, 8}) == list{0, 1});
  CHECK(s.find({7, 8, 1, 2}).empty());
}

TEMPLATE_TEST_CASE("S36: the same tokens in another scope never match", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  auto const b = s.open("b");
  s.use({1, 2, 3, 4});
  CHECK(s.find(b, {1, 2, 3, 4}).empty());
  s.release(s.publish(b, {1, 2, 3, 4}));
  CHECK(s.find(b, {1, 2, 3, 4}) == list{2, 3});
  CHECK(s.find({1, 2, 3, 4}) == list{0, 1});
}

TEMPLATE_TEST_CASE("S21: a hundred thousand lookups of texts that are not there find nothing", "",
                   (run_tree<lru_eviction, constant_digest>), (flat_index<lru_eviction, constant_digest>),
                   (run_tree<lru_eviction, truncated_digest>)) {
  auto s = shelf<TestType>{64, 2};
  for (token_id t = 0; t < 64; ++t) { s.use({t, t}); }
  std::size_t found = 0;
  for (token_id a = 0; a < 64; ++a) {
    for (token_id b = 0; b < 64; ++b) { found += s.find({a, b}).size(); }
  }
  CHECK(found == 64); // exactly the pairs that are there
}

TEMPLATE_TEST_CASE("case 110: a look-up stops at the first gap", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  s.use({1, 1, 2, 2, 3, 3});
  auto doomed = std::vector<std::uint8_t>(16);
  doomed[0] = 1; // block 1 of the chain goes, whatever the order of eviction
  auto gone = list{};
  s.index.remove(doomed, [&](unit_id b) { gone.push_back(b.value()); });
  s.audit();
  CHECK(s.find({1, 1, 2, 2, 3, 3}).empty());
  CHECK(std::set<std::uint32_t>(gone.begin(), gone.end()) ==
        std::set<std::uint32_t>{0, 1, 2}); // no child without its parent
  CHECK(s.index.cached() == unit_count{0});
}

TEMPLATE_TEST_CASE("case 118: an empty text and a text shorter than a block match nothing", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 4};
  s.use({1, 2, 3, 4});
  auto out = std::array<unit_id, 4>{};
  for (auto const& short_text : {text{}, text{1}, text{1, 2, 3}}) {
    auto const found = s.index.match(s.root, short_text, out);
    CHECK(found.units == unit_count{0});
    CHECK(found.node == s.root);
    auto pin = s.index.pin(found);
    CHECK(static_cast<bool>(pin)); // the empty prefix is a prefix
    s.index.release(std::move(pin));
  }
  CHECK(s.index.evictable() == unit_count{1});
}

TEMPLATE_TEST_CASE("S21: a match is bounded by the room for its ids", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  s.use(ascending(8));
  auto out = std::array<unit_id, 2>{};
  auto const found = s.index.match(s.root, ascending(8), out);
  CHECK(found.units == unit_count{2});
  CHECK(out[1] == unit_id{1});
}

TEMPLATE_TEST_CASE("S24: pins nest, and the last release makes idle", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  s.use(ascending(8));
  CHECK(s.index.evictable() == unit_count{4});
  auto a = s.pin(ascending(8));
  auto b = s.pin(ascending(4));
  auto c = s.pin(ascending(8));
  CHECK(s.index.evictable() == unit_count{0});
  s.release(std::move(a));
  CHECK_FALSE(static_cast<bool>(a)); // consumed
  CHECK(s.index.evictable() == unit_count{0});
  s.release(std::move(c));
  CHECK(s.index.evictable() == unit_count{2}); // the first two are b's
  s.release(std::move(b));
  CHECK(s.index.evictable() == unit_count{4});
}

TEMPLATE_TEST_CASE("case 36: evicting what a sequence holds takes nothing away", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  auto held = s.publish(ascending(4));
  CHECK(s.evict(10).empty());
  CHECK(s.find(ascending(4)) == list{0, 1});
  s.release(std::move(held));
  CHECK(s.evict(10) == list{1, 0});
}

TEMPLATE_TEST_CASE("S26: publishing what is there already stops at each equal unit and moves the pin onto it", "",
                   QUIRE_TEST_INDEXES) {
  for (auto const in_use : {true, false}) {
    auto s = shelf<TestType>{16, 2};
    auto first = s.publish(ascending(4)); // units 0 1
    if (!in_use) { s.release(std::move(first)); }
    auto pin = s.pin({});
    auto const mine = std::array{s.write({1, 2}), s.write({3, 4}), s.write({5, 6})};
    for (std::size_t i = 0; i < 2; ++i) {
      auto const done = s.publish_units(pin, std::span{mine}.subspan(i));
      s.audit();
      CHECK(done.published == unit_count{in_use ? 0U : 1U});
      auto const there = unit_id{static_cast<std::uint32_t>(i)};
      CHECK(done.existing == (in_use ? there : unit_id::none()));
      CHECK(done.replaced == (in_use ? unit_id::none() : there)); // nobody used it: it gave its place
      if (in_use) {
        CHECK(s.index.holders(mine[i]) == 1); // still the caller's own
        s.index.drop_unit(mine[i]);
      }
    }
    auto const last = s.publish_units(pin, std::span{mine}.subspan(2));
    s.audit();
    CHECK(last.published == unit_count{1}); // later units hang below the existing ones
    CHECK_FALSE(static_cast<bool>(last.existing));
    auto const found = in_use ? list{0, 1, mine[2].value()} : list{mine[0].value(), mine[1].value(), mine[2].value()};
    CHECK(s.find(ascending(6)) == found);
    CHECK(s.index.cached() == unit_count{3}); // no room is taken twice
    CHECK(s.index.evictable() == unit_count{0});
    CHECK(s.index.free_units() == unit_count{13});
    s.release(std::move(pin));
    CHECK(s.index.evictable() == unit_count{in_use ? 1U : 3U});
    if (in_use) { s.release(std::move(first)); }
  }
}

TEMPLATE_TEST_CASE("S26: an equal unit in the middle of others costs one call more", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  s.use(ascending(8)); // 0 1 2 3
  auto pin = s.pin(ascending(2));
  auto const mine = std::array{s.write({9, 9}), s.write({3, 4})};
  auto const done = s.publish_units(pin, mine); // behind {9, 9} nothing is known
  CHECK(done.published == unit_count{2});
  s.audit();
  auto other = s.pin(ascending(2));
  auto const known = s.write({3, 4});
  auto const stopped = s.publish_units(other, std::span{&known, 1});
  CHECK_FALSE(static_cast<bool>(stopped.existing));
  CHECK(stopped.replaced == unit_id{1});
  s.audit();
  CHECK(s.index.evictable() == unit_count{2}); // 2 3; the pin ends right behind 1
  s.release(std::move(pin));
  s.release(std::move(other));
}

TEMPLATE_TEST_CASE("S26: nothing to publish moves nothing", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  auto pin = s.publish(ascending(4));
  auto const node = pin.node();
  auto const done = s.publish_units(pin, {});
  CHECK(done.published == unit_count{0});
  CHECK_FALSE(static_cast<bool>(done.existing));
  CHECK(pin.node() == node);
  s.audit();
  s.release(std::move(pin));
}

TEMPLATE_TEST_CASE("S23: whoever else holds a unit that is published holds its node until he adopts it", "",
                   QUIRE_TEST_INDEXES) {
  for (auto const behind : {0U, 1U}) { // a root, or a path
    auto s = shelf<TestType>{16, 2};
    auto writer = s.publish(head({1, 2}, 2 * std::size_t{behind}));
    auto second = s.pin_back(writer, 0);
    auto third = s.pin_back(writer, 0);
    auto const unit = s.write({3, 4});
    s.index.share_unit(unit);
    s.index.share_unit(unit);
    CHECK(s.index.holders(unit) == 3);
    CHECK(s.publish_units(writer, std::span{&unit, 1}).published == unit_count{1});
    CHECK(s.index.holders(unit) == 0); // pins hold it now
    CHECK(s.index.published(unit));
    s.note(writer, 2);
    s.audit();
    s.extend(writer, {5, 6}); // its node does not grow below the others
    s.release(std::move(writer));
    CHECK(s.evict(10) == list{behind + 1});
    for (auto* const reader : {&second, &third}) {
      s.note(*reader, -1);
      s.index.adopt(*reader, unit); // the counted hold is its pin now
      s.audit();
      CHECK(s.index.evictable() == unit_count{0});
    }
    s.release(std::move(second));
    CHECK(s.evict(10).empty());
    s.release(std::move(third));
    CHECK(s.evict(10).size() == behind + 1);
  }
}

TEMPLATE_TEST_CASE("S23: only the published unit right behind the pin can be adopted", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  auto whole = s.publish(ascending(6));
  auto at_root = s.pin({});
  auto const loose = s.write({7, 7});
  CHECK_THROWS_AS(s.index.adopt(at_root, loose), contract_violation);
  CHECK_THROWS_AS(s.index.adopt(at_root, unit_id{1}), contract_violation); // further down
  s.index.drop_unit(loose);
  s.audit();
  s.release(std::move(at_root));
  s.release(std::move(whole));
}

// --- units ---------------------------------------------------------------------------------------------------------
TEMPLATE_TEST_CASE("prefix_index: every unit is free, private or published", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{4, 2};
  CHECK(s.index.capacity() == unit_count{4});
  CHECK(s.index.free_units() == unit_count{4});
  auto const a = s.write({1, 2});
  auto const b = s.write({3, 4});
  CHECK(a != b);
  CHECK_FALSE(s.index.published(a));
  s.audit();
  s.index.share_unit(a);
  CHECK(s.index.holders(a) == 2);
  s.index.drop_unit(a);
  CHECK(s.index.free_units() == unit_count{2}); // one holder is left
  s.index.drop_unit(a);
  CHECK(s.index.free_units() == unit_count{3});
  CHECK(s.index.holders(a) == 0);
  auto pin = s.pin({});
  CHECK(s.publish_units(pin, std::span{&b, 1}).published == unit_count{1});
  CHECK(s.index.published(b));
  s.release(std::move(pin));
  for (auto i = 0; i < 3; ++i) { CHECK(static_cast<bool>(s.index.take_unit())); }
  CHECK_FALSE(static_cast<bool>(s.index.take_unit())); // what is cached is not free
  s.audit();
  CHECK(s.evict(1) == list{b.value()});
  CHECK_FALSE(s.index.published(b));
  CHECK(s.index.take_unit() == b);
  CHECK(s.index.holders(b) == 1); // as new
  s.audit();
}

TEMPLATE_TEST_CASE("S24: units dropped together come back as if dropped one by one", "", QUIRE_TEST_INDEXES) {
  auto const after = [](bool together) {
    auto s = shelf<TestType>{8, 2};
    auto units = std::vector<unit_id>{};
    for (auto i = 0; i < 6; ++i) { units.push_back(s.index.take_unit()); }
    s.index.share_unit(units[2]);
    auto const some = std::array{units[4], units[2], units[1], units[5]};
    if (together) {
      s.index.drop_units(some);
    } else {
      for (auto const unit : some) { s.index.drop_unit(unit); }
    }
    CHECK(s.index.free_units() == unit_count{5});
    CHECK(s.index.holders(units[2]) == 1);
    s.index.drop_units({});
    auto order = list{};
    while (auto const unit = s.index.take_unit()) { order.push_back(unit.value()); }
    return order;
  };
  CHECK(after(true) == after(false));
  CHECK(after(true).size() == 5);
}

TEMPLATE_TEST_CASE("B12: a unit that is not private is neither shared nor dropped", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{4, 2};
  s.use(ascending(2));                                            // unit 0
  for (auto const wrong : {unit_id{0}, unit_id{1}, unit_id{4}}) { // published, free, of another index
    CHECK_THROWS_AS(s.index.share_unit(wrong), contract_violation);
    CHECK_THROWS_AS(s.index.drop_unit(wrong), contract_violation);
    CHECK_THROWS_AS(s.index.drop_units(std::span{&wrong, 1}), contract_violation);
  }
  CHECK_THROWS_AS(s.index.holders(unit_id{4}), contract_violation);
  s.audit();
}

TEMPLATE_TEST_CASE("B7: a pin of a shorter path holds exactly that path", "", QUIRE_TEST_INDEXES) {
  for (std::uint32_t back = 0; back <= 4; ++back) {
    auto s = shelf<TestType>{16, 2};
    auto whole = s.publish(ascending(8));
    s.note(whole, -1);
    auto shorter = s.index.pin_back(whole, unit_count{back});
    s.note(whole, 1);
    s.note(shorter, 1);
    s.audit();
    s.release(std::move(whole));
    CHECK(s.index.evictable().value() == back);
    CHECK(s.evict(10).size() == back);
    CHECK(s.find(ascending(8)).size() == 4 - back);
    s.release(std::move(shorter));
  }
  auto s = shelf<TestType>{16, 2};
  auto whole = s.publish(ascending(8));
  CHECK_THROWS_AS(s.index.pin_back(whole, unit_count{5}), contract_violation);
  CHECK_THROWS_AS(s.index.pin_back(prefix_pin{}, unit_count{0}), contract_violation);
  s.release(std::move(whole));
}

TEMPLATE_TEST_CASE("B12: a pin that was given back already is caught at the faulty call", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  auto pin = s.publish(ascending(4));
  s.release(std::move(pin));
  CHECK_THROWS_AS(s.index.release(std::move(pin)), contract_violation);
  auto const one = std::array{s.write({9, 9})};
  CHECK_THROWS_AS(s.index.publish(pin, one), contract_violation);
  s.audit();
}

TEST_CASE("B12: the audit names an overwritten token") {
  auto flat = shelf<flat_index<>>{16, 2};
  flat.use(ascending(4));
  flat.index.tokens(unit_id{1})[0] = 99;
  CHECK_THAT(flat.index.audit({}), quire_test::ContainsSubstring("changed after it was published"));

  auto tree = shelf<run_tree<>>{16, 2};
  auto pin = tree.publish(ascending(6));
  CHECK(tree.index.digest(pin) == tree.bare_digest(ascending(6))); // a tree keeps the digests that somebody asked for
  tree.release(std::move(pin));
  auto& token = tree.index.tokens(unit_id{1})[0];
  auto const was = std::exchange(token, 99);
  CHECK_THAT(tree.index.audit({}), quire_test::ContainsSubstring("changed after it was published"));
  token = was;
  tree.audit();
  tree.index.tokens(unit_id{0})[0] = 99; // the first one of a run is looked for by its tokens
  CHECK_THAT(tree.index.audit({}), quire_test::ContainsSubstring("changed after it was published"));
}

TEMPLATE_TEST_CASE("B12: the audit names a pin that nobody has", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  auto pin = s.publish(ascending(4));
  CHECK_THAT(s.index.audit({}), quire_test::ContainsSubstring("busy count differs"));
  s.release(std::move(pin));
}

TEMPLATE_TEST_CASE("prefix_index: impossible sizes are refused", "", run_tree<>, flat_index<>) {
  CHECK_THROWS_AS((TestType{unit_count{0}, token_count{4}}), config_error);
  CHECK_THROWS_AS((TestType{unit_count{4}, token_count{0}}), config_error);
  CHECK_THROWS_AS((TestType{unit_count{0x7fff'ffffU}, token_count{1}}), config_error);
}

TEMPLATE_TEST_CASE("prefix_index: matching, pinning, publishing and evicting allocate nothing", "", run_tree<>,
                   flat_index<>, run_tree<lfu_eviction>) {
  auto s = shelf<TestType>{64, 2};
  s.use(ascending(40));
  auto const old = s.open("old");
  s.use(old, ascending(10));
  auto const fresh = std::array{s.write({77, 0}), s.write({77, 1})};
  auto out = std::array<unit_id, 32>{};
  auto const prompt = ascending(20);
  CHECK(quire_test::allocations_of([&] {
          auto pin = s.index.pin(s.index.match(s.root, prompt, out));
          static_cast<void>(s.index.publish(pin, fresh));
          auto twin = s.index.pin_back(pin, unit_count{1});
          s.index.release(std::move(pin));
          s.index.release(std::move(twin));
          auto const unit = s.index.take_unit();
          s.index.share_unit(unit);
          s.index.drop_unit(unit);
          s.index.drop_unit(unit);
          s.index.close_root(old);
          static_cast<void>(s.index.evict({out.data(), 7}));
          static_cast<void>(s.index.evict({out.data(), 9}));
        }) == 0);
  s.audit();
}
