// SPDX-License-Identifier: Apache-2.0

/// \file
/// Evicting when every unit is cached: choosing victims and giving their numbers back. The floor is popping a bare stack.

#include "prefix_fixture.hpp"
#include "support.hpp"

#include <quire/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace quire_bench;

constexpr std::uint32_t all_units = 65'536;

/// How the cached content looks.
struct content {
  std::uint32_t run = 0;     ///< [units] of one prefix
  bool random_order = false; ///< last uses in random order and units scattered, or both in order
};

/// Evicts everything, \p batch units a time.
auto evicting(content what, std::uint32_t batch, std::string goal) {
  return [=](benchmark::State& state) {
    prefix_fixture<> fixture{all_units, what.random_order ? unit_order::scattered : unit_order::consecutive};
    std::mt19937_64 random{1};
    std::vector<quire::unit_id> out(all_units);
    std::vector<std::uint32_t> stack(all_units);

    auto const fill = [&] {
      auto const tokens = random_tokens(random, std::size_t{all_units} * unit_tokens);
      auto const prefixes = all_units / what.run;
      auto const prefix = [&](std::uint32_t i) {
        return std::span{tokens}.subspan(std::size_t{i} * what.run * unit_tokens, std::size_t{what.run} * unit_tokens);
      };
      for (std::uint32_t i = 0; i < prefixes; ++i) { fixture.cache(prefix(i)); }
      if (!what.random_order) { return; }
      for (auto const i : shuffled(random, prefixes)) { fixture.cache(prefix(i)); }
    };
    auto const work = [&] {
      fill();
      expect(fixture.index.free_units().value() == 0 && fixture.index.evictable().value() == all_units,
             "not every unit is cached");
      auto const time = nanoseconds([&] {
        for (std::size_t i = 0; i < all_units; i += batch) { fixture.evict(std::span{out}.subspan(i, batch)); }
      });
      if (what.random_order) { fixture.scatter(); }
      return time;
    };
    auto const floor = [&] {
      for (std::uint32_t i = 0; i < all_units; ++i) { stack[i] = i; }
      auto size = stack.size();
      return nanoseconds([&] {
        for (auto& unit : out) {
          unit = quire::unit_id{stack[--size]};
          benchmark::ClobberMemory();
        }
      });
    };
    report(state, alternate(state, all_units, work, floor), goal);
  };
}

[[maybe_unused]] auto const registered = [] {
  for (auto const batch : {1U, 16U, 512U}) {
    auto const suffix = std::string{"/"}.append(std::to_string(batch)).append("_a_time"); // gcc 12 warns falsely of a +
    add("evict/runs_of_512" + suffix, 11, evicting({512, false}, batch, batch == 512 ? "ns<=1.5" : ""));
    add("evict/runs_of_8_random_order" + suffix, 11, evicting({8, true}, batch, ""));
    add("evict/leaves_in_order" + suffix, 11, evicting({1, false}, batch, ""));
    add("evict/leaves_random_order" + suffix, 11, evicting({1, true}, batch, "ratio<=8 of a LIFO pop"));
  }
  return true;
}();

} // namespace
