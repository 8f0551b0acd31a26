// SPDX-License-Identifier: Apache-2.0

/// \file
/// Bytes of planes with every kind of scales, and the names of formats.

#include "support/catch_compat.hpp"

#include <quire/core/config_error.hpp>
#include <quire/model/element_format.hpp>
#include <quire/model/plane_spec.hpp>

#include <cstdint>
#include <set>
#include <string>

using namespace quire;

TEST_CASE("S10: bytes per token of a plane are heads times rows", "[model]") {
  constexpr plane_spec keys{.kind = plane_kind::key, .heads = 8, .width = 128};
  CHECK(keys.bytes_per_token() == byte_count{8 * 128 * 2});
  CHECK(keys.data_bytes(token_count{16}) == byte_count{16 * 8 * 128 * 2});
  CHECK(keys.own_scale_bytes(token_count{16}) == byte_count{0});
}

TEST_CASE("S6: 4-bit rows start at whole bytes", "[model]") {
  constexpr plane_spec even{.heads = 3, .width = 64, .format = {.type = dtype::int4}};
  constexpr plane_spec odd{.heads = 3, .width = 5, .format = {.type = dtype::int4}};
  CHECK(even.bytes_per_token() == byte_count{3 * 32});
  CHECK(odd.bytes_per_token() == byte_count{3 * 3}); // 2.5 bytes of elements in 3
}

TEST_CASE("S6: scales count where they are kept", "[model]") {
  auto const with = [](scale_spec scales, std::uint32_t width = 128) {
    return plane_spec{.heads = 4, .width = width, .format = {.type = dtype::int8, .scales = scales}};
  };
  constexpr auto sixteen = token_count{16};
  constexpr std::uint64_t data = 4 * 128;

  CHECK(with(scale_spec::none()).bytes_per_token().value() == data);
  CHECK(with(scale_spec::per_tensor()).bytes_per_token().value() == data);
  CHECK(with(scale_spec::per_tensor()).own_scales(sixteen) == 0);

  auto const token_head = with(scale_spec::per_token_head(dtype::f16));
  CHECK(token_head.bytes_per_token().value() == data + 4 * 2);
  CHECK(token_head.own_scale_bytes(sixteen).value() == 16 * 4 * 2);

  auto const block_head = with(scale_spec::per_block_head());
  CHECK(block_head.bytes_per_token().value() == data); // nothing per token
  CHECK(block_head.own_scale_bytes(sixteen).value() == 4 * 4);
  CHECK(block_head.own_scale_bytes(token_count{1}).value() == 4 * 4);

  auto const group = with(scale_spec::per_group(32, dtype::fp8_e4m3));
  CHECK(group.bytes_per_token().value() == data + 4 * 4);
  CHECK(with(scale_spec::per_group(32), 100).scales_per_row() == 4); // the last group is short

  auto const in_row = with(scale_spec::per_group(32, dtype::f32, scale_placement::in_row));
  CHECK(in_row.bytes_per_token().value() == data + 4 * 4 * 4);
  CHECK(in_row.row_bytes().value() == 128 + 4 * 4);
  CHECK(in_row.own_scales(sixteen) == 0);
  CHECK(in_row.data_bytes(sixteen).value() == 16 * (data + 64));

  CHECK_THROWS_AS(scale_spec::per_group(0), config_error);
}

TEST_CASE("S13: a latent row is the latent and the rotary key", "[model]") {
  constexpr plane_spec latent{.kind = plane_kind::latent, .width = 512, .tail_width = 64};
  CHECK(latent.bytes_per_token() == byte_count{1152});
}

TEST_CASE("S6: lossy formats have names, one each", "[model]") {
  std::set<std::string> names;
  std::size_t formats = 0;
  for (auto const type : {dtype::bf16, dtype::f16, dtype::fp8_e4m3, dtype::fp8_e5m2, dtype::int8, dtype::int4}) {
    for (auto const& scales :
         {scale_spec::none(), scale_spec::per_tensor(), scale_spec::per_block_head(),
          scale_spec::per_block_head(dtype::f16), scale_spec::per_token_head(), scale_spec::per_group(32),
          scale_spec::per_group(128), scale_spec::per_group(128, dtype::f32, scale_placement::in_row)}) {
      auto const format = element_format{.type = type, .scales = scales};
      CHECK(format.approximate() == is_quantised(type));
      names.insert(format.name());
      ++formats;
    }
  }
  CHECK(names.size() == formats);
  CHECK(element_format{}.name() == "bf16");
  CHECK(element_format{.type = dtype::fp8_e4m3, .scales = scale_spec::per_group(128)}.name() ==
        "fp8_e4m3/group128:f32");
}

TEST_CASE("case 115: plane sizes beyond 64 bits are refused", "[model]") {
  constexpr plane_spec huge{.heads = UINT32_MAX, .width = UINT32_MAX};
  CHECK_THROWS_AS(huge.bytes_per_token(), config_error);
  constexpr plane_spec wide{.heads = UINT32_MAX, .width = 1};
  CHECK_NOTHROW(wide.data_bytes(token_count{UINT32_MAX / 2}));
  constexpr plane_spec wider{.heads = UINT32_MAX, .width = 2};
  CHECK_THROWS_AS(wider.data_bytes(token_count{UINT32_MAX}), config_error);
}
