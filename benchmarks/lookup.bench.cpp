// SPDX-License-Identifier: Apache-2.0

/// \file
/// Looking up, pinning and releasing a fully resident prompt of 8192 tokens, beside memcmp of the same tokens: a verified
/// look-up has to read the prompt and what is stored, so it cannot be faster than that.

#include "prefix_fixture.hpp"
#include "support.hpp"

#include <quire/core/types.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/run_tree.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace quire_bench;
using prompt_span = std::span<quire::token_id const>;

constexpr std::size_t prompt_tokens = std::size_t{prompt_units} * unit_tokens;

/// Prompts and an equal copy of each, for memcmp.
struct prompts {
  explicit prompts(std::uint32_t n)
      : random{n}, tokens{random_tokens(random, n * prompt_tokens)}, copy{tokens}, order{shuffled(random, n)} {}
  [[nodiscard]] auto at(std::uint32_t i) const -> prompt_span {
    return prompt_span{tokens}.subspan(i * prompt_tokens, prompt_tokens);
  }

  std::mt19937_64 random;
  std::vector<quire::token_id> tokens;
  std::vector<quire::token_id> copy;
  std::vector<std::uint32_t> order; ///< Of the visits.
};

/// One look-up as an admission makes it, and its end.
template <class Fixture>
auto look_up(Fixture& fixture, prompt_span prompt, std::span<quire::unit_id> ids) -> void {
  auto const found = fixture.index.match(fixture.root, prompt, ids);
  expect(found.units.value() == prompt_units, "the prompt is not resident");
  auto pin = fixture.index.pin(found);
  keep(ids.back());
  fixture.index.release(std::move(pin));
}

auto compare(prompts const& p, std::uint32_t i) -> void {
  keep(std::memcmp(&p.tokens[i * prompt_tokens], &p.copy[i * prompt_tokens], prompt_tokens * sizeof(quire::token_id)));
  benchmark::ClobberMemory();
}

/// Looks up \p count resident prompts in turn, \p laps times a round.
template <class Index = quire::run_tree<>>
auto resident(std::uint32_t count, std::uint32_t laps, std::uint32_t units, unit_order order, std::string goal) {
  return [=](benchmark::State& state) {
    prompts const p{count};
    prefix_fixture<Index> fixture{units, order};
    for (std::uint32_t i = 0; i < count; ++i) { fixture.cache(p.at(i)); }
    std::vector<quire::unit_id> ids(prompt_units);
    auto const each = [&](auto visit) {
      return nanoseconds([&] {
        for (std::uint32_t lap = 0; lap < laps; ++lap) {
          for (auto const i : p.order) { visit(i); }
        }
      });
    };
    auto const r = alternate(
        state, static_cast<double>(count * laps), [&] { return each([&](auto i) { look_up(fixture, p.at(i), ids); }); },
        [&] { return each([&](auto i) { compare(p, i); }); });
    report(state, r, goal);
  };
}

/// A chain that 512 requests grew unit by unit, beside the same chain built at once.
auto grown(benchmark::State& state) {
  prompts const p{1};
  prefix_fixture<> grown{65'536};
  prefix_fixture<> built{65'536};
  for (std::uint32_t n = 1; n <= prompt_units; ++n) { grown.cache(p.at(0).first(std::size_t{n} * unit_tokens)); }
  built.cache(p.at(0));
  std::vector<quire::unit_id> ids(prompt_units);
  constexpr auto laps = 400;
  auto const many = [&](auto& fixture) {
    return nanoseconds([&] {
      for (auto lap = 0; lap < laps; ++lap) { look_up(fixture, p.at(0), ids); }
    });
  };
  report(state,
         alternate(
             state, laps, [&] { return many(grown); }, [&] { return many(built); }),
         "ratio<=1.2 of the chain built at once");
}

[[maybe_unused]] auto const registered =
    add("lookup/hot", 41, resident(1, 400, 65'536, unit_order::consecutive, "ratio<=1.5")) &&
    add("lookup/hot_scattered", 41, resident(1, 400, 65'536, unit_order::scattered, "ratio<=1.8")) &&
    add("lookup/rotating_120", 31, resident(120, 4, 65'536, unit_order::consecutive, "ratio<=1.5")) &&
    add("lookup/rotating_120_scattered", 31, resident(120, 4, 65'536, unit_order::scattered, "ratio<=1.8")) &&
    add("lookup/grown_in_512_steps", 41, grown) &&
    add("lookup/rotating_1000_of_1M", 21, resident(1000, 1, 1'048'576, unit_order::consecutive, "ratio<=1.8")) &&
    add("lookup/rotating_1000_of_1M_scattered", 21,
        resident(1000, 1, 1'048'576, unit_order::scattered, "ratio<=1.8")) &&
    add("lookup/flat_index_hot", 11, resident<quire::flat_index<>>(1, 40, 65'536, unit_order::consecutive, "")) &&
    add("lookup/flat_index_rotating_120", 11,
        resident<quire::flat_index<>>(120, 1, 65'536, unit_order::consecutive, ""));

} // namespace
