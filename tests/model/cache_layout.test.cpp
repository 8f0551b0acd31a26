// SPDX-License-Identifier: Apache-2.0

/// \file
/// The layout descriptor, index widths and exact page counts.

#include "support/catch_compat.hpp"

#include <quire/core/config_error.hpp>
#include <quire/model/cache_layout.hpp>
#include <quire/model/element_format.hpp>
#include <quire/model/index_width.hpp>
#include <quire/model/model_spec.hpp>
#include <quire/model/page_fit.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace {

using namespace quire;

auto group_of(layer_spec const& layer, std::uint32_t layers = 2) -> layer_group {
  return model_spec{{.layers = std::vector<layer_spec>(layers, layer), .max_positions = token_count{4096}}}.groups()[0];
}
auto gqa(element_format format = {}) -> layer_spec {
  return {
      .query_heads = 6, .kv_heads = 3, .key_width = 5, .value_width = 7, .key_format = format, .value_format = format};
}

// What every layout promises.
void check_invariants(cache_layout const& layout, layer_group const& group) {
  auto end = std::uint64_t{0};
  for (auto const& plane : layout.planes()) {
    REQUIRE(plane.offset.value() >= end); // no overlap, in order
    REQUIRE(plane.offset.value() % layout.alignment().value() == 0);
    REQUIRE(plane.offset.value() - end < layout.alignment().value());
    REQUIRE(plane.elements > 0);
    end = plane.offset.value() + plane.bytes.value();
  }
  REQUIRE(layout.layer_block_bytes().value() >= end);
  REQUIRE(layout.layer_block_bytes().value() - end < layout.alignment().value());
  REQUIRE(layout.layer_block_bytes().value() % layout.alignment().value() == 0);
  REQUIRE(layout.block_bytes().value() == layout.layer_block_bytes().value() * group.layers());
  REQUIRE(layout.data_bytes() + layout.scale_bytes() + layout.padding_bytes() == layout.block_bytes());
}

} // namespace

TEST_CASE("S10: a layout without alignment is exactly the sum of its planes", "[model]") {
  auto const group = group_of(gqa());
  for (std::uint32_t block = 1; block <= 17; ++block) {
    auto const layout = cache_layout{group, token_count{block}, byte_count{1}};
    check_invariants(layout, group);
    CHECK(layout.layer_block_bytes().value() == block * 3 * (5 + 7) * 2);
    CHECK(layout.padding_bytes() == byte_count{});
    CHECK(layout.total_bytes(block_count{10}).value() == 10 * 2 * block * 3 * (5 + 7) * 2);
    CHECK(block_bytes(group, token_count{block}, byte_count{1}) == layout.block_bytes());
  }
}

TEST_CASE("S10: planes are aligned and padding is counted apart", "[model]") {
  for (auto const& scales : {scale_spec::none(), scale_spec::per_token_head(), scale_spec::per_block_head(dtype::f16),
                             scale_spec::per_group(2), scale_spec::per_group(2, dtype::f32, scale_placement::in_row)}) {
    auto const group = group_of(gqa({.type = dtype::int8, .scales = scales}));
    for (std::uint64_t align = 1; align <= 256; align *= 2) {
      for (std::uint32_t block = 1; block <= 9; ++block) {
        auto const layout = cache_layout{group, token_count{block}, byte_count{align}};
        check_invariants(layout, group);
        auto const own =
            scales.granularity != scale_granularity::none && scales.placement == scale_placement::own_plane;
        REQUIRE(layout.planes().size() == (own ? 4U : 2U));
        REQUIRE((layout.scale_bytes() != byte_count{}) == own);
      }
    }
  }
  // 16 tokens, 3 heads, 5 int8 elements: 240 bytes of data, 16 · 3 f32 scales: 192 bytes
  auto const layout = cache_layout{group_of(gqa({.type = dtype::int8, .scales = scale_spec::per_token_head()}), 1),
                                   token_count{16}, byte_count{256}};
  CHECK(layout.planes()[0].bytes == byte_count{240});
  CHECK(layout.planes()[1].part == plane_part::scales);
  CHECK(layout.planes()[1].offset == byte_count{256});
  CHECK(layout.planes()[1].bytes == byte_count{192});
  CHECK(layout.planes()[2].offset == byte_count{512});
  CHECK(layout.planes()[2].bytes == byte_count{16 * 3 * 7});
  CHECK(layout.planes()[3].offset == byte_count{1024});
  CHECK(layout.layer_block_bytes() == byte_count{1280});
}

TEST_CASE("case 121: the layout carries its block size", "[model]") {
  auto const group = group_of(gqa());
  for (std::uint32_t block : {1U, 2U, 3U, 5U, 16U, 17U, 64U}) {
    auto const layout = cache_layout{group, token_count{block}};
    CHECK(layout.block_tokens() == token_count{block});
    CHECK(layout.planes()[0].elements == block * 3 * 5);
    CHECK(layout.planes()[1].elements == block * 3 * 7);
    check_invariants(layout, group);
  }
}

TEST_CASE("S13: a latent plane of one type is indexed in elements, a mixed one in bytes", "[model]") {
  layer_spec mla{.kind = layer_kind::latent,
                 .query_heads = 4,
                 .key_width = 192,
                 .value_width = 128,
                 .latent_rank = 512,
                 .rotary_width = 64};
  auto const plain = cache_layout{group_of(mla, 1), token_count{64}};
  REQUIRE(plain.planes().size() == 1);
  CHECK(plain.planes()[0].elements == 64 * 576);
  mla.key_format = {.type = dtype::fp8_e4m3, .scales = scale_spec::per_group(128, dtype::f32, scale_placement::in_row)};
  auto const mixed = cache_layout{group_of(mla, 1), token_count{64}};
  REQUIRE(mixed.planes().size() == 1);
  CHECK(mixed.planes()[0].elements == 64 * 656);
  CHECK(mixed.block_bytes() == byte_count{64 * 656});
}

TEST_CASE("S10: impossible layouts are refused with what would work", "[model]") {
  auto const group = group_of(gqa());
  CHECK_THROWS_WITH((cache_layout{group, token_count{0}}), quire_test::ContainsSubstring("a block of 0 tokens"));
  CHECK_THROWS_WITH((cache_layout{group, token_count{16}, byte_count{0}}),
                    quire_test::ContainsSubstring("power of two"));
  CHECK_THROWS_WITH((cache_layout{group, token_count{16}, byte_count{24}}),
                    quire_test::ContainsSubstring("power of two"));
  CHECK_THROWS_AS((cache_layout{layer_group{}, token_count{16}}), config_error);
}

TEST_CASE("case 57: only groups of equal layout may share raw blocks", "[model]") {
  // equal bytes, other block sizes: 16 tokens of 10 elements, 32 tokens of 5
  layer_spec wide{.query_heads = 1, .kv_heads = 1, .key_width = 10, .value_width = 10};
  layer_spec narrow{.query_heads = 1, .kv_heads = 1, .key_width = 5, .value_width = 5};
  auto const a = cache_layout{group_of(wide), token_count{16}};
  auto const b = cache_layout{group_of(narrow), token_count{32}};
  CHECK(a.block_bytes() == b.block_bytes());
  CHECK(a != b);
  CHECK(a == cache_layout{group_of(wide), token_count{16}});
}

TEST_CASE("case 115: 64000 blocks of 65536 elements need 64-bit offsets", "[model]") {
  constexpr block_stride stride{32 * 16 * 16 * 8};
  CHECK_THROWS_WITH(require_addressable(block_count{64000}, stride, index_width::int32, "keys"),
                    quire_test::ContainsSubstring("4194303999")); // the last of 4,194,304,000 offsets
  CHECK_NOTHROW(require_addressable(block_count{64000}, stride, index_width::int64, "keys"));
  CHECK(addressable_blocks(stride, index_width::int32) == block_count{32768});
  CHECK_NOTHROW(require_addressable(block_count{32768}, stride, index_width::int32, "keys"));
  CHECK_THROWS_AS(require_addressable(block_count{32769}, stride, index_width::int32, "keys"), config_error);

  // the same shape through a layout: one plane of 16 tokens, 32 heads of 128
  layer_spec const layer{.query_heads = 32, .kv_heads = 32, .key_width = 128, .value_width = 128};
  auto const layout = cache_layout{group_of(layer), token_count{16}};
  CHECK(layout.planes()[0].elements == stride.units);
  CHECK(layout.addressable(index_width::int32) == block_count{32768});
  CHECK_THROWS_AS(layout.require_addressable(block_count{64000}, index_width::int32), config_error);
  CHECK_NOTHROW(layout.require_addressable(block_count{64000}, index_width::int64));
}

TEST_CASE("case 116: a stride of 1,039,680 overflows 32 bits inside block 2065", "[model]") {
  constexpr block_stride stride{1039680};
  CHECK(2066ULL * 1039680 == 2147978880ULL); // the offset of the report, beyond 2^31 − 1
  CHECK(addressable_blocks(stride, index_width::int32) == block_count{2065});
  for (std::uint32_t blocks = 2060; blocks < 2070; ++blocks) {
    auto const last = std::uint64_t{blocks} * stride.units - 1;
    auto const fits = last <= 2147483647ULL;
    CAPTURE(blocks);
    if (fits) {
      CHECK_NOTHROW(require_addressable(block_count{blocks}, stride, index_width::int32, "keys"));
    } else {
      CHECK_THROWS_AS(require_addressable(block_count{blocks}, stride, index_width::int32, "keys"), config_error);
    }
  }
  CHECK_THROWS_AS(addressable_blocks(block_stride{0}, index_width::int32), config_error);
  CHECK(addressable_blocks(block_stride{1}, index_width::int64) == block_count{UINT32_MAX});
  CHECK(addressable_blocks(block_stride{1ULL << 62}, index_width::int64) == block_count{2});
}

TEST_CASE("case 124: blocks that straddle page borders are not counted", "[model]") {
  constexpr page_fit fit{.page_bytes = 10, .block_bytes = 3};
  CHECK(fit.blocks_in_page(0) == 3);
  CHECK(fit.blocks_in_page(1) == 2);
  CHECK(fit.blocks_in_page(2) == 3);
  CHECK(fit.blocks_in_pages(3) == 8); // not 3 · ⌊10/3⌋ = 9
  for (std::uint64_t page = 1; page <= 24; ++page) {
    for (std::uint64_t block = 1; block <= 24; ++block) {
      auto const some = page_fit{.page_bytes = page, .block_bytes = block};
      for (std::uint64_t pages = 0; pages <= 60; ++pages) {
        std::uint64_t expected = 0;
        for (std::uint64_t b = 0; (b + 1) * block <= pages * page; ++b) {
          expected += b * block / page == ((b + 1) * block - 1) / page ? 1U : 0U;
        }
        REQUIRE(some.blocks_in_pages(pages) == expected);
      }
    }
  }
  CHECK((page_fit{.page_bytes = 4, .block_bytes = 7}.blocks_in_pages(1000)) == 0);
  CHECK_THROWS_AS((page_fit{.page_bytes = 0, .block_bytes = 3}.blocks_in_page(0)), config_error);
  CHECK_THROWS_AS((page_fit{.page_bytes = 3, .block_bytes = 0}.blocks_in_pages(1)), config_error);
  CHECK_THROWS_AS(fit.blocks_in_page(UINT64_MAX), config_error);
}
