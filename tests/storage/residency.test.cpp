// SPDX-License-Identifier: Apache-2.0
// One suite for every residency: what it lets go against what the mask shows to any later query, position by position.
#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/intervals.hpp>
#include <quire/model/retention.hpp>
#include <quire/sequence/chunked_residency.hpp>
#include <quire/sequence/concepts.hpp>
#include <quire/sequence/full_residency.hpp>
#include <quire/sequence/ring_residency.hpp>
#include <quire/sequence/sink_window_residency.hpp>
#include <quire/sequence/sliding_window_residency.hpp>

#include "support/catch_compat.hpp"

#include <cstdint>

namespace {
using namespace quire;

constexpr std::uint32_t horizon = 130; // beyond what any query below sees

// Each residency beside the mask it serves, which is written down here and nowhere else. `in_place`: slots are reused, no block goes.
struct sees_all {
  using residency = full_residency;
  static constexpr bool in_place = false;
  static auto sees(std::uint32_t query, std::uint32_t key) -> bool { return key <= query; }
};
template <std::uint32_t W>
struct sees_window {
  using residency = sliding_window_residency<W>;
  static constexpr bool in_place = false;
  static auto sees(std::uint32_t query, std::uint32_t key) -> bool { return key <= query && key + W > query; }
};
template <std::uint32_t S, std::uint32_t W>
struct sees_sinks {
  using residency = sink_window_residency<S, W>;
  static constexpr bool in_place = false;
  static auto sees(std::uint32_t query, std::uint32_t key) -> bool {
    return key <= query && (key < S || key + W > query);
  }
};
template <std::uint32_t C>
struct sees_chunk {
  using residency = chunked_residency<C>;
  static constexpr bool in_place = false;
  static auto sees(std::uint32_t query, std::uint32_t key) -> bool { return key <= query && key / C == query / C; }
};
template <std::uint32_t C, std::uint32_t W, std::uint32_t S>
struct sees_ring : sees_sinks<S, W> {
  using residency = ring_residency<C, W, S>;
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
} // namespace

TEMPLATE_TEST_CASE("S27: a residency lets go exactly the leading blocks that no later query sees", "", sees_all,
                   sees_window<1>, sees_window<7>, sees_window<16>, sees_window<64>, (sees_sinks<0, 5>),
                   (sees_sinks<1, 1>), (sees_sinks<4, 6>), (sees_sinks<6, 64>), sees_chunk<1>, sees_chunk<5>,
                   sees_chunk<8>, (sees_ring<9, 6, 0>), (sees_ring<12, 6, 3>)) {
  using residency = typename TestType::residency;
  static_assert(residency_policy<residency>);
  for (std::uint32_t p_b = 1; p_b <= 9; ++p_b) {
    auto before = block_count{};
    for (std::uint32_t oldest = 0; oldest <= 64; ++oldest) {
      auto expected = std::uint32_t{0};
      while (!TestType::in_place && !needed<TestType>(oldest, expected, p_b)) { ++expected; }
      auto const got = residency::releasable(token_pos{oldest}, token_count{p_b});
      CAPTURE(p_b, oldest);
      REQUIRE(got == block_count{expected});
      REQUIRE(got >= before); // never needed again
      before = got;
      if constexpr (requires { residency::dead(token_pos{}, token_count{1}); }) {
        auto const dead = residency::dead(token_pos{oldest}, token_count{p_b});
        for (std::uint32_t block = 0; block * p_b <= oldest + 9; ++block) {
          REQUIRE(dead.contains(logical_block{block}) ==
                  (!TestType::in_place && !needed<TestType>(oldest, block, p_b)));
        }
      }
    }
  }
}

TEST_CASE("case 44: blocks of a window go by the oldest query in flight, not by the length") {
  using residency = sliding_window_residency<128>;
  // the step for position 158 still runs, so 31 is needed
  CHECK(residency::releasable(token_pos{158}, token_count{32}) == block_count{0});
  CHECK(residency::releasable(token_pos{159}, token_count{32}) == block_count{1});
}

TEST_CASE("S27: windows larger than the sequence, and blocks larger than the window") {
  CHECK(sliding_window_residency<4096>::releasable(token_pos{4095}, token_count{16}) == block_count{0});
  CHECK(sliding_window_residency<4096>::releasable(token_pos{4111}, token_count{16}) == block_count{1});
  CHECK(sliding_window_residency<3>::releasable(token_pos{17}, token_count{16}) == block_count{0});
  CHECK(sliding_window_residency<3>::releasable(token_pos{18}, token_count{16}) == block_count{1});
}

TEST_CASE("B8: learned sink logits retain nothing") {
  auto rule = attention_rule::sliding_window(token_count{128});
  rule.learned_sink = true;
  CHECK(retention::of(rule) == sliding_window_residency<128>::keeps);
  CHECK(retention::of(rule).sinks == token_count{0});
  CHECK(sink_window_residency<0, 128>::keeps == sliding_window_residency<128>::keeps);
}
