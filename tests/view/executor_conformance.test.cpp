// SPDX-License-Identifier: Apache-2.0
// One suite for every model of `executor`: what docs/concepts/executor.md promises and bytes can show. A model without
// bytes passes the rules about results only.
#include <quire/view/host_executor.hpp>
#include <quire/view/null_executor.hpp>
#include <quire/view/recording_executor.hpp>
#include <quire/view/view_layout.hpp>

#include "support/catch_compat.hpp"
#include "view/host_memory.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace {
using namespace quire;
using quire_test::host_memory;

constexpr auto pool = 4U;
constexpr auto p_b = 4U;
constexpr auto g0 = group_id{0};

auto layers() -> std::vector<view_layout> {
  auto k = layout_shape{.role = layout_role::key,
                        .blocks = block_count{pool},
                        .block_tokens = token_count{p_b},
                        .heads = 2,
                        .dim = 4,
                        .element_bits = 16};
  auto v = k;
  v.role = layout_role::value;
  return {view_layout::blocks_outer(plane_layout::nhd(k), plane_layout::nhd(v)),
          view_layout::separate(std::array{plane_layout::split(k, 2), plane_layout::transposed(v)})};
}

struct counting_wait {
  int* calls;
  void operator()(timeline_id, ticket) const { ++*calls; }
};

// For each model: how it is made over memory, whether it moves bytes, whether it has a tier.
struct null_subject {
  static constexpr auto moves = false;
  static constexpr auto has_tier = true; // accepts everything
  explicit null_subject(std::span<host_group const>) {}
  null_executor executor = {};
};
struct host_subject {
  static constexpr auto moves = true;
  static constexpr auto has_tier = false;
  explicit host_subject(std::span<host_group const> groups) : executor{groups} {}
  host_executor<> executor;
};
struct waiting_host_subject {
  static constexpr auto moves = true;
  static constexpr auto has_tier = false;
  explicit waiting_host_subject(std::span<host_group const> groups) : executor{groups, std::byte{0}, {&calls}} {}
  int calls = 0;
  host_executor<counting_wait> executor;
};
struct recording_null_subject {
  static constexpr auto moves = false;
  static constexpr auto has_tier = true;
  explicit recording_null_subject(std::span<host_group const>) {}
  recording_executor<> executor = {};
};
struct recording_host_subject {
  static constexpr auto moves = true;
  static constexpr auto has_tier = false;
  explicit recording_host_subject(std::span<host_group const> groups) : executor{host_executor<>{groups}} {}
  recording_executor<host_executor<>> executor;
};
} // namespace

TEMPLATE_TEST_CASE("S44: executor conformance", "", null_subject, host_subject, waiting_host_subject,
                   recording_null_subject, recording_host_subject) {
  auto real = host_memory{block_count{pool}, token_count{p_b}, layers()};
  auto model = host_memory{block_count{pool}, token_count{p_b}, layers()};
  real.number(11);
  model.number(11);
  auto const before = real.tensors();
  auto const groups = std::array{real.group()};
  auto subject = TestType{groups};
  auto& executor = subject.executor;
  auto const expect = [&] {
    if (TestType::moves) {
      CHECK(real.tensors() == model.tensors());
    } else {
      CHECK(real.tensors() == before);
    }
  };

  SECTION("rule 10: an empty span is a success") {
    REQUIRE(executor.run({}));
    CHECK(real.tensors() == before);
  }
  SECTION("rules 1 to 3: in order, all planes, the valid tokens") {
    auto const plan = std::array{action::copy_block(g0, block_id{0}, block_id{1}, token_count{4}),
                                 action::copy_block(g0, block_id{1}, block_id{2}, token_count{4}),
                                 action::move_block(g0, block_id{3}, block_id{0})};
    REQUIRE(executor.run(plan));
    model.model_copy(block_id{0}, block_id{1}, 4);
    model.model_copy(block_id{1}, block_id{2}, 4);
    model.model_copy(block_id{3}, block_id{0}, 4);
    expect();
  }
  SECTION("rule 3: at least the valid tokens, and no other block") {
    REQUIRE(executor.run(std::array{action::copy_block(g0, block_id{0}, block_id{1}, token_count{3})}));
    model.model_copy(block_id{0}, block_id{1}, 3);
    // the rest of the target is free to be either: bring both to one state
    auto const rest = std::array{action::copy_block(g0, block_id{2}, block_id{3}, token_count{4})};
    REQUIRE(executor.run(rest));
    model.model_copy(block_id{2}, block_id{3}, 4);
    if (TestType::moves) {
      real.for_each_element(block_id{1}, 3, [&](std::size_t layer, plane_layout const& plane, layout_place const& at) {
        CHECK(host_memory::read(real.tensors()[layer][plane.tensor], plane.offset(at), plane.element_bits) ==
              host_memory::read(model.tensors()[layer][plane.tensor], plane.offset(at), plane.element_bits));
      });
      for (auto const other : {0U, 2U, 3U}) {
        real.for_each_element(block_id{other}, p_b,
                              [&](std::size_t layer, plane_layout const& plane, layout_place const& at) {
                                CHECK(host_memory::read(real.tensors()[layer][plane.tensor], plane.offset(at), 16) ==
                                      host_memory::read(model.tensors()[layer][plane.tensor], plane.offset(at), 16));
                              });
      }
    }
  }
  SECTION("rule 5: a scrub leaves nothing") {
    REQUIRE(executor.run(std::array{action::scrub_block(g0, block_id{2})}));
    model.model_fill(block_id{2}, 0);
    expect();
  }
  SECTION("rule 6: ticket 0 is reached from the start") {
    REQUIRE(
        executor.run(std::array{action::wait_for(timeline_id{0}, ticket{0}), action::scrub_block(g0, block_id{1})}));
    model.model_fill(block_id{1}, 0);
    expect();
  }
  SECTION("rules 7 and 8: without a tier a list with a store or load is refused whole") {
    for (auto const& tiered : {action::store_block(g0, block_id{0}, {tier_id{1}, block_id{3}}, token_count{4}),
                               action::load_block(g0, {tier_id{1}, block_id{3}}, block_id{0}, token_count{4})}) {
      auto const result = executor.run(std::array{action::scrub_block(g0, block_id{1}), tiered});
      CHECK(result.has_value() == TestType::has_tier);
      if (!result) { CHECK(result.error() == errc::not_supported); }
      CHECK(real.tensors() == before);
    }
  }
}
