// SPDX-License-Identifier: Apache-2.0
// Pins that were given up while work in flight may still read what they protect.
#include <quire/block/immediate_fence.hpp>
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/detail/fence_clock.hpp>
#include <quire/cache/detail/late_pins.hpp>
#include <quire/core/types.hpp>
#include <quire/prefix/run_tree.hpp>

#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"
#include "support/texts.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using clock_type = detail::fence_clock<ticket_fence<2>>;
using pins_type = detail::late_pins<clock_type>;
constexpr auto t0 = timeline_id{0};
constexpr auto t1 = timeline_id{1};

// Texts of one unit each in a tree.
struct texts {
  run_tree<> index{unit_count{16}, token_count{2}};
  node_id root = index.open_root({});

  auto pin(token_id first) -> prefix_pin {
    auto out = std::array<unit_id, 1>{};
    auto const text = quire_test::ascending(2, first);
    auto found = index.match(root, text, out);
    auto held = index.pin(found);
    if (found.units == unit_count{0}) {
      auto const unit = index.take_unit();
      std::copy(text.begin(), text.end(), index.tokens(unit).begin());
      auto const units = std::array{unit};
      index.publish(held, units);
    }
    return held;
  }
};
} // namespace

TEST_CASE("S18: a pin whose work is over is given back at once, an empty one never") {
  auto t = texts{};
  auto clock = clock_type{};
  auto pins = pins_type{clock};
  pins.reserve(2);
  pins.release(t.index, prefix_pin{}, {});
  CHECK(pins.size() == 0);
  pins.release(t.index, t.pin(10), {});
  CHECK(pins.size() == 0);
  CHECK(t.index.evictable() == unit_count{1});
}

TEST_CASE("S18: a pin waits for all of its timelines, one after the other") {
  for (auto const order : {0, 1}) {
    auto t = texts{};
    auto clock = clock_type{};
    auto pins = pins_type{clock};
    auto const a = clock.issue(t0);
    auto const b = clock.issue(t1);
    pins.reserve(1);
    pins.release(t.index, t.pin(10), {a, b});
    CHECK(pins.size() == 1);
    CHECK(t.index.evictable() == unit_count{0});
    clock.fence().complete(order == 0 ? t0 : t1, ticket{1});
    pins.reclaim(t.index);
    CHECK(pins.size() == 1);
    CHECK(t.index.evictable() == unit_count{0});
    clock.fence().complete(order == 0 ? t1 : t0, ticket{1});
    pins.reclaim(t.index);
    CHECK(pins.size() == 0);
    CHECK(t.index.evictable() == unit_count{1});
  }
}

TEST_CASE("S18: of pins that wait, those whose ticket is reached come back, and each is visited") {
  auto t = texts{};
  auto clock = clock_type{};
  auto pins = pins_type{clock};
  for (auto i = 0; i < 4; ++i) {
    pins.reserve(1);
    auto const until = clock.issue(i % 2 == 0 ? t0 : t1);
    auto last = clock_type::tickets{};
    last[static_cast<std::size_t>(i % 2)] = until;
    pins.release(t.index, t.pin(10 * i), last);
  }
  auto seen = 0;
  std::as_const(pins).for_each([&](prefix_pin const& pin) { seen += pin ? 1 : 0; });
  CHECK(seen == 4);
  clock.fence().complete(t0, ticket{1});
  pins.reclaim(t.index);
  CHECK(pins.size() == 3);
  clock.fence().complete(t1, ticket{2});
  pins.reclaim(t.index);
  CHECK(pins.size() == 1);
  CHECK(t.index.evictable() == unit_count{3});
  pins.for_each([&](prefix_pin& pin) { t.index.release(std::exchange(pin, prefix_pin{})); }); // may be exchanged
  CHECK(t.index.evictable() == unit_count{4});
}

TEST_CASE("S18: pins are given up without memory once there is room, and a steady stream needs none") {
  auto t = texts{};
  auto clock = clock_type{};
  auto pins = pins_type{clock};
  for (auto const first : {t1, t0}) { // whichever they wait for first
    auto held = std::vector<prefix_pin>{};
    for (auto i = 0; i < 3; ++i) { held.push_back(t.pin(10 + 10 * i)); }
    pins.reserve(3);
    auto last = clock_type::tickets{};
    last[first.value()] = clock.issue(first);
    CHECK(quire_test::allocations_of([&] {
            for (auto& pin : held) { pins.release(t.index, std::move(pin), last); }
          }) == 0);
    CHECK(pins.size() == 3);
    clock.fence().complete(first, last[first.value()]);
    pins.reclaim(t.index);
  }
  for (auto round = 0; round < 8; ++round) { // comes to its size
    pins.reserve(1);
    pins.release(t.index, t.pin(10), {clock.issue(t0), ticket{}});
    clock.fence().complete(t0, ticket{clock.issued(t0).value() - 1});
    pins.reclaim(t.index);
  }
  CHECK(quire_test::allocations_of([&] {
          for (auto round = 0; round < 100; ++round) {
            pins.reserve(1);
            auto out = std::array<unit_id, 1>{};
            auto const text = std::array<token_id, 2>{10, 11};
            pins.release(t.index, t.index.pin(t.index.match(t.root, text, out)), {clock.issue(t0), ticket{}});
            clock.fence().complete(t0, ticket{clock.issued(t0).value() - 1});
            pins.reclaim(t.index);
          }
        }) == 0);
  CHECK(pins.size() == 1);
}

TEST_CASE("S18: memory that fails leaves the waiting pins as they were") {
  auto t = texts{};
  auto clock = clock_type{};
  auto pins = pins_type{clock};
  pins.reserve(1);
  pins.release(t.index, t.pin(10), {clock.issue(t0), ticket{}});
  {
    auto const guard = quire_test::failing_allocation{1};
    CHECK_THROWS_AS(pins.reserve(100), std::bad_alloc);
  }
  CHECK(pins.size() == 1);
  clock.fence().complete(t0, clock.issued(t0));
  pins.reclaim(t.index);
  CHECK(t.index.evictable() == unit_count{1});
}

TEST_CASE("S18: nothing waits behind an immediate fence") {
  auto t = texts{};
  using now = detail::fence_clock<immediate_fence>;
  auto clock = now{};
  auto pins = detail::late_pins<now>{clock};
  CHECK(quire_test::allocations_of([&] { pins.reserve(100); }) == 0);
  pins.release(t.index, t.pin(10), now::tickets{ticket{9}});
  CHECK(pins.size() == 0);
  CHECK(t.index.evictable() == unit_count{1});
}
