// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Random sizes and command lists for toys, and the run of one list.

#include "support/rc_prop.hpp"
#include "support/throwing_contract.hpp"
#include "support/toy_world.hpp"

#include <rapidcheck.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iostream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace quire_test {

/// Any command; the first verbs come most often.
[[nodiscard]] inline auto any_toy_command() -> rc::Gen<toy_command> {
  static auto const verbs = [] {
    auto out = std::vector<toy_verb>{};
    constexpr int weights[] = {12, 8, 6, 5, 5, 5, 4, 3, 3, 3, 3, 3, 2, 3, 8, 6, 3, 2, 1, 1};
    static_assert(std::size(weights) == static_cast<std::size_t>(toy_verb::count_));
    for (std::size_t v = 0; v < std::size(weights); ++v) {
      out.insert(out.end(), static_cast<std::size_t>(weights[v]), static_cast<toy_verb>(v));
    }
    return out;
  }();
  auto const number = rc::gen::resize(100, rc::gen::inRange<std::uint32_t>(0, 1U << 12U));
  return rc::gen::map(rc::gen::tuple(rc::gen::elementOf(verbs), number, number, number),
                      [](std::tuple<toy_verb, std::uint32_t, std::uint32_t, std::uint32_t> const& t) {
                        return toy_command{std::get<0>(t), std::get<1>(t), std::get<2>(t), std::get<3>(t)};
                      });
}

/// Any list of commands, a few hundred of them at full size.
[[nodiscard]] inline auto any_toy_commands() -> rc::Gen<std::vector<toy_command>> {
  return rc::gen::scale(20.0, rc::gen::container<std::vector<toy_command>>(any_toy_command()));
}

/// Any size: the block sizes that the rows of the spec are tested with, pools from one block up.
[[nodiscard]] inline auto any_toy_size() -> toy_size {
  auto size = toy_size{};
  size.block_tokens = *rc::gen::element<std::uint32_t>(1, 2, 3, 5, 16, 17);
  size.blocks = *rc::gen::resize(100, rc::gen::inRange<std::uint32_t>(1, 48));
  if (*rc::gen::resize(100, rc::gen::inRange(0, 8)) == 0) { size.blocks = 1; }
  size.buffers = *rc::gen::element<std::uint32_t>(2, 1, 3);
  size.rows = *rc::gen::element<std::uint32_t>(6, 6, 8, 3, 1);
  size.sequences = *rc::gen::element<std::uint32_t>(8, 8, 12, 4, 1);
  size.skip_writes = *rc::gen::element(true, true, false);
  size.scrub = *rc::gen::element(false, false, true);
  return size;
}

/// Runs \p commands on a new toy and adds up what happened.
template <class Policies>
void run_toy(toy_size const& size, std::span<toy_command const> commands, toy_coverage& coverage) {
  auto world = std::make_unique<toy_world<Policies>>(size);
  try {
    for (auto const& command : commands) { world->perform(command); }
    world->finish();
  } catch (contract_violation const& broken) {
    static_cast<void>(world.release()); // a broken cache is not torn down
    throw toy_failure{std::string{"contract: "} + broken.expr};
  } catch (...) {
    static_cast<void>(world.release());
    throw;
  }
  for (auto const& [what, times] : world->coverage()) { coverage[what] += times; }
}

/// A property that never meets its subject proves nothing: everything \p wanted has to have happened.
inline void require_coverage(toy_coverage const& coverage, std::initializer_list<char const*> wanted) {
  for (auto const& [what, times] : coverage) { std::cout << what << ' ' << times << "; "; }
  std::cout << '\n';
  for (auto const* const what : wanted) {
    INFO(what);
    CHECK(coverage.contains(what));
    if (coverage.contains(what)) { CHECK(coverage.at(what) > 0); }
  }
}

/// A cache with \p Policies agrees with the toy, whatever the size and the commands.
template <class Policies>
void agrees_with_toy(std::initializer_list<char const*> wanted) {
  static toy_coverage coverage; // generators and properties outlive locals while shrinking
  static auto cases = 0;
  coverage.clear();
  cases = 0;
  prop("any commands", [] {
    auto const size = any_toy_size();
    auto const commands = *any_toy_commands();
    RC_LOG() << size << '\n';
    run_toy<Policies>(size, commands, coverage);
    ++cases;
  });
  if (cases >= 100) { require_coverage(coverage, wanted); } // not when one failure is replayed
}

} // namespace quire_test
