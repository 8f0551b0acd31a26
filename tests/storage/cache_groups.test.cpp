// SPDX-License-Identifier: Apache-2.0
// Layer groups that do not keep everything: which blocks a sequence holds of them, when they go, and what views show.
#include <quire/block/ticket_fence.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/retention.hpp>
#include <quire/observe/counting_observer.hpp>
#include <quire/view/mirror.hpp>

#include "storage/group_fixture.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::blocks_seen;
using quire_test::chunks_of;
using quire_test::group;
using quire_test::group_engine;
using quire_test::group_of;
using quire_test::groups_of;
using quire_test::head;
using quire_test::sees;
using quire_test::tail;
using quire_test::text;
using quire_test::window_of;

auto count(std::vector<bool> const& of) -> std::uint32_t {
  return static_cast<std::uint32_t>(std::count(of.begin(), of.end(), true));
}
auto length_of(group_engine<>::request const& r) -> std::uint32_t { return r.seq.length().value(); }

// A prompt of 24 in steps of q: before, in and after every step exactly what some query sees is held. Returns the peak.
auto peak_in_prefill(retention const& keeps, std::uint32_t unit, std::uint32_t q) -> std::uint32_t {
  auto e = group_engine<>{groups_of(32, {group_of({}), group_of(keeps, 64, unit)})};
  auto const prompt = ascending(24);
  auto r = e.admit(prompt);
  std::uint32_t peak = 0;
  while (length_of(r) < prompt.size()) {
    auto const before = length_of(r);
    auto const left = tail(prompt, before);
    auto const items = std::vector<group_engine<>::work>{{&r, head(left, std::min<std::size_t>(q, left.size()))}};
    auto planned = e.plan(items);
    e.execute(planned, items);
    auto const in_step = e.held(r, 1);
    CAPTURE(before);
    REQUIRE(in_step == blocks_seen(keeps, before, before + static_cast<std::uint32_t>(items[0].ids.size()), unit));
    REQUIRE(e.now(1).free + e.now(1).evictable == e.now(1).capacity - block_count{count(in_step)});
    peak = std::max(peak, count(in_step));
    e.commit(std::move(planned), items);
    REQUIRE(e.held(r, 1) == blocks_seen(keeps, length_of(r), length_of(r), unit));
  }
  e.release(r);
  REQUIRE(e.now(1).promised == block_count{});
  REQUIRE(e.now(1).free + e.now(1).evictable == e.now(1).capacity);
  return peak;
}
void peaks_agree(retention const& keeps) {
  for (auto const unit : {1U, 2U, 4U, 6U, 8U}) {
    for (auto const q : {1U, 2U, 5U, 24U}) {
      CAPTURE(keeps.extent.value(), keeps.sinks.value(), unit, q);
      auto const most =
          peak_blocks(keeps, token_count{24}, {.block_tokens = token_count{unit}, .step = token_count{q}});
      auto const peak = peak_in_prefill(keeps, unit, q);
      REQUIRE(peak <= most.value());
      if (q == 1) { REQUIRE(peak == most.value()); } // every begin of a window occurs
    }
  }
}
} // namespace

TEST_CASE("S27: a window holds exactly the blocks that a later query sees, before, in and after every step") {
  for (auto const w : {1U, 2U, 3U, 4U, 5U, 7U, 9U, 23U, 100U}) { peaks_agree(window_of(w)); }
}

TEST_CASE("B8: sinks stay whatever the window does, and nothing but them and the window") {
  for (auto const sinks : {1U, 3U, 4U, 5U}) {
    for (auto const w : {1U, 4U, 6U}) { peaks_agree(window_of(w, sinks)); }
  }
}

TEST_CASE("B8: chunks hold exactly the blocks that a later query sees, of one position too") {
  for (auto const size : {1U, 2U, 3U, 4U, 8U, 100U}) { peaks_agree(chunks_of(size)); }
}

TEST_CASE("B8: a whole chunk dies at once") {
  auto e = group_engine<>{groups_of(32, {group_of({}), group_of(chunks_of(8), 8, 2)})};
  auto const prompt = ascending(9);
  auto r = e.admit(prompt);
  e.prefill(r, head(prompt, 7), 1);
  CHECK(e.count_held(r, 1) == 4);
  e.step({{&r, {prompt[7]}}});
  CHECK(e.count_held(r, 1) == 0); // the next query begins a chunk
  CHECK(e.held(r, 0) == std::vector<bool>{true, true});
  e.step({{&r, {prompt[8]}}});
  CHECK(e.held(r, 1) == std::vector<bool>{false, false, false, false, true});
}

TEST_CASE("S27: blocks larger than the window, by hand") {
  // w = 3 in blocks of 8: a query at 9 sees 7 … 9, so block 0 stays; one at 10 sees 8 … 10, so it goes
  auto e = group_engine<>{groups_of(32, {group_of({}), group_of(window_of(3), 8, 8)})};
  auto const prompt = ascending(20);
  auto r = e.admit(prompt);
  e.prefill(r, head(prompt, 9));
  CHECK(e.held(r, 1) == std::vector<bool>{true, true});
  e.step({{&r, {prompt[9]}}});
  CHECK(e.held(r, 1) == std::vector<bool>{false, true});
  e.prefill(r, prompt);
  CHECK(e.held(r, 1) == std::vector<bool>{false, false, true}); // 20 sees 18 … 20
}

TEST_CASE("S27: a long decode never holds more than its peak, and exactly what is seen at every border of blocks") {
  for (auto const& keeps : {window_of(1), window_of(6), window_of(9), window_of(5, 3), chunks_of(8)}) {
    CAPTURE(keeps.extent.value(), keeps.sinks.value());
    auto e = group_engine<>{groups_of(32, {group_of({}), group_of(keeps, 20)})};
    auto r = e.serve(ascending(5), 60);
    auto const most = peak_blocks(keeps, token_count{65}, {.block_tokens = token_count{4}, .step = token_count{1}});
    for (token_id t = 100; length_of(r) < 64; ++t) {
      e.step({{&r, {t}}});
      REQUIRE(e.count_held(r, 1) <= most.value());
      if (length_of(r) % 4 == 0) { REQUIRE(e.held(r, 1) == blocks_seen(keeps, length_of(r), length_of(r), 4)); }
    }
  }
}

TEST_CASE("S27: where an observer looks at every step a decoding window lets go at every step") {
  struct observed : default_policies {
    using observer = counting_observer;
  };
  auto e = group_engine<observed>{groups_of(32, {group_of({}), group_of(window_of(6), 20)})};
  auto r = e.serve(ascending(5), 60);
  for (token_id t = 100; r.seq.length().value() < 64; ++t) {
    e.step({{&r, {t}}});
    auto const length = r.seq.length().value();
    REQUIRE(e.held(r, 1) == blocks_seen(window_of(6), length, length, 4));
  }
}

TEST_CASE("S30: a ring is exact for its window and shares nothing, nor lets others share") {
  auto const ring = retention::ring({.capacity = token_count{12}, .window = token_count{8}, .sinks = token_count{2}});
  auto options = groups_of(32, {group_of({}), group_of(ring, 16, 2)});
  options.max_append = token_count{3};
  auto e = group_engine<>{options};
  auto const prompt = ascending(30);
  auto r = e.admit(prompt, 8);
  while (length_of(r) < prompt.size()) {
    e.step({{&r, head(tail(prompt, length_of(r)), 3)}});
    REQUIRE(e.held(r, 1) == blocks_seen(window_of(8, 2), length_of(r), length_of(r), 2));
  }
  CHECK(e.hit(prompt) == 0);
  CHECK(e.now(1).evictable == block_count{});
  CHECK(e.now().published > block_count{}); // the full group's are found by nobody, since no ring can go on there
  e.release(r);
  CHECK(e.now(1).free == e.now(1).capacity);
  CHECK(e.hit(prompt) == 0);
}

TEST_CASE("S27: a step of more than max_append positions is refused, and changes nothing") {
  auto options = groups_of(32, {group_of({}), group_of(window_of(4), 5, 2)});
  options.max_append = token_count{3};
  auto e = group_engine<>{options};
  auto const prompt = ascending(20);
  auto r = e.admit(prompt);
  auto const before = e.all_figures();
  auto const items = std::vector{group_engine<>::step_item{r.seq, std::span{prompt}.first(4)}};
  {
    auto const plan = e.cache.plan_step(items);
    REQUIRE(plan.has_value());
    CHECK(plan->results()[0].status == errc::beyond_append);
  }
  CHECK(e.all_figures() == before);
  e.prefill(r, prompt, 3); // in a pool of ⌈(3 + 2) / 2⌉ + 1 blocks, and one to copy into
  CHECK(length_of(r) == 20);
}

TEST_CASE("S29: groups that keep everything share one table and get one action each") {
  auto options =
      groups_of(32, {group_of({}), group_of(window_of(3), 32), group_of({}), group_of(window_of(9, 2), 32, 2)});
  auto e = group_engine<>{options};
  auto parent = e.serve(ascending(7), 8);
  CHECK(parent.seq.blocks(group(0)).data() == parent.seq.blocks().data());
  CHECK(parent.seq.blocks(group(2)).data() == parent.seq.blocks().data());
  auto child = e.fork(parent, 7);
  auto const items = std::vector<group_engine<>::work>{{&child, {70}}};
  auto planned = e.plan(items);
  auto const actions = planned.launch();
  CHECK(&planned.view(group(0)) == &planned.view());
  CHECK(&planned.view(group(2)) == &planned.view());
  auto found = std::map<std::uint32_t, action>{};
  for (auto const& a : actions) {
    REQUIRE(a.kind == action_kind::copy);
    CHECK(found.emplace(a.group.value(), a).second); // one each
  }
  REQUIRE(found.size() == 4);
  for (auto const& [g, a] : found) {
    CAPTURE(g);
    auto const at = 7 / e.unit(g);
    CHECK(a.tokens == token_count{7 % e.unit(g)});
    CHECK(a.source == parent.seq.blocks(group(g))[at]);
    CHECK(a.target == child.seq.blocks(group(g))[at]);
    CHECK(a.source != a.target);
  }
}

TEST_CASE("S37: blocks of every group are scrubbed before they are used again") {
  auto options = groups_of(32, {group_of({}), group_of(window_of(3), 16, 2)});
  options.scrub = scrub_rule::on_reuse;
  auto e = group_engine<>{options};
  auto const prompt = ascending(6);
  auto r = e.admit(prompt, 4);
  auto planned = e.plan({{&r, prompt}});
  auto scrubbed = std::map<std::uint32_t, std::vector<std::uint32_t>>{};
  for (auto const& a : planned.launch()) {
    REQUIRE(a.kind == action_kind::scrub);
    scrubbed[a.group.value()].push_back(a.target.block.value());
  }
  CHECK(scrubbed[0] == quire_test::numbers(r.seq.blocks(group(0))));
  CHECK(scrubbed[1] == quire_test::numbers(r.seq.blocks(group(1))));
  CHECK(scrubbed[1].size() == 3);
}

namespace {
struct ticketed : default_policies {
  using fence = ticket_fence<1>;
};

// Three sequences of 90 tokens, mostly decoding, whose rows change hands now and then: every view shows what the sequences
// hold, and nothing that is seen is missing.
template <class P>
void views_agree(std::vector<cache_group> const& windows) {
  auto groups = std::vector{group_of({})};
  groups.insert(groups.end(), windows.begin(), windows.end());
  auto options = groups_of(128, groups);
  options.max_append = token_count{5};
  auto e = group_engine<P>{options};
  using request = typename group_engine<P>::request;
  auto requests = std::vector<request>{};
  for (token_id i = 0; i < 3; ++i) { requests.push_back(e.admit(ascending(1, 1000 * i), 90)); }
  auto mirrors = std::map<std::pair<std::uint32_t, std::int32_t>, std::vector<std::int32_t>>{};
  auto patched = 0;
  auto moved_on = 0;
  for (std::uint32_t n = 0; n < 60; ++n) {
    auto items = std::vector<typename group_engine<P>::work>{};
    for (std::uint32_t i = 0; i < 3; ++i) {
      auto const who = (i + n / 16) % 3; // rows change hands now and then
      if (who == 2 && n % 9 == 8) { continue; }
      items.push_back({&requests[who], ascending(n % 11 == 10 ? 3 : 1, static_cast<token_id>(n))});
    }
    auto planned = e.plan(items);
    e.execute(planned, items);
    for (std::uint32_t g = 0; g < options.groups.size(); ++g) {
      auto const& view = planned.view(group(g));
      CAPTURE(n, g);
      auto& mirror = mirrors[{g, view.buffer}];
      mirror.resize(view.block_table.size(), -7);
      patched += view.whole_table ? 0 : 1;
      update_mirror(view, mirror);
      REQUIRE(std::equal(mirror.begin(), mirror.end(), view.block_table.begin(), view.block_table.end()));
      for (std::int32_t r = 0; r < view.rows; ++r) {
        auto const i = static_cast<std::size_t>(r);
        auto const unit = e.unit(g);
        auto const first = static_cast<std::uint32_t>(view.first_position[i]);
        auto const length = static_cast<std::uint32_t>(view.length[i]);
        auto const oldest = static_cast<std::uint32_t>(view.position[static_cast<std::size_t>(view.query_start[i])]);
        REQUIRE(first % unit == 0);
        moved_on += first > 0 ? 1 : 0;
        auto const seen = blocks_seen(e.keeps(g), oldest, length, unit);
        auto const cells = view.blocks_of_row(r);
        REQUIRE(cells.size() == seen.size() - first / unit);
        for (std::size_t j = 0; j < seen.size(); ++j) {
          if (j < first / unit) { REQUIRE_FALSE(seen[j]); }
          if (j >= first / unit && seen[j]) { REQUIRE(cells[j - first / unit] != -1); }
          if (j >= first / unit) { // and exactly what the sequence holds
            auto const block = items[i].of->seq.blocks(group(g))[j];
            REQUIRE(cells[j - first / unit] == (block ? static_cast<std::int32_t>(block.value()) : -1));
          }
        }
        if (g > 0) { // a window's view does not widen with the text
          REQUIRE((e.keeps(g).sinks.value() > 0 || view.max_blocks <= 24));
        }
      }
    }
    auto const until = e.cache.fence().issue(timeline_id{0});
    e.commit(std::move(planned), items, until);
    if constexpr (std::is_same_v<P, ticketed>) { // one step behind, so that both buffers are used
      if (until.value() > 1) { e.cache.fence().complete(timeline_id{0}, ticket{until.value() - 1}); }
    }
  }
  CHECK(mirrors.size() == (std::is_same_v<P, ticketed> ? 2 : 1) * options.groups.size());
  CHECK(patched > 100);
  CHECK(moved_on > 20);
}
} // namespace

TEST_CASE("S27: views show holes where nothing is seen, and their deltas bring a mirror to the same table") {
  views_agree<ticketed>({group_of(window_of(1), 64, 2), group_of(window_of(7), 64, 2),
                         group_of(window_of(6, 3), 128, 2), group_of(chunks_of(6), 64, 3)});
}

TEST_CASE("S27: views agree where sequences decode inside blocks that their rows show already") {
  SECTION("blocks smaller than the lead's") {
    views_agree<default_policies>({group_of(window_of(9), 64, 2)});
    views_agree<default_policies>({group_of(window_of(9), 64, 3), group_of(window_of(4), 128, 2)});
  }
  SECTION("windows that move on inside a block") {
    views_agree<ticketed>({group_of(window_of(6), 64)});
    views_agree<ticketed>({group_of(window_of(6), 64), group_of(window_of(11), 64, 8)});
  }
}
