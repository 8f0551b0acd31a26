// SPDX-License-Identifier: Apache-2.0
// Lengths of a sequence, by every combination of small ones against what the words say.
#include <quire/sequence/sequence_lengths.hpp>

#include "support/catch_compat.hpp"

#include <cstdint>

using namespace quire;

TEST_CASE("S22: what is stored behind the length is skipped, and covered by the tables") {
  constexpr auto hit = sequence_lengths{.committed = 7, .known = 7, .skip_until = 8};
  static_assert(hit.skips() == 1);
  static_assert(hit.covered() == 8);
  for (std::uint32_t committed = 0; committed <= 9; ++committed) {
    for (std::uint32_t until = 0; until <= 9; ++until) {
      auto const at = sequence_lengths{.committed = committed, .known = 0, .skip_until = until};
      auto skipped = std::uint32_t{0}; // counted, not subtracted
      for (std::uint32_t position = committed; position < until; ++position) { ++skipped; }
      CAPTURE(committed, until);
      CHECK(at.skips() == skipped);
      CHECK(at.covered() == committed + skipped);
    }
  }
}

TEST_CASE("B6: a cut forgets what was known and stored behind it, and keeps what was known before it") {
  for (std::uint32_t committed = 0; committed <= 6; ++committed) {
    for (std::uint32_t known = 0; known <= committed; ++known) {
      for (std::uint32_t length = 0; length <= committed; ++length) {
        auto at = sequence_lengths{.committed = committed, .known = known, .skip_until = committed + 1};
        at.truncate(length);
        CAPTURE(committed, known, length);
        CHECK(at.committed == length);
        CHECK(at.known == (known < length ? known : length));
        CHECK(at.skips() == 0);
        CHECK(at.covered() == length);
        CHECK(at.known <= at.committed);
      }
    }
  }
}
