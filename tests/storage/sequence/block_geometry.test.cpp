// SPDX-License-Identifier: Apache-2.0
// Positions to blocks and back, against the definitions and a count by hand.
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/sequence/block_geometry.hpp>

#include "support/catch_compat.hpp"

#include <cstdint>
#include <limits>

using namespace quire;

TEST_CASE("S14: index and offset are division and remainder for every block size") {
  for (std::uint32_t unit = 1; unit <= 70; ++unit) {
    auto const geometry = block_geometry{token_count{unit}};
    CHECK(geometry.block_tokens() == unit);
    std::uint32_t block = 0;
    std::uint32_t offset = 0;
    auto wrong = 0;
    for (std::uint32_t t = 0; t < 1000; ++t) { // counted, not divided
      wrong += geometry.index(t) != block || geometry.offset(t) != offset;
      wrong += geometry.blocks(t) != block + (offset > 0 ? 1 : 0);
      if (++offset == unit) {
        offset = 0;
        ++block;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("S16: n tokens take n / p_b blocks rounded up, and waste less than one block") {
  auto const four = block_geometry{token_count{4}};
  CHECK(four.blocks(0) == 0);
  CHECK(four.blocks(1) == 1);
  CHECK(four.blocks(4) == 1);
  CHECK(four.blocks(5) == 2);
  CHECK(four.blocks(10) == 3);
  CHECK(four.blocks(std::numeric_limits<std::uint32_t>::max()) == 1U << 30U);
  CHECK(block_geometry{token_count{16}}.blocks(8192) == 512);
}

TEST_CASE("block_geometry: a block of 0 tokens is refused") {
  CHECK_THROWS_AS(block_geometry{token_count{0}}, config_error);
}
