// SPDX-License-Identifier: Apache-2.0
// What every prefix index does, for both models and for digests from perfect to useless.
#include <quire/core/config_error.hpp>
#include <quire/identity/constant_digest.hpp>
#include <quire/prefix/concepts.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/run_tree.hpp>

#include "isolation/truncated_digest.hpp"
#include "storage/index_fixture.hpp"
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
  candidate(block_count, token_count)
    requires(Missing != 0);
  auto open_root(std::span<std::byte const>) -> returns<1, node_id>
    requires(Missing != 1);
  auto pin(prefix_match const&) -> returns<2, prefix_pin>
    requires(Missing != 2);
  auto pin_back(prefix_pin const&, block_count) -> returns<3, prefix_pin>
    requires(Missing != 3);
  auto publish(prefix_pin&, std::span<block_id const>) -> returns<4, publish_result>
    requires(Missing != 4);
  auto hold(prefix_pin const&, std::uint32_t) -> returns<5, void>
    requires(Missing != 5);
  auto adopt(prefix_pin&, block_id) -> returns<6, void>
    requires(Missing != 6);
  auto release(prefix_pin&&) -> returns<7, void>
    requires(Missing != 7);
  auto reserve_claims(block_count) -> returns<8, void>
    requires(Missing != 8);
  template <class Sink>
  auto restore(Sink) -> returns<9, void>
    requires(Missing != 9);
  template <class Sink>
  auto remove(std::span<std::uint8_t const>, Sink) -> returns<10, void>
    requires(Missing != 10);
  auto relocate(std::span<block_id const>) -> returns<11, void>
    requires(Missing != 11);
  auto audit(std::span<std::uint32_t const>) const -> returns<12, std::string>
    requires(Missing != 12);
  auto match(node_id, std::span<token_id const>, std::span<block_id>) const noexcept(Throws != 13)
      -> returns<13, prefix_match>
    requires(Missing != 13);
  auto would_pin(prefix_match const&) const noexcept(Throws != 14) -> returns<14, block_count>
    requires(Missing != 14);
  auto claim(std::span<block_id>) noexcept(Throws != 15) -> returns<15, block_count>
    requires(Missing != 15);
  auto confirm() noexcept(Throws != 16) -> returns<16, void>
    requires(Missing != 16);
  auto tokens(block_id) noexcept(Throws != 17) -> returns<17, std::span<token_id>>
    requires(Missing != 17);
  auto token_at(std::int64_t) noexcept(Throws != 18) -> returns<18, token_id&>
    requires(Missing != 18);
  auto evictable() const noexcept(Throws != 19) -> returns<19, block_count>
    requires(Missing != 19);
  auto cached() const noexcept(Throws != 20) -> returns<20, block_count>
    requires(Missing != 20);
  auto would_release(prefix_pin const&, block_count) const noexcept(Throws != 21) -> returns<21, block_count>
    requires(Missing != 21);
  auto hash_collisions() const noexcept(Throws != 22) -> returns<22, std::uint64_t>
    requires(Missing != 22);
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
static_assert(missing_refused(std::make_integer_sequence<int, 23>{}));
static_assert(wrong_refused(std::make_integer_sequence<int, 22>{}));
static_assert(throwing_refused(std::make_integer_sequence<int, 10>{}));

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
  s.index.remove(doomed, [&](block_id b) { gone.push_back(b.value()); });
  s.audit();
  CHECK(s.find({1, 1, 2, 2, 3, 3}).empty());
  CHECK(std::set<std::uint32_t>(gone.begin(), gone.end()) ==
        std::set<std::uint32_t>{0, 1, 2}); // no child without its parent
  CHECK(s.index.cached() == block_count{0});
}

TEMPLATE_TEST_CASE("case 118: an empty text and a text shorter than a block match nothing", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 4};
  s.use({1, 2, 3, 4});
  auto out = std::array<block_id, 4>{};
  for (auto const& short_text : {text{}, text{1}, text{1, 2, 3}}) {
    auto const found = s.index.match(s.root, short_text, out);
    CHECK(found.blocks == block_count{0});
    CHECK(found.node == s.root);
    auto pin = s.index.pin(found);
    CHECK(static_cast<bool>(pin)); // the empty prefix is a prefix
    s.index.release(std::move(pin));
  }
  CHECK(s.index.evictable() == block_count{1});
}

TEMPLATE_TEST_CASE("S21: a match is bounded by the room for its ids", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  s.use(ascending(8));
  auto out = std::array<block_id, 2>{};
  auto const found = s.index.match(s.root, ascending(8), out);
  CHECK(found.blocks == block_count{2});
  CHECK(out[1] == block_id{1});
}

TEMPLATE_TEST_CASE("S24: pins nest, and the last release makes idle", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  s.use(ascending(8));
  CHECK(s.index.evictable() == block_count{4});
  auto a = s.pin(ascending(8));
  auto b = s.pin(ascending(4));
  auto c = s.pin(ascending(8));
  CHECK(s.index.evictable() == block_count{0});
  s.release(std::move(a));
  CHECK_FALSE(static_cast<bool>(a)); // consumed
  CHECK(s.index.evictable() == block_count{0});
  s.release(std::move(c));
  CHECK(s.index.evictable() == block_count{2}); // the first two are b's
  s.release(std::move(b));
  CHECK(s.index.evictable() == block_count{4});
}

TEMPLATE_TEST_CASE("case 36: evicting what a sequence holds takes nothing away", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  auto held = s.publish(ascending(4));
  CHECK(s.evict(10).empty());
  CHECK(s.find(ascending(4)) == list{0, 1});
  s.release(std::move(held));
  CHECK(s.evict(10) == list{1, 0});
}

namespace {
// Blocks 8, 9, 10 with the tokens 1 … 6, not published yet.
template <class Shelf>
auto own_copy(Shelf& s) -> std::array<block_id, 3> {
  auto const mine = std::array{block_id{8}, block_id{9}, block_id{10}};
  for (std::size_t i = 0; i < 3; ++i) {
    auto const to = s.index.tokens(mine[i]);
    to[0] = static_cast<token_id>(2 * i + 1);
    to[1] = static_cast<token_id>(2 * i + 2);
  }
  return mine;
}
} // namespace

TEMPLATE_TEST_CASE("S26: publishing what somebody uses stops there and moves the pin", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  auto used = s.publish(ascending(4)); // blocks 0 1
  auto const mine = own_copy(s);
  auto pin = s.index.pin(prefix_match{block_count{0}, s.root, 0});
  auto const left = std::span{mine};
  for (std::size_t i = 0; i < 2; ++i) {
    s.note(pin, -1);
    auto const done = s.index.publish(pin, left.subspan(i));
    s.note(pin, 1);
    CHECK(done.duplicate);
    CHECK(done.published == block_count{0});
    CHECK_FALSE(static_cast<bool>(done.replaced));
  }
  s.note(used, -1); // a run may have split; the pin is where it was
  s.note(used, 1);
  s.note(pin, -1);
  auto const last = s.index.publish(pin, left.subspan(2));
  s.note(pin, 1);
  s.audit();
  CHECK_FALSE(last.duplicate);
  CHECK(last.published == block_count{1}); // later blocks hang below the existing ones
  CHECK(s.find(ascending(6)) == list{0, 1, 10});
  s.release(std::move(pin));
  s.release(std::move(used));
}

TEMPLATE_TEST_CASE("S26: publishing what nobody uses takes its place", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  s.use(ascending(4)); // blocks 0 1, idle
  auto const mine = own_copy(s);
  auto pin = s.index.pin(prefix_match{block_count{0}, s.root, 0});
  auto left = std::span<block_id const>{mine};
  auto replaced = list{};
  while (!left.empty()) {
    s.note(pin, -1);
    auto const done = s.index.publish(pin, left);
    s.note(pin, 1);
    CHECK_FALSE(done.duplicate);
    if (done.replaced) { replaced.push_back(done.replaced.value()); }
    REQUIRE(done.published.value() > 0);
    left = left.subspan(done.published.value());
  }
  s.audit();
  CHECK(replaced == list{0, 1});
  CHECK(s.find(ascending(6)) == list{8, 9, 10}); // no room is taken twice
  CHECK(s.index.cached() == block_count{3});
  s.release(std::move(pin));
}

TEMPLATE_TEST_CASE("B7: a pin of a shorter path holds exactly that path", "", QUIRE_TEST_INDEXES) {
  for (std::uint32_t back = 0; back <= 4; ++back) {
    auto s = shelf<TestType>{16, 2};
    auto whole = s.publish(ascending(8));
    s.note(whole, -1);
    auto shorter = s.index.pin_back(whole, block_count{back});
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
  CHECK_THROWS_AS(s.index.pin_back(whole, block_count{5}), contract_violation);
  CHECK_THROWS_AS(s.index.pin_back(prefix_pin{}, block_count{0}), contract_violation);
  s.release(std::move(whole));
}

TEMPLATE_TEST_CASE("B12: a pin that was given back already is caught at the faulty call", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  auto pin = s.publish(ascending(4));
  s.release(std::move(pin));
  CHECK_THROWS_AS(s.index.release(std::move(pin)), contract_violation);
  auto const one = std::array{block_id{9}};
  CHECK_THROWS_AS(s.index.publish(pin, one), contract_violation);
  s.audit();
}

TEMPLATE_TEST_CASE("B12: the audit names an overwritten token", "", run_tree<>, flat_index<>) {
  auto s = shelf<TestType>{16, 2};
  s.use(ascending(4));
  s.index.tokens(block_id{1})[0] = 99;
  auto const broken = s.index.audit({});
  CHECK_THAT(broken, quire_test::ContainsSubstring("changed after it was published"));
}

TEMPLATE_TEST_CASE("B12: the audit names a pin that nobody has", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  auto pin = s.publish(ascending(4));
  CHECK_THAT(s.index.audit({}), quire_test::ContainsSubstring("busy count differs"));
  s.release(std::move(pin));
}

TEMPLATE_TEST_CASE("S15: relocated blocks are found under their new numbers", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{16, 2};
  s.use(ascending(8));
  auto to = std::vector<block_id>(16);
  to[1] = block_id{15};
  to[3] = block_id{12};
  s.index.relocate(to);
  s.audit();
  CHECK(s.find(ascending(8)) == list{0, 15, 2, 12});
}

TEMPLATE_TEST_CASE("prefix_index: impossible sizes are refused", "", run_tree<>, flat_index<>) {
  CHECK_THROWS_AS((TestType{block_count{0}, token_count{4}}), config_error);
  CHECK_THROWS_AS((TestType{block_count{4}, token_count{0}}), config_error);
  CHECK_THROWS_AS((TestType{block_count{0x7fff'ffffU}, token_count{1}}), config_error);
}

TEMPLATE_TEST_CASE("prefix_index: matching, pinning, publishing and claiming allocate nothing", "", run_tree<>,
                   flat_index<>) {
  auto s = shelf<TestType>{64, 2};
  s.use(ascending(40));
  s.index.reserve_claims(block_count{64});
  auto const fresh = std::array{block_id{60}, block_id{61}};
  auto out = std::array<block_id, 32>{};
  auto const prompt = ascending(20);
  for (auto const b : fresh) { s.index.tokens(b)[0] = 77; }
  CHECK(quire_test::allocations_of([&] {
          auto pin = s.index.pin(s.index.match(s.root, prompt, out));
          static_cast<void>(s.index.publish(pin, fresh));
          auto twin = s.index.pin_back(pin, block_count{1});
          s.index.release(std::move(pin));
          s.index.release(std::move(twin));
          static_cast<void>(s.index.claim({out.data(), 5}));
          s.index.restore([](block_id) {});
          static_cast<void>(s.index.claim({out.data(), 7}));
          s.index.confirm();
        }) == 0);
  s.audit();
}
