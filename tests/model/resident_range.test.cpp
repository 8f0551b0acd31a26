// SPDX-License-Identifier: Apache-2.0

/// \file
/// The residency function against a brute force over masks, exhaustively on small sizes.

#include "support/catch_compat.hpp"

#include <quire/model/attention_rule.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/resident_range.hpp>
#include <quire/model/retention.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace {

using namespace quire;

constexpr std::uint32_t max_length = 64;
constexpr std::uint32_t max_window = 20;
constexpr std::uint32_t max_sinks = 6;
constexpr std::uint32_t max_block = 9;
constexpr std::uint32_t horizon = max_length + 64; // beyond any window or chunk that a query below may reach

// An independent statement of "visible": by the text of the specification, not by the library.
struct mask {
  bool chunked = false;
  std::uint32_t extent = 0; // 0: everything
  std::uint32_t sinks = 0;

  [[nodiscard]] auto visible(std::uint32_t query, std::uint32_t key) const -> bool {
    if (key > query) { return false; }
    if (extent == 0) { return true; }
    if (chunked) { return key / extent == query / extent; }
    return key < sinks || key + extent > query; // query − w < key
  }
};

// needed[q][p]: some query q' ≥ q sees p.
using needed_table = std::vector<std::array<bool, max_length + 1>>;
auto needed_by(mask const& m) -> needed_table {
  needed_table out(max_length + 2);
  for (std::uint32_t key = 0; key <= max_length; ++key) {
    bool later = false;
    for (auto query = horizon; query > max_length; --query) { later = later || m.visible(query, key); }
    for (auto query = max_length + 1; query-- > 0;) {
      later = later || m.visible(query, key);
      out[query][key] = later;
    }
  }
  return out;
}

struct failures {
  std::uint32_t kept = 0, blocks = 0, sizes = 0, revived = 0, hit = 0;
};

// Compares everything that resident_range says for one retention with the table.
auto compare(mask const& m, retention const& keeps) -> failures {
  auto const needed = needed_by(m);
  auto const ring = keeps.kind == retention_kind::ring;
  failures bad;
  for (std::uint32_t block = 1; block <= max_block; ++block) {
    logical_block_interval before{};
    for (std::uint32_t query = 0; query <= max_length; ++query) {
      auto const got = resident_range(token_pos{query}, keeps, token_count{block});
      std::uint32_t kept = 0;
      std::uint32_t kept_blocks = 0;
      for (std::uint32_t first = 0; first < query; first += block) {
        bool any = false;
        for (auto key = first; key < std::min(first + block, query); ++key) {
          bad.kept += got.keeps(token_pos{key}) != needed[query][key] ? 1U : 0U;
          kept += needed[query][key] ? 1U : 0U;
          auto const inside = got.sinks(token_count{query}).contains(token_pos{key}) ||
                              got.tail(token_count{query}).contains(token_pos{key});
          bad.kept += inside != needed[query][key] ? 1U : 0U;
          any = any || needed[query][key];
        }
        any = any || first + block > query; // the query's own position lies in it
        auto const index = logical_block{first / block};
        auto const stays =
            got.sink_blocks(token_count{query}).contains(index) || got.tail_blocks(token_count{query}).contains(index);
        bad.blocks += got.keeps(index) != (any || ring) ? 1U : 0U;
        bad.blocks += stays != (any || ring) ? 1U : 0U;
        bad.blocks += got.dead_blocks(token_count{query}).contains(index) == (any || ring) ? 1U : 0U;
        kept_blocks += any ? 1U : 0U;
      }
      bad.sizes += got.kept(token_count{query}).value() != kept ? 1U : 0U;
      bad.sizes += !ring && got.kept_blocks(token_count{query}).value() != kept_blocks ? 1U : 0U;
      bad.sizes +=
          got.sink_end > got.tail_begin || (got.sink_end == got.tail_begin && got.tail_begin != token_pos{}) ? 1U : 0U;
      for (auto key = query; key <= max_length; ++key) {
        bad.kept += got.keeps(token_pos{key}) ? 0U : 1U; // positions in flight stay
      }
      for (auto index = before.begin; index < before.end; index = index + block_count{1}) {
        bad.revived += got.keeps(index) ? 1U : 0U;
      }
      before = got.dead;

      auto const hit = needed_by_hit(token_count{query}, keeps, token_count{block});
      bad.hit += hit.has_value() != (!ring || query == 0) ? 1U : 0U;
      bad.hit += hit && *hit != got ? 1U : 0U;
    }
  }
  return bad;
}

void expect_equal(mask const& m, retention const& keeps) {
  auto const bad = compare(m, keeps);
  CAPTURE(m.chunked, m.extent, m.sinks, name_of(keeps.kind));
  CHECK(bad.kept == 0);
  CHECK(bad.blocks == 0);
  CHECK(bad.sizes == 0);
  CHECK(bad.revived == 0);
  CHECK(bad.hit == 0);
}

} // namespace

TEST_CASE("S27: resident_range equals a brute force for every window, sink count and block", "[model]") {
  for (std::uint32_t window = 1; window <= max_window; ++window) {
    for (std::uint32_t sinks = 0; sinks <= max_sinks; ++sinks) {
      expect_equal({.extent = window, .sinks = sinks},
                   retention::sink_window({.sinks = token_count{sinks}, .window = token_count{window}}));
    }
  }
}

TEST_CASE("B8: resident_range equals a brute force for every chunk size and block", "[model]") {
  for (std::uint32_t chunk = 1; chunk <= max_window; ++chunk) {
    expect_equal({.chunked = true, .extent = chunk}, retention::chunked(token_count{chunk}));
  }
}

TEST_CASE("S30: a ring keeps the positions of its window and gives no block back", "[model]") {
  for (std::uint32_t window = 1; window <= max_window; ++window) {
    for (std::uint32_t sinks = 0; sinks <= max_sinks; ++sinks) {
      expect_equal({.extent = window, .sinks = sinks}, retention::ring({.capacity = token_count{window + sinks + 3},
                                                                        .window = token_count{window},
                                                                        .sinks = token_count{sinks}}));
    }
  }
}

TEST_CASE("S29: a full group keeps everything", "[model]") { expect_equal({}, retention::full()); }

TEST_CASE("S27: a window is one definition for mask, retention and counts (case 66)", "[model]") {
  // self and w − 1 earlier positions, in prefill and in decode
  for (std::uint32_t window = 1; window <= max_window; ++window) {
    for (std::uint32_t sinks = 0; sinks <= max_sinks; ++sinks) {
      auto const rule = attention_rule::sink_window({.sinks = token_count{sinks}, .window = token_count{window}});
      auto const keeps = retention::of(rule);
      for (std::uint32_t query = 0; query < max_length; ++query) {
        std::uint32_t seen = 0;
        bool all_kept = true;
        for (std::uint32_t key = 0; key <= query; ++key) {
          if (rule.visible(token_pos{query}, token_pos{key})) {
            ++seen;
            all_kept = all_kept && resident_range(token_pos{query}, keeps, token_count{1}).keeps(token_pos{key});
          }
        }
        REQUIRE(all_kept);
        REQUIRE(rule.visible_count(token_pos{query}).value() == seen);
        REQUIRE(seen == std::min(query + 1, window + std::min(sinks, query + 1 > window ? query + 1 - window : 0)));
      }
    }
  }
}

TEST_CASE("case 44: a block stays while the settled query still needs it", "[model]") {
  constexpr auto keeps = retention::sliding_window(token_count{128});
  constexpr auto block = token_count{32};
  // the step for p = 158 is still running: p = 31 is needed, block 0 stays
  CHECK(resident_range(token_pos{158}, keeps, block).keeps(token_pos{31}));
  CHECK(resident_range(token_pos{158}, keeps, block).dead.empty());
  // once it is settled, p = 159 is the oldest query and block 0 may go
  CHECK(resident_range(token_pos{159}, keeps, block).dead.size() == block_count{1});
}

TEST_CASE("case 53: a hit of h needs the last w − 1 positions before h", "[model]") {
  constexpr auto keeps = retention::sliding_window(token_count{3});
  std::vector<bool> const cached = {true, true, false, true, true}; // [1, 2, x, 4, 5], one token per block
  std::uint32_t best = 0;
  for (std::uint32_t hit = 1; hit <= 4; ++hit) {
    auto const need = needed_by_hit(token_count{hit}, keeps, token_count{1}).value();
    bool all = true;
    for (std::uint32_t p = 0; p < hit; ++p) { all = all && (cached[p] || !need.keeps(token_pos{p})); }
    best = all ? hit : best;
  }
  CHECK(best == 2);
}

TEST_CASE("S29: a window group needs the last ⌈(w−1)/p_b⌉ blocks of an aligned hit", "[model]") {
  for (std::uint32_t window = 1; window <= max_window; ++window) {
    for (std::uint32_t block = 1; block <= max_block; ++block) {
      auto const hit = token_count{block * 40};
      auto const need = needed_by_hit(hit, retention::sliding_window(token_count{window}), token_count{block}).value();
      REQUIRE(need.kept_blocks(hit).value() == (window - 1 + block - 1) / block);
      REQUIRE(need.tail(hit).size().value() == window - 1);
    }
  }
}

TEST_CASE("B8: the whole chunk dies at once", "[model]") {
  constexpr auto keeps = retention::chunked(token_count{8});
  constexpr auto block = token_count{4};
  CHECK(resident_range(token_pos{15}, keeps, block).dead.size() == block_count{2});
  CHECK(resident_range(token_pos{16}, keeps, block).dead.size() == block_count{4});
  // a hit that ends with a chunk needs nothing
  CHECK(needed_by_hit(token_count{16}, keeps, block)->kept(token_count{16}) == token_count{});
}

TEST_CASE("S30: the earliest resumable position is the first whose needs are met", "[model]") {
  std::vector<retention> all;
  for (std::uint32_t extent = 1; extent <= max_window; ++extent) {
    for (std::uint32_t sinks = 0; sinks <= max_sinks; ++sinks) {
      all.push_back(retention::sink_window({.sinks = token_count{sinks}, .window = token_count{extent}}));
      all.push_back(retention::ring(
          {.capacity = token_count{extent + sinks}, .window = token_count{extent}, .sinks = token_count{sinks}}));
    }
    all.push_back(retention::chunked(token_count{extent}));
  }
  all.push_back(retention::full());
  constexpr std::uint32_t length = 40;
  for (auto const& keeps : all) {
    mask const m{
        .chunked = keeps.kind == retention_kind::chunked, .extent = keeps.extent.value(), .sinks = keeps.sinks.value()};
    for (std::uint32_t present = 0; present <= length; ++present) {
      auto expected = std::uint32_t{UINT32_MAX}; // none
      for (auto target = length + 1; target-- > 0;) {
        bool all_there = true;
        for (std::uint32_t key = 0; key < target; ++key) {
          auto const there = key >= present || key < m.sinks;
          all_there = all_there && (there || !m.visible(target, key));
        }
        expected = all_there ? target : expected;
        auto const got = earliest_resumable(token_pos{target}, {token_pos{present}, token_pos{length}}, keeps);
        CAPTURE(name_of(keeps.kind), m.extent, m.sinks, present, target);
        REQUIRE((got ? got->value() : UINT32_MAX) == expected);
      }
    }
  }
}

TEST_CASE("case 64: a rewind past what a ring still holds is refused, not wrapped", "[model]") {
  // ring of 8 with a window of 8, 20 positions written: [12, 20) are there, so only 19 and 20 can go on
  constexpr auto ring = retention::ring({.capacity = token_count{8}, .window = token_count{8}});
  constexpr position_interval present{token_pos{12}, token_pos{20}};
  CHECK(earliest_resumable(token_pos{15}, present, ring) == token_pos{19});
  CHECK(earliest_resumable(token_pos{19}, present, ring) == token_pos{19});
  CHECK(earliest_resumable(token_pos{20}, present, ring) == token_pos{20});
}

TEST_CASE("S27: resident_range holds at the end of the position range", "[model]") {
  constexpr auto last = token_pos{UINT32_MAX};
  constexpr auto keeps = retention::sliding_window(token_count{UINT32_MAX});
  CHECK(resident_range(last, keeps, token_count{1}).tail_begin == token_pos{1});
  CHECK(resident_range(token_pos{UINT32_MAX - 1}, keeps, token_count{1}).tail_begin == token_pos{});
  CHECK(resident_range(last, retention::sliding_window(token_count{1}), token_count{16}).tail_begin == last);
  CHECK(resident_range(last, retention::full(), token_count{UINT32_MAX}).dead.empty());
}

TEST_CASE("S27: resident_range and what it is made of are constant expressions", "[model]") {
  constexpr auto keeps =
      retention::of(attention_rule::sink_window({.sinks = token_count{4}, .window = token_count{9}}));
  constexpr auto stays = resident_range(token_pos{40}, keeps, token_count{4});
  constexpr auto hit = needed_by_hit(token_count{40}, keeps, token_count{4});
  constexpr auto resume = earliest_resumable(token_pos{40}, {token_pos{30}, token_pos{60}}, keeps);
  constexpr auto kept = stays.kept(token_count{40});
  constexpr auto blocks = stays.kept_blocks(token_count{40});
  CHECK(stays.sinks(token_count{40}) == position_interval{token_pos{0}, token_pos{4}});
  CHECK(stays.tail(token_count{40}) == position_interval{token_pos{32}, token_pos{40}});
  CHECK(stays.dead == logical_block_interval{logical_block{1}, logical_block{8}});
  CHECK(kept == token_count{12});
  CHECK(blocks == block_count{3});
  CHECK(hit == stays);
  CHECK(resume == token_pos{40});
}
