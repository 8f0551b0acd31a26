// SPDX-License-Identifier: Apache-2.0
// Prefix hits over several layer groups: a shrinking fixed point, what eviction takes from whom, and what stays.
#include <quire/cache/detail/admitter.hpp>
#include <quire/cache/detail/audit.hpp>
#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/detail/lifetime.hpp>
#include <quire/cache/detail/stepper.hpp>
#include <quire/cache/policies.hpp>
#include <quire/model/retention.hpp>

#include "storage/group_fixture.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::check;
using quire_test::chunks_of;
using quire_test::domain_of;
using quire_test::group;
using quire_test::group_engine;
using quire_test::group_of;
using quire_test::groups_of;
using quire_test::head;
using quire_test::joined;
using quire_test::sees;
using quire_test::some_fields;
using quire_test::text;
using quire_test::tokens;
using quire_test::window_of;

// A core whose hanging blocks a test can take away one by one.
using core = detail::cache_core<default_policies>;

// Whoever asks is let in, so that pools can be filled to the last block.
struct eager : default_policies {
  using admission = admit_all;
};
using engine = group_engine<eager>;

// Takes as many blocks as \p tokens need and makes none of them matchable.
void press(engine& e, std::size_t length, token_id first) {
  auto const p = ascending(length, first);
  auto wanted = e.wanted(p);
  wanted.reuse = reuse_rule::none;
  auto got = e.ask(wanted);
  REQUIRE(got.has_value());
  auto r = engine::request{std::move(*got), {}};
  e.prefill(r, p);
}

// The longest hit by definition: whole blocks of every group, every lead block from 0 on, and every block of which the first
// query behind the hit sees a position before it. A hit of the whole prompt computes the last position again.
auto longest_by_definition(std::uint32_t prompt, std::uint32_t cached, std::uint32_t unit,
                           std::vector<cache_group> const& windows, std::vector<std::vector<bool>> const& there)
    -> std::uint32_t {
  for (auto h = cached; h > 0; --h) {
    auto good = h % unit == 0;
    for (std::size_t g = 0; good && g < windows.size(); ++g) {
      auto const block = windows[g].block_tokens.value();
      good = h % block == 0;
      for (std::uint32_t t = 0; good && t < h; ++t) {
        good = !sees(windows[g].keeps, std::min(h, prompt - 1), t) || there[g][t / block];
      }
    }
    if (good) { return h; }
  }
  return 0;
}

// All subsets of what can hang, for one set of groups: a prompt of whole lead blocks, asked for as it is and with one more token.
void all_subsets(std::vector<cache_group> const& windows, std::uint32_t unit, std::uint32_t lead_blocks) {
  auto groups = std::vector{group_of({})};
  groups.insert(groups.end(), windows.begin(), windows.end());
  auto const cached = ascending(std::size_t{lead_blocks} * unit);
  auto const longer = joined(cached, {-1});
  auto const cached_tokens = static_cast<std::uint32_t>(cached.size());
  auto whole = unit; // [tokens] of a unit: where blocks of all groups end together
  for (auto const& w : windows) { whole = std::lcm(whole, w.block_tokens.value()); }
  auto choices = std::vector<std::pair<std::size_t, std::uint32_t>>{}; // a group, and a unit on which its blocks hang
  for (std::size_t g = 0; g < windows.size(); ++g) {
    for (std::uint32_t u = 0; u < cached_tokens / whole; ++u) { choices.emplace_back(g, u); }
  }
  REQUIRE(choices.size() <= 10);
  for (std::uint32_t subset = 0; subset < (1U << choices.size()); ++subset) {
    auto c = core{groups_of(64, groups, unit), {}, {}, {}};
    auto const audit = [&] { return detail::auditor<default_policies>{c}.first_broken(); };
    auto const scope = c.scopes.open(scope_key{digest_scheme::of<xxh3_128_digest>(), token_count{unit},
                                               compute_identity{some_fields()}, domain_of("a")});
    auto const admit = [&](text const& prompt) {
      auto wanted = admit_request{};
      wanted.scope = scope;
      wanted.prompt = prompt;
      wanted.max_output = token_count{1};
      return detail::admitter<default_policies>{c}.admit(wanted).value();
    };
    auto* const writer = admit(cached);
    auto steps = detail::stepper<default_policies>{c};
    auto* const slot = steps.begin(timeline_id{0}).value();
    REQUIRE(steps.try_add(*slot, {writer, cached_tokens, cached, false, 0}).status == errc::ok);
    static_cast<void>(steps.launch(*slot));
    REQUIRE(steps.commit(*slot, {}));
    auto const units = std::vector<unit_id>(writer->path.units().begin(), writer->path.units().end());
    REQUIRE(detail::end(c, *writer, core::request_event_type::finish).has_value());
    auto there = std::vector<std::vector<bool>>{};
    for (auto const& w : windows) { there.emplace_back(cached.size() / w.block_tokens.value(), true); }
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (((subset >> i) & 1U) != 0) { continue; }
      auto const [g, u] = choices[i];
      static_cast<void>(c.groups[g + 1].depart(units[u], detail::leave_reason::evicted));
      auto const block = windows[g].block_tokens.value();
      for (auto j = u * whole / block; j < (u + 1) * whole / block; ++j) { there[g][j] = false; }
    }
    CAPTURE(subset, unit);
    REQUIRE(audit() == "");
    auto const expected = longest_by_definition(cached_tokens + 1, cached_tokens, unit, windows, there);
    auto* const behind = admit(longer);
    REQUIRE(behind->at.committed == expected);
    REQUIRE(detail::end(c, *behind, core::request_event_type::finish).has_value());
    auto const all = longest_by_definition(cached_tokens, cached_tokens, unit, windows, there);
    auto* const again = admit(cached);
    REQUIRE(again->at.committed == std::min(all, cached_tokens - 1));
    REQUIRE(audit() == "");
    REQUIRE(detail::end(c, *again, core::request_event_type::finish).has_value());
  }
}
} // namespace

TEST_CASE("S29: a hit over one window group is the longest, for every subset of its blocks (case 53)") {
  for (auto const w : {1U, 2U, 3U, 4U, 5U, 6U, 9U, 30U}) {
    CAPTURE(w);
    all_subsets({group_of(window_of(w), 64, 1)}, 1, 5); // case 53 is w = 3 in blocks of 1
    all_subsets({group_of(window_of(w), 64, 4)}, 4, 5);
    all_subsets({group_of(window_of(w), 64, 2)}, 4, 4);
    all_subsets({group_of(window_of(w), 64, 6)}, 4, 6);
    all_subsets({group_of(window_of(w), 64, 3)}, 2, 6);
    all_subsets({group_of(window_of(w, 3), 64, 2)}, 2, 6);
  }
}

TEST_CASE("B8: a hit over a chunk group is the longest, for every subset of its blocks") {
  for (auto const size : {1U, 2U, 3U, 4U, 6U, 8U, 100U}) {
    CAPTURE(size);
    all_subsets({group_of(chunks_of(size), 64, 1)}, 1, 6);
    all_subsets({group_of(chunks_of(size), 64, 4)}, 2, 8);
    all_subsets({group_of(chunks_of(size), 64, 3)}, 3, 5);
  }
}

TEST_CASE("S29: a hit over two or three groups is the longest that all can serve, for every subset of their blocks") {
  all_subsets({group_of(window_of(3), 64, 2), group_of(window_of(6), 64, 2)}, 2, 5);
  all_subsets({group_of(window_of(5), 64, 2), group_of(chunks_of(4), 64, 2)}, 2, 5);
  all_subsets({group_of(window_of(5), 64, 4), group_of(window_of(2), 64, 6)}, 2, 6);
  all_subsets({group_of(window_of(4, 2), 64, 3), group_of(window_of(7), 64, 2)}, 3, 4);
  all_subsets({group_of(window_of(3), 64, 1), group_of(chunks_of(2), 64, 1), group_of(window_of(1), 64, 1)}, 1, 3);
}

TEST_CASE("S29: the fixed point by hand: one group's shrinking shrinks what the others are asked for") {
  // Lead blocks of 2 tokens, window A of 3 in blocks of 2, window B of 5 in blocks of 4.
  auto e = engine{groups_of(64, {group_of({}), group_of(window_of(3), 64, 2), group_of(window_of(5), 64, 4)}, 2)};
  auto const prompt = ascending(15);
  auto r = e.serve(prompt);
  // 14 lead positions; B ends whole blocks at 12; A needs the block before 12, B that before 12
  CHECK(e.hit(prompt) == 12);
  CHECK(e.hit(head(prompt, 12)) == 11); // the whole prompt: its last position is computed again
  CHECK(e.hit(head(prompt, 11)) == 8);
  CHECK(e.hit(joined(head(prompt, 7), {-1, -2, -3})) == 4);
  CHECK(e.hit(joined(head(prompt, 3), {-1, -2, -3})) == 0);
}

TEST_CASE("S29: with groups of several block sizes the smallest reusable prefix is their least common multiple") {
  struct sizes {
    std::uint32_t lead, first, second;
  };
  for (auto const& s : {sizes{4, 6, 4}, sizes{4, 4, 4}, sizes{2, 3, 5}, sizes{3, 1, 2}, sizes{8, 4, 2}}) {
    CAPTURE(s.lead, s.first, s.second);
    auto const all = std::lcm(s.lead, std::lcm(s.first, s.second));
    auto e = engine{groups_of(
        128, {group_of({}), group_of(window_of(4), 256, s.first), group_of(chunks_of(5), 256, s.second)}, s.lead)};
    auto const prompt = ascending(70);
    e.keep(prompt);
    for (std::uint32_t n = 1; n <= 64; ++n) { REQUIRE(e.hit(joined(head(prompt, n), {-1})) == n / all * all); }
  }
}

TEST_CASE("S27: what a running window has given up stays reusable until it is evicted") {
  // w = 5 in blocks of 4, 8 of them; prompt of 17: blocks 0 … 4, of which 0 … 2 go at commit
  auto e = engine{groups_of(64, {group_of({}), group_of(window_of(5), 8, 4)})};
  auto const prompt = ascending(17);
  auto r = e.serve(prompt);
  CHECK(e.held(r, 1) == std::vector<bool>{false, false, false, true, true});
  CHECK(e.now(1).evictable == block_count{3});
  CHECK(e.now(1).free == block_count{3});
  {
    auto early = e.admit(joined(head(prompt, 8), {-1, -2}));
    CHECK(early.seq.cached() == token_count{8});
    CHECK(e.now(1).evictable == block_count{2}); // block 1 is in use again
    e.prefill(early, joined(head(prompt, 8), {-1, -2}));
  }
  CHECK(e.now(1).evictable == block_count{3});
  auto const other = ascending(13, 500); // four blocks: three are free, so that one goes, the longest idle: block 0
  auto second = e.serve(other);
  CHECK(e.hit(joined(head(prompt, 4), {-1})) == 0);
  CHECK(e.hit(joined(head(prompt, 8), {-1})) == 8);
  CHECK(e.hit(joined(prompt, {-1})) == 16);
}

TEST_CASE("S29: a window tail is evicted while the full prefix stays, and the hit shrinks step by step") {
  auto options = groups_of(64, {group_of({}), group_of(window_of(5), 8, 4)});
  auto e = engine{options};
  auto const prompt = ascending(17);
  e.keep(prompt);                                   // idle in this order: 0, 1, 2, 3
  CHECK(e.hit(joined(head(prompt, 8), {-1})) == 8); // now 0, 2, 3, 1
  CHECK(e.now(1).evictable == block_count{4});
  press(e, 19, 1000); // five blocks: four free, one victim: 0
  CHECK(e.hit(prompt) == 16);
  press(e, 23, 2000); // six: 2 goes as well, the tail of 16 was used last
  CHECK(e.now(1).evictable == block_count{2});
  CHECK(e.hit(joined(head(prompt, 12), {-1})) == 8);
  CHECK(e.hit(joined(head(prompt, 4), {-1})) == 0);
  CHECK(e.hit(prompt) == 16);
}

TEST_CASE("S29: when its own tail is gone a hit falls back to the longest prefix whose tail is there") {
  auto e = engine{groups_of(64, {group_of({}), group_of(window_of(5), 8, 4)})};
  auto const prompt = ascending(17);
  e.keep(prompt);                                   // idle in this order: 0, 1, 2, 3
  CHECK(e.hit(joined(head(prompt, 8), {-1})) == 8); // now 0, 2, 3, 1
  press(e, 27, 1000);                               // seven blocks: four free ones and 0, 2, 3
  CHECK(e.now(1).evictable == block_count{1});
  CHECK(e.now().published == block_count{4}); // the full prefix is there to its end
  CHECK(e.hit(prompt) == 8);                  // and 8 of it can be used
  e.keep(prompt);                             // computed again: the places are taken again
  CHECK(e.hit(prompt) == 16);
}

TEST_CASE("S29: evicting a block of the full groups takes what hangs on it along, idle or held") {
  auto e = engine{groups_of(6, {group_of({}), group_of(window_of(5), 16, 4)})};
  auto const prompt = ascending(13);
  e.keep(prompt); // three lead blocks and what hangs on them
  CHECK(e.figures(1) == quire_test::short_figures{13, 3, 0});
  auto other = e.serve(ascending(15, 500)); // four of six lead blocks: one victim, the deepest
  CHECK(e.now().published == block_count{2 + 3});
  CHECK(e.hit(prompt) == 8);
  e.release(other);
  CHECK(e.figures(1) == quire_test::short_figures{16 - 2 - 3, 2 + 3, 0});
}

TEST_CASE("S29: what runs out of a held block leaves its holder alone") {
  // a follower holds a window block that another one published; the lead block it hangs on cannot go while it is pinned
  auto e = group_engine<>{groups_of(4, {group_of({}), group_of(window_of(5), 16, 4)})};
  auto const prompt = ascending(9);
  e.keep(prompt);
  auto follower = e.admit(prompt, 3);
  CHECK(follower.seq.cached() == token_count{8});
  auto const refused = e.ask(e.wanted(ascending(6, 500)));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().group == group(0));
  e.prefill(follower, prompt); // reads what it may see
}

TEST_CASE("S29: one group's pressure takes nothing from another's") {
  auto const prompt = ascending(17);
  SECTION("the small window's") {
    auto e = engine{groups_of(64, {group_of({}), group_of(window_of(5), 9, 4), group_of(window_of(9), 64, 4)})};
    e.keep(prompt);
    auto const small = e.serve({900, 901, 902}); // together they take all nine blocks
    auto const before = std::tuple{e.figures(0), e.figures(2), e.now().published};
    press(e, 31, 500);
    CHECK(e.now(1).evictable == block_count{});
    CHECK(std::tuple{e.figures(0), e.figures(2), e.now().published} == before);
    CHECK(e.hit(prompt) == 0);
    e.keep(prompt); // only what was lost is taken again
    CHECK(std::tuple{e.figures(0), e.figures(2), e.now().published} == before);
    CHECK(e.hit(prompt) == 16);
  }
  SECTION("the large window's") {
    auto e = engine{groups_of(64, {group_of({}), group_of(window_of(5), 64, 4), group_of(window_of(9), 9, 4)})};
    e.keep(prompt);
    auto const small = e.serve({900, 901, 902}); // together they take all nine blocks
    auto const before = std::tuple{e.figures(0), e.figures(1), e.now().published};
    press(e, 31, 500);
    CHECK(std::tuple{e.figures(0), e.figures(1), e.now().published} == before);
    CHECK(e.hit(prompt) == 0);
  }
  SECTION("the full groups': what hangs goes with its lead, everything else stays") {
    auto e = engine{groups_of(8, {group_of({}), group_of(window_of(5), 64, 4), group_of(window_of(9), 64, 4)})};
    e.keep(prompt);
    press(e, 23, 500); // six of eight lead blocks: the two deepest go
    CHECK(e.now().published == block_count{2});
    CHECK(e.now(1).evictable == block_count{2});
    CHECK(e.now(2).evictable == block_count{2});
    CHECK(e.hit(prompt) == 8);
  }
}

TEST_CASE("S29: a plan that is dropped leaves the window blocks that it would evict where they hang, in their order") {
  auto e = engine{groups_of(64, {group_of({}), group_of(window_of(5), 8, 4)})};
  auto const prompt = ascending(17);
  e.keep(prompt);
  auto const before = e.all_figures();
  auto r = e.admit(ascending(27, 500));
  {
    auto const plan = e.plan({{&r, ascending(27, 500)}});
    auto const planned = e.now(1);
    CHECK(planned.free == block_count{4});
    CHECK(planned.evictable == block_count{4});
    CHECK(planned.reserved == block_count{7});
    CHECK(planned.available == block_count{1});
  }
  check(e.cache);
  e.release(r);
  CHECK(e.all_figures() == before);
  CHECK(e.hit(prompt) == 16);
  auto again = e.serve(ascending(18, 700)); // five blocks: the longest idle one goes, which is the first again
  CHECK(e.hit(joined(head(prompt, 4), {-1})) == 0);
  CHECK(e.hit(joined(head(prompt, 8), {-1})) == 8);
}

TEST_CASE("S22: a whole prompt that is found is recomputed at its last position only, in every group") {
  auto e = engine{groups_of(64, {group_of({}), group_of(window_of(3), 16, 2), group_of(window_of(1), 16, 4)})};
  auto const prompt = ascending(12);
  e.keep(prompt);
  auto r = e.admit(prompt, 4);
  CHECK(r.seq.cached() == token_count{11});
  auto planned = e.plan({{&r, {prompt[11]}}});
  CHECK(planned.results()[0].skipped == token_count{1});
  e.execute(planned, {{&r, {prompt[11]}}});
  for (std::uint32_t g = 0; g < 3; ++g) { CHECK(planned.view(group(g)).slot[0] == -1); }
  e.commit(std::move(planned), {{&r, {prompt[11]}}});
  e.step({{&r, {77}}});
  e.step({{&r, {78}}});
}

TEST_CASE(
    "S22: without skipped writes the last block is copied in every group, and nothing of a shared one is written") {
  auto options = groups_of(64, {group_of({}), group_of(window_of(3), 32, 2), group_of(window_of(6), 32, 4)});
  options.skip_writes = false;
  auto e = engine{options};
  auto const prompt = ascending(12);
  e.keep(prompt);
  auto r = e.admit(prompt, 4);
  CHECK(r.seq.cached() == token_count{11});
  auto planned = e.plan({{&r, {prompt[11]}}});
  e.execute(planned, {{&r, {prompt[11]}}});
  e.commit(std::move(planned), {{&r, {prompt[11]}}});
  e.step({{&r, {77}}});
  auto other = e.admit(joined(prompt, {5}), 4); // what was published is as it was
  CHECK(other.seq.cached() == token_count{12});
  e.prefill(other, joined(prompt, {5}));
}
