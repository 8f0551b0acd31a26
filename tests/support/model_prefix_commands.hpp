// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Random sizes and command lists for `model_prefix_world`, and the properties of an index with an order of eviction.

#include "support/model_prefix_world.hpp"
#include "support/rc_prop.hpp"
#include "support/throwing_contract.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace quire_test {

/// How often things happened.
using index_coverage = std::map<std::string, std::uint64_t>;

/// Runs \p commands on a new world and adds up what happened. \tparam Case names `index`, `order` and `runs`.
template <class Case>
void run_index_world(index_size const& size, std::span<index_command const> commands, index_coverage& coverage) {
  try {
    auto world = model_prefix_world<typename Case::index>{size, Case::order, Case::runs};
    for (auto const& command : commands) { world.perform(command); }
    world.finish();
    for (auto const& [what, times] : world.coverage()) { coverage[what] += times; }
  } catch (contract_violation const& broken) { throw toy_failure{std::string{"contract: "} + broken.expr}; }
}

/// How often each verb comes.
inline constexpr int usual_index_mix[] = {8, 6, 6, 4, 4, 3, 2, 3, 2, 1, 1};
static_assert(std::size(usual_index_mix) == static_cast<std::size_t>(index_verb::count_));

/// Any list of commands.
inline auto any_index_commands() -> rc::Gen<std::vector<index_command>> {
  static auto const verbs = [] {
    auto out = std::vector<index_verb>{};
    for (std::size_t v = 0; v < std::size(usual_index_mix); ++v) {
      out.insert(out.end(), static_cast<std::size_t>(usual_index_mix[v]), static_cast<index_verb>(v));
    }
    return out;
  }();
  auto const number = rc::gen::resize(100, rc::gen::inRange<std::uint32_t>(0, 1U << 12U));
  return rc::gen::scale(4.0, rc::gen::container<std::vector<index_command>>(
                                 rc::gen::map(rc::gen::tuple(rc::gen::elementOf(verbs), number, number),
                                              [](std::tuple<index_verb, std::uint32_t, std::uint32_t> const& t) {
                                                return index_command{std::get<0>(t), std::get<1>(t), std::get<2>(t)};
                                              })));
}

/// Any size, with small alphabets, so that prefixes collide all the time.
[[nodiscard]] inline auto any_index_size() -> index_size {
  auto size = index_size{};
  size.unit_tokens = *rc::gen::element<std::uint32_t>(1, 2, 3, 5, 16, 17);
  size.units = *rc::gen::resize(100, rc::gen::inRange<std::uint32_t>(1, 64));
  size.longest = *rc::gen::resize(100, rc::gen::inRange<std::uint32_t>(1, 20));
  size.usual = size.longest;
  size.symbols = *rc::gen::element<std::uint32_t>(2, 1, 3, 4);
  size.branching = *rc::gen::element<std::uint32_t>(2, 1, 3, 5);
  return size;
}

/// A list too long to be shrunk in reasonable time, for what only shows at size.
template <class Case>
void long_index_run(index_size const& size, std::size_t commands, std::uint64_t seed, index_coverage& coverage) {
  auto dice = toy_dice{seed};
  auto list = std::vector<index_command>{};
  for (std::size_t i = 0; i < commands; ++i) {
    auto const verb = dice.one_in(2)
                          ? index_verb::request
                          : static_cast<index_verb>(dice.below(static_cast<std::uint64_t>(index_verb::count_)));
    list.push_back({verb, dice.below(4096), dice.below(1U << 20U)});
  }
  INFO("seed " << seed);
  run_index_world<Case>(size, list, coverage);
}

/// An index with an order of eviction agrees with the naive map.
template <class Case>
void agrees_with_naive_map() {
  static index_coverage coverage; // generators and properties outlive locals while shrinking
  static auto cases = 0;
  coverage.clear();
  cases = 0;
  prop("any commands", [] {
    auto const size = any_index_size();
    auto const commands = *any_index_commands();
    RC_LOG() << size << '\n';
    run_index_world<Case>(size, commands, coverage);
    ++cases;
  });
  if (cases < 100) { return; } // a failure was replayed
  for (auto const* const what : {"victims", "lost victims", "existing", "existing idle", "shared", "shared too late",
                                 "removed", "digests", "closed"}) {
    INFO(what);
    CHECK(coverage[what] > 0);
  }
}

} // namespace quire_test
