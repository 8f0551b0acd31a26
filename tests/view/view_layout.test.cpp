// SPDX-License-Identifier: Apache-2.0
#include <quire/view/view_layout.hpp>

#include "support/catch_compat.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {
using namespace quire;

constexpr auto blocks = 3U;
constexpr auto tokens = 4U;
constexpr auto heads = 2U;

constexpr auto shape(layout_role role, std::uint32_t dim, std::uint32_t pool = blocks) -> layout_shape {
  return {.role = role,
          .blocks = block_count{pool},
          .block_tokens = token_count{tokens},
          .heads = heads,
          .dim = dim,
          .element_bits = 16};
}
constexpr auto key = shape(layout_role::key, 6);
constexpr auto value = shape(layout_role::value, 4);

// Every element of every plane has a place of its own, and together they fill their tensors without a gap.
void check_dense(view_layout const& layout) {
  auto seen = std::set<std::pair<std::uint32_t, std::uint64_t>>{};
  auto elements = std::uint64_t{0};
  auto end = std::vector<std::uint64_t>(view_layout::max_planes, 0);
  for (auto const& plane : layout.planes()) {
    for (auto b = 0U; b < plane.blocks; ++b) {
      for (auto t = 0U; t < plane.block_tokens; ++t) {
        for (auto h = 0U; h < plane.heads; ++h) {
          for (auto d = 0U; d < plane.dim; ++d) {
            auto const at = plane.offset({.block = block_id{b}, .token = token_count{t}, .head = h, .dim = d});
            seen.emplace(plane.tensor, at);
            ++elements;
            end[plane.tensor] = std::max(end[plane.tensor], at + 1);
          }
        }
      }
    }
  }
  CHECK(seen.size() == elements);
  auto sum = std::uint64_t{0};
  for (std::uint32_t tensor = 0; tensor < end.size(); ++tensor) {
    sum += end[tensor];
    CHECK(layout.tensor_bytes(tensor).value() == end[tensor] * 2);
  }
  CHECK(sum == elements);
}
auto at(plane_layout const& plane, std::uint32_t b, std::uint32_t t, std::uint32_t h, std::uint32_t d)
    -> std::uint64_t {
  return plane.offset({.block = block_id{b}, .token = token_count{t}, .head = h, .dim = d});
}
} // namespace

TEST_CASE("S14: planes share tensors without meeting and without a gap") {
  auto const k = plane_layout::nhd(key);
  auto const v = plane_layout::hnd(value);
  check_dense(view_layout::separate(std::array{k, v}));
  check_dense(view_layout::blocks_outer(k, v));
  check_dense(view_layout::planes_outer(k, v));
  check_dense(view_layout::heads_joined(key, value));
  check_dense(view_layout::blocks_outer(plane_layout::split(key, 2), plane_layout::transposed(value)));
  // latent and rotary key of MLA, and scales
  auto latent = layout_shape{.role = layout_role::latent,
                             .blocks = block_count{blocks},
                             .block_tokens = token_count{tokens},
                             .heads = 1,
                             .dim = 32,
                             .element_bits = 16};
  auto rope = latent;
  rope.role = layout_role::rope_key;
  rope.dim = 8;
  check_dense(view_layout::heads_joined(latent, rope));
  check_dense(view_layout::separate(std::array{plane_layout::nhd(latent), plane_layout::nhd(rope)}));
}

TEST_CASE("S14: joint tensors have the axes they are named for") {
  auto const k = plane_layout::nhd(key);
  auto const v = plane_layout::nhd(shape(layout_role::value, 6));
  constexpr auto block = 4 * 2 * 6;
  SECTION("[blocks, {K, V}, …]") {
    auto const joint = view_layout::blocks_outer(k, v);
    CHECK(at(joint.planes()[0], 1, 0, 0, 0) == 2 * block);
    CHECK(at(joint.planes()[1], 1, 0, 0, 0) == 3 * block);
  }
  SECTION("[{K, V}, blocks, …]") {
    auto const joint = view_layout::planes_outer(k, v);
    CHECK(at(joint.planes()[0], 1, 0, 0, 0) == block);
    CHECK(at(joint.planes()[1], 1, 0, 0, 0) == blocks * block + block);
  }
  SECTION("[blocks, heads, p_b, d_k + d_v]") {
    auto const joint = view_layout::heads_joined(key, value);
    CHECK(at(joint.planes()[0], 0, 1, 0, 0) == 10);
    CHECK(at(joint.planes()[1], 0, 0, 0, 0) == 6);
    CHECK(at(joint.planes()[1], 2, 3, 1, 3) == 2 * 80 + 1 * 40 + 3 * 10 + 6 + 3);
  }
}

TEST_CASE("S35: layouts of the same size differ by name, field by field (case 92)") {
  auto const v = shape(layout_role::value, 6);
  auto const before = view_layout::blocks_outer(plane_layout::nhd(key), plane_layout::nhd(v)); // [blk, 2, B, H, D]
  auto const after = view_layout::heads_joined(key, v);                                        // [blk, H, B, 2D]
  REQUIRE(before.tensor_bytes(0) == after.tensor_bytes(0));
  CHECK(before != after);
  auto const difference = view_layout::first_difference(before, after);
  REQUIRE(difference);
  CHECK(*difference == layout_difference{.plane = 0, .field = "head_stride", .left = 6, .right = 48});
  CHECK(before.block_image() != after.block_image());
  CHECK_FALSE(view_layout::first_difference(before, before));
}

TEST_CASE("S35: every field of a plane takes part in the comparison") {
  auto const base = plane_layout::split(key, 2);
  auto fields = std::vector<std::pair<std::string, plane_layout>>{};
  auto const changed = [&](char const* name, auto member, auto to) {
    auto other = base;
    other.*member = to;
    fields.emplace_back(name, other);
  };
  changed("role", &plane_layout::role, layout_role::value);
  changed("blocks", &plane_layout::blocks, 2U);
  changed("block_tokens", &plane_layout::block_tokens, 3U);
  changed("heads", &plane_layout::heads, 1U);
  changed("dim", &plane_layout::dim, 4U);
  changed("element_bits", &plane_layout::element_bits, 8U);
  changed("vector", &plane_layout::vector, 3U);
  changed("base", &plane_layout::base, std::uint64_t{1});
  changed("block_stride", &plane_layout::block_stride, std::uint64_t{100});
  changed("head_stride", &plane_layout::head_stride, std::uint64_t{100});
  changed("token_stride", &plane_layout::token_stride, std::uint64_t{100});
  changed("vector_stride", &plane_layout::vector_stride, std::uint64_t{100});
  changed("tensor", &plane_layout::tensor, 1U);
  auto one = view_layout{};
  one.add(base);
  auto visited = std::vector<std::string>{};
  one.for_each_field([&](std::uint32_t plane, std::string_view name, std::uint64_t) {
    CHECK(plane == 0);
    visited.emplace_back(name);
  });
  CHECK(visited.size() == fields.size());
  for (auto const& [name, plane] : fields) {
    INFO(name);
    auto other = view_layout{};
    other.add(plane);
    CHECK(one != other);
    auto const difference = view_layout::first_difference(one, other);
    REQUIRE(difference);
    CHECK(difference->field == name);
    CHECK(difference->left != difference->right);
    CHECK(std::find(visited.begin(), visited.end(), name) != visited.end());
  }
  SECTION("and so does the number of planes") {
    auto two = one;
    two.add(base);
    CHECK(one != two);
    CHECK(*view_layout::first_difference(one, two) ==
          layout_difference{.plane = 1, .field = "planes", .left = 1, .right = 2});
  }
}

TEST_CASE("S35: the image of a stored block depends neither on the pool nor on how tensors are shared") {
  auto const k = plane_layout::nhd(key);
  auto const v = plane_layout::nhd(value);
  auto const small = view_layout::separate(std::array{k, v});
  auto const large = view_layout::separate(std::array{plane_layout::nhd(shape(layout_role::key, 6, 50)),
                                                      plane_layout::nhd(shape(layout_role::value, 4, 50))});
  CHECK(small != large);
  CHECK(small.block_image() == large.block_image());
  CHECK(small.block_image() == view_layout::blocks_outer(k, v).block_image());
  CHECK(small.block_image() == view_layout::planes_outer(k, v).block_image());
  CHECK(small.block_image() != view_layout::separate(std::array{plane_layout::hnd(key), v}).block_image());
  CHECK(small.block_image() != view_layout::separate(std::array{v, k}).block_image());
}

TEST_CASE("S35: planes that cannot share a tensor are refused") {
  auto const k = plane_layout::nhd(key);
  CHECK_THROWS_AS(view_layout::blocks_outer(k, plane_layout::nhd(shape(layout_role::value, 6, 4))), config_error);
  auto narrow = value;
  narrow.element_bits = 8;
  CHECK_THROWS_AS(view_layout::planes_outer(k, plane_layout::nhd(narrow)), config_error);
  CHECK_THROWS_AS(view_layout::heads_joined(key, narrow), config_error);
  auto other = value;
  other.heads = 1;
  CHECK_THROWS_AS(view_layout::heads_joined(key, other), config_error);
  auto gaps = plane_layout::nhd(value);
  gaps.block_stride *= 2;
  CHECK_THROWS_AS(view_layout::blocks_outer(k, gaps), config_error);
  CHECK_THROWS_AS(view_layout::planes_outer(gaps, k), config_error);
  auto full = view_layout{};
  for (std::size_t i = 0; i < view_layout::max_planes; ++i) { full.add(k); }
  CHECK_THROWS_AS(full.add(k), config_error);
}

TEST_CASE("S11: half-byte elements round up to whole bytes") {
  auto odd =
      layout_shape{.blocks = block_count{1}, .block_tokens = token_count{1}, .heads = 1, .dim = 5, .element_bits = 4};
  auto layout = view_layout{};
  layout.add(plane_layout::nhd(odd));
  CHECK(layout.tensor_bytes(0) == byte_count{3});
  CHECK(layout.tensor_bytes(1) == byte_count{0});
}

TEST_CASE("S14: a device index is checked for every plane (cases 115, 116)") {
  auto const k = plane_layout::nhd(shape(layout_role::key, 6, 40'000'000));
  auto const v = plane_layout::nhd(shape(layout_role::value, 6, 40'000'000));
  // alone each plane fits 31 bits (1.92e9 elements), in one tensor the value plane does not
  CHECK_NOTHROW(view_layout::separate(std::array{k, v}).require_index(element_index::signed_32));
  CHECK_THROWS_WITH(view_layout::planes_outer(k, v).require_index(element_index::signed_32),
                    quire_test::ContainsSubstring("plane value"));
}
