// SPDX-License-Identifier: Apache-2.0

/// \file
/// Element types and their sizes.

#include "support/catch_compat.hpp"

#include <quire/core/config_error.hpp>
#include <quire/model/dtype.hpp>

#include <cstdint>
#include <set>
#include <string_view>

using namespace quire;

TEST_CASE("S6: element sizes are exact, half bytes included", "[model]") {
  CHECK(bits_of(dtype::f64) == 64);
  CHECK(bits_of(dtype::f32) == 32);
  CHECK(bits_of(dtype::f16) == 16);
  CHECK(bits_of(dtype::bf16) == 16);
  CHECK(bits_of(dtype::fp8_e4m3) == 8);
  CHECK(bits_of(dtype::fp8_e5m2) == 8);
  CHECK(bits_of(dtype::int8) == 8);
  CHECK(bits_of(dtype::int4) == 4);
  CHECK(bits_of(dtype::fp4_e2m1) == 4);
  CHECK(packed_bytes(dtype::int4, 128) == byte_count{64});
  CHECK(packed_bytes(dtype::int4, 5) == byte_count{3}); // rounded up once, at the end
  CHECK(packed_bytes(dtype::int4, 0) == byte_count{0});
  CHECK(packed_bytes(dtype::bf16, 3) == byte_count{6});
}

TEST_CASE("S6: names of types are distinct and read back", "[model]") {
  std::set<std::string_view> seen;
  for (auto value = 0; value <= static_cast<int>(dtype::fp4_e2m1); ++value) {
    auto const type = static_cast<dtype>(value);
    CHECK(parse_dtype(name_of(type)) == type);
    CHECK(bits_of(type) > 0);
    CHECK(is_quantised(type) == (bits_of(type) <= 8));
    seen.insert(name_of(type));
  }
  CHECK(seen.size() == 9);
  CHECK_FALSE(parse_dtype("BF16"));
  CHECK_FALSE(parse_dtype(""));
}

TEST_CASE("case 115: sizes beyond 64 bits are refused, not wrapped", "[model]") {
  CHECK_THROWS_AS(packed_bytes(dtype::f32, UINT64_MAX / 2), config_error);
}
