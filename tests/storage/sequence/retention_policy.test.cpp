// SPDX-License-Identifier: Apache-2.0
// What the concept takes and refuses, and the standard model: what it lets go against what the mask shows to any later query,
// position by position.
#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/intervals.hpp>
#include <quire/model/resident_blocks.hpp>
#include <quire/model/retention.hpp>
#include <quire/sequence/concepts.hpp>
#include <quire/sequence/standard_retention.hpp>

#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace {
using namespace quire;

// --- the concept ---------------------------------------------------------------------------------------------------
struct good_resident {
  static auto resident(token_pos, retention const&, token_count) -> resident_blocks { return {}; }
};
struct good_resumable {
  static auto earliest_resumable(token_pos at, position_interval, retention const&) -> std::optional<token_pos> {
    return at;
  }
};
struct good_peak {
  static auto peak_blocks(retention const&, token_count, paging) -> block_count { return {}; }
};
struct nothing {};
template <class Resident = good_resident, class Resumable = good_resumable, class Peak = good_peak>
struct assembled : Resident, Resumable, Peak {};
static_assert(retention_policy<assembled<>>);
static_assert(!retention_policy<int>);
static_assert(!retention_policy<void>);
static_assert(!retention_policy<assembled<nothing>>);
static_assert(!retention_policy<assembled<good_resident, nothing>>);
static_assert(!retention_policy<assembled<good_resident, good_resumable, nothing>>);

struct resident_interval {
  static auto resident(token_pos, retention const&, token_count) -> logical_block_interval { return {}; }
};
struct resident_not_static {
  auto resident(token_pos, retention const&, token_count) -> resident_blocks { return {}; }
};
struct resident_changes_what_is_kept {
  static auto resident(token_pos, retention&, token_count) -> resident_blocks { return {}; }
};
struct resident_by_length {
  static auto resident(token_count, retention const&, token_count) -> resident_blocks { return {}; }
};
static_assert(!retention_policy<assembled<resident_interval>>);
static_assert(!retention_policy<assembled<resident_not_static>>);
static_assert(!retention_policy<assembled<resident_changes_what_is_kept>>);
static_assert(!retention_policy<assembled<resident_by_length>>);
struct resumable_always {
  static auto earliest_resumable(token_pos at, position_interval, retention const&) -> token_pos { return at; }
};
struct resumable_not_static {
  auto earliest_resumable(token_pos at, position_interval, retention const&) -> std::optional<token_pos> { return at; }
};
static_assert(!retention_policy<assembled<good_resident, resumable_always>>);
static_assert(!retention_policy<assembled<good_resident, resumable_not_static>>);
struct peak_number {
  static auto peak_blocks(retention const&, token_count, paging) -> std::uint32_t { return {}; }
};
struct peak_without_steps {
  static auto peak_blocks(retention const&, token_count, token_count) -> block_count { return {}; }
};
struct peak_not_static {
  auto peak_blocks(retention const&, token_count, paging) -> block_count { return {}; }
};
static_assert(!retention_policy<assembled<good_resident, good_resumable, peak_number>>);
static_assert(!retention_policy<assembled<good_resident, good_resumable, peak_without_steps>>);
static_assert(!retention_policy<assembled<good_resident, good_resumable, peak_not_static>>);

// --- the standard model ----------------------------------------------------------------------------------------------
constexpr std::uint32_t horizon = 130; // beyond what any query below sees

// Each retention beside the mask it serves, which is written down here and nowhere else. `in_place`: slots are reused, no
// block goes.
struct sees_all {
  static constexpr retention keeps = retention::full();
  static constexpr bool in_place = false;
  static auto sees(std::uint32_t query, std::uint32_t key) -> bool { return key <= query; }
};
template <std::uint32_t W>
struct sees_window {
  static constexpr retention keeps = retention::sliding_window(token_count{W});
  static constexpr bool in_place = false;
  static auto sees(std::uint32_t query, std::uint32_t key) -> bool { return key <= query && key + W > query; }
};
template <std::uint32_t S, std::uint32_t W>
struct sees_sinks {
  static constexpr retention keeps = retention::sink_window({.sinks = token_count{S}, .window = token_count{W}});
  static constexpr bool in_place = false;
  static auto sees(std::uint32_t query, std::uint32_t key) -> bool {
    return key <= query && (key < S || key + W > query);
  }
};
template <std::uint32_t C>
struct sees_chunk {
  static constexpr retention keeps = retention::chunked(token_count{C});
  static constexpr bool in_place = false;
  static auto sees(std::uint32_t query, std::uint32_t key) -> bool { return key <= query && key / C == query / C; }
};
template <std::uint32_t C, std::uint32_t W, std::uint32_t S>
struct sees_ring : sees_sinks<S, W> {
  static constexpr retention keeps =
      retention::ring({.capacity = token_count{C}, .window = token_count{W}, .sinks = token_count{S}});
  static constexpr bool in_place = true;
};

// Does a query at `oldest` or later see any position of the block?
template <class Mask>
auto needed(std::uint32_t oldest, std::uint32_t block, std::uint32_t p_b) -> bool {
  for (auto key = block * p_b; key < (block + 1) * p_b; ++key) {
    if (key >= oldest) { return true; } // not computed yet, or the query's own
    for (auto query = oldest; query < horizon; ++query) {
      if (Mask::sees(query, key)) { return true; }
    }
  }
  return false;
}
auto dead_blocks(std::uint32_t oldest, retention const& keeps, std::uint32_t p_b) -> std::uint32_t {
  return standard_retention::resident(token_pos{oldest}, keeps, token_count{p_b}).dead.size().value();
}
} // namespace

#define QUIRE_TEST_MASKS                                                                                              \
  sees_all, sees_window<1>, sees_window<7>, sees_window<16>, sees_window<64>, (sees_sinks<0, 5>), (sees_sinks<1, 1>), \
      (sees_sinks<4, 6>), (sees_sinks<6, 64>), sees_chunk<1>, sees_chunk<5>, sees_chunk<8>, (sees_ring<9, 6, 0>),     \
      (sees_ring<12, 6, 3>)

TEMPLATE_TEST_CASE("S27: what is kept lets go exactly the blocks that no later query sees", "", QUIRE_TEST_MASKS) {
  for (std::uint32_t p_b = 1; p_b <= 9; ++p_b) {
    auto before = logical_block{};
    for (std::uint32_t oldest = 0; oldest <= 64; ++oldest) {
      auto const dead = standard_retention::resident(token_pos{oldest}, TestType::keeps, token_count{p_b}).dead;
      CAPTURE(p_b, oldest);
      for (std::uint32_t block = 0; block * p_b <= oldest + 9; ++block) {
        REQUIRE(dead.contains(logical_block{block}) == (!TestType::in_place && !needed<TestType>(oldest, block, p_b)));
      }
      if (dead.begin < dead.end) {
        REQUIRE(dead.end >= before); // never needed again
        before = dead.end;
      }
    }
  }
}

TEMPLATE_TEST_CASE("S30: a sequence goes on at the first position whose query finds all it sees", "",
                   QUIRE_TEST_MASKS) {
  constexpr auto sinks = TestType::keeps.sinks.value();
  for (std::uint32_t end = 0; end <= 24; ++end) {
    for (std::uint32_t begin = 0; begin <= end; ++begin) {
      for (std::uint32_t target = 0; target <= end; ++target) {
        auto expected = std::optional<std::uint32_t>{};
        for (auto at = target; at <= end && !expected; ++at) {
          auto whole = true;
          for (std::uint32_t key = 0; key < at; ++key) {
            whole = whole && (!TestType::sees(at, key) || key < sinks || key >= begin);
          }
          if (whole) { expected = at; }
        }
        auto const got = standard_retention::earliest_resumable(token_pos{target}, {token_pos{begin}, token_pos{end}},
                                                                TestType::keeps);
        CAPTURE(begin, end, target);
        REQUIRE(got.has_value() == expected.has_value());
        if (got) { REQUIRE(got->value() == *expected); }
      }
    }
  }
}

TEMPLATE_TEST_CASE("S16: no schedule of steps holds more blocks than the peak", "", QUIRE_TEST_MASKS) {
  if constexpr (!TestType::in_place) {
    for (auto const p_b : {1U, 3U, 4U}) {
      for (auto const step : {1U, 2U, 5U}) {
        for (auto const length : {0U, 1U, 7U, 30U}) {
          auto most = std::uint32_t{0};
          for (std::uint32_t at = 0; at < length; at += step) { // what is dead goes first, then the step takes blocks
            auto const end = std::min(at + step, length);
            auto const blocks = (end + p_b - 1) / p_b;
            most = std::max(most, blocks - std::min(blocks, dead_blocks(at, TestType::keeps, p_b)));
          }
          auto const pages = paging{.block_tokens = token_count{p_b}, .step = token_count{step}};
          CAPTURE(p_b, step, length);
          CHECK(standard_retention::peak_blocks(TestType::keeps, token_count{length}, pages) >= block_count{most});
        }
      }
    }
  }
}

TEST_CASE("S27: what keeps everything lets nothing go, however long the sequence") {
  for (auto const position : {0U, 1U, 4095U, 0x7fff'ffffU}) {
    for (auto const unit : {1U, 3U, 16U}) { CHECK(dead_blocks(position, retention::full(), unit) == 0); }
  }
}

TEST_CASE("case 44: blocks of a window go by the oldest query in flight, not by the length") {
  auto const keeps = retention::sliding_window(token_count{128});
  // the step for position 158 still runs, so 31 is needed
  CHECK(dead_blocks(158, keeps, 32) == 0);
  CHECK(dead_blocks(159, keeps, 32) == 1);
}

TEST_CASE("S27: windows larger than the sequence, and blocks larger than the window") {
  auto const wide = retention::sliding_window(token_count{4096});
  auto const narrow = retention::sliding_window(token_count{3});
  CHECK(dead_blocks(4095, wide, 16) == 0);
  CHECK(dead_blocks(4111, wide, 16) == 1);
  CHECK(dead_blocks(17, narrow, 16) == 0);
  CHECK(dead_blocks(18, narrow, 16) == 1);
}

TEST_CASE("B8: learned sink logits retain nothing") {
  auto rule = attention_rule::sliding_window(token_count{128});
  rule.learned_sink = true;
  CHECK(retention::of(rule) == sees_window<128>::keeps);
  CHECK(retention::of(rule).sinks == token_count{0});
  CHECK(sees_sinks<0, 128>::keeps == sees_window<128>::keeps);
}
