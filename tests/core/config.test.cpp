// SPDX-License-Identifier: Apache-2.0
#include <quire/core/config.hpp>

#include "support/catch_compat.hpp"

TEST_CASE("config: the version is three numbers") {
  static_assert(QUIRE_VERSION_MAJOR >= 0 && QUIRE_VERSION_MINOR >= 0 && QUIRE_VERSION_PATCH >= 0);
  static_assert(QUIRE_VERSION_MAJOR * 10'000 + QUIRE_VERSION_MINOR * 100 + QUIRE_VERSION_PATCH > 0);
  SUCCEED();
}
