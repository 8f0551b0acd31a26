// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What every benchmark needs: rounds that alternate the measured work with its floor, goals, and random tokens.
///
/// ```text
///   round   1      2      3      …
///           W F    W F    W F          W: the library, F: the least work that could do, same data, same moment
/// ```
///
/// Machines are noisy and neighbours come and go: the ratio is the median of the ratios of single rounds, the times are
/// minima. A round times a whole batch, because reading the clock costs about as much as many operations here.

#include <benchmark/benchmark.h>

#include <quire/core/types.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace quire_bench {

/// Calls of operator new so far, which decode.bench.cpp replaces.
inline std::uint64_t allocations = 0;
/// [bytes] that they asked for.
inline std::uint64_t allocated_bytes = 0;

/// [ns] that \p work takes.
template <class Work>
[[nodiscard]] auto nanoseconds(Work work) -> double {
  auto const start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

/// Keeps the compiler from assuming that \p value is not needed.
template <class T>
auto keep(T const& value) -> void {
  benchmark::DoNotOptimize(value);
}

/// Ends the program if a benchmark does not do what it claims to measure.
inline auto expect(bool holds, char const* what) -> void {
  if (holds) { return; }
  std::cerr << "benchmark is broken: " << what << '\n';
  std::abort();
}

/// What the rounds of one benchmark gave, per operation.
struct result {
  double ns = 0;       ///< Least time of the library.
  double floor_ns = 0; ///< Least time of the floor.
  double ratio = 0;    ///< Median over the rounds of library / floor.
};

/// The value in the middle. \pre there is one
[[nodiscard]] inline auto median(std::vector<double> values) -> double {
  auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Runs the rounds of \p state. \p work and \p floor return the [ns] of their timed part, in which they do
/// \p operations; what they do beside it is not counted.
template <class Work, class Floor>
auto alternate(benchmark::State& state, double operations, Work work, Floor floor) -> result {
  std::vector<double> times;
  std::vector<double> floors;
  std::vector<double> ratios;
  for (auto _ : state) {
    times.push_back(work() / operations);
    floors.push_back(floor() / operations);
    ratios.push_back(times.back() / floors.back());
    state.SetIterationTime(times.back() * 1e-9);
  }
  auto const least = [](auto const& values) { return *std::min_element(values.begin(), values.end()); };
  state.counters["ns_median"] = median(times);
  return {least(times), least(floors), median(ratios)};
}

/// Says what the row has to reach. \param goal such as "ratio<=2" or "ns<=15 remark", empty for information only.
inline auto set_goal(benchmark::State& state, std::string const& goal) -> void {
  if (goal.empty()) { return; }
  state.counters["goal"] = std::strtod(goal.c_str() + goal.find('=') + 1, nullptr);
  state.SetLabel(goal);
}
/// Publishes a result and its goal.
inline auto report(benchmark::State& state, result const& r, std::string const& goal) -> void {
  state.counters["ns"] = r.ns;
  state.counters["floor_ns"] = r.floor_ns;
  state.counters["ratio"] = r.ratio;
  set_goal(state, goal);
}

/// Adds the benchmark \p name: \p rounds rounds of \p body(benchmark::State&). Returns something to initialise with.
template <class Body>
auto add(std::string const& name, int rounds, Body body) -> bool {
  benchmark::RegisterBenchmark(name.c_str(), std::move(body))->Iterations(rounds)->UseManualTime();
  return true;
}

/// \p count tokens of a large vocabulary; no two prompts made by one \p random are equal.
[[nodiscard]] inline auto random_tokens(std::mt19937_64& random, std::size_t count) -> std::vector<quire::token_id> {
  std::vector<quire::token_id> tokens(count);
  for (auto& token : tokens) { token = static_cast<quire::token_id>(random() & 0x1'ffffU); }
  return tokens;
}

/// The numbers [0, \p count) in random order.
[[nodiscard]] inline auto shuffled(std::mt19937_64& random, std::uint32_t count) -> std::vector<std::uint32_t> {
  std::vector<std::uint32_t> order(count);
  for (std::uint32_t i = 0; i < count; ++i) { order[i] = i; }
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

} // namespace quire_bench
