// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Everything about a cache that a caller can see, as a value to compare.

#include <quire/cache/group_figures.hpp>
#include <quire/core/types.hpp>
#include <quire/observe/cache_statistics.hpp>
#include <quire/prefix/node_id.hpp>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace quire_test {

/// Length and table of a sequence.
using toy_table = std::pair<std::uint32_t, std::vector<quire::block_id>>;

/// Everything about a cache that a caller can see and that an operation without effect must leave alone.
struct toy_snapshot {
  std::vector<quire::group_figures> figures;     ///< By group.
  std::vector<std::vector<std::uint8_t>> states; ///< By group: [blocks]
  std::uint32_t live = 0;
  std::uint32_t victim = 0;                                       ///< Last unit of the next victim.
  std::map<std::uint32_t, std::pair<std::uint64_t, bool>> prefix; ///< Published unit: what is above it, pinned?
  std::map<std::uint32_t, std::vector<quire::token_id>> tokens;   ///< Of published units.
  std::vector<toy_table> tables;                                  ///< Of the sequences that were looked at.
  quire::cache_statistics statistics;                             ///< Refusals and collisions left out.
  friend auto operator==(toy_snapshot const&, toy_snapshot const&) -> bool = default;
};

/// What can be seen of \p cache itself.
template <class Cache>
[[nodiscard]] auto look_at(Cache& cache) -> toy_snapshot
  requires requires { cache.figures(quire::group_id{0}); }
{
  toy_snapshot s;
  s.live = cache.live_sequences().value();
  auto const victim = cache.eviction().victim();
  std::map<std::uint32_t, std::uint32_t> last; // node: its last unit
  cache.index().for_each_node(
      [&](quire::node_id node, quire::node_id, auto units, std::uint32_t) { last[node.value()] = units.back(); });
  cache.index().for_each_node([&](quire::node_id node, quire::node_id parent, auto units, std::uint32_t busy) {
    auto above = quire::is_root(parent) ? std::uint64_t{parent.value()} << 32U : std::uint64_t{last[parent.value()]};
    for (auto const unit : units) {
      s.prefix[unit] = {above, busy > 0};
      auto const t = cache.index().tokens(quire::unit_id{unit});
      s.tokens[unit] = {t.begin(), t.end()};
      above = unit;
    }
    if (victim == node) { s.victim = units.back() + 1; }
  });
  for (std::uint32_t g = 0; g < cache.groups(); ++g) {
    auto const id = quire::group_id{g};
    s.figures.push_back(cache.figures(id));
    auto& states = s.states.emplace_back();
    for (std::uint32_t b = 0; b < s.figures.back().capacity.value(); ++b) {
      states.push_back(static_cast<std::uint8_t>(cache.block_state_of(id, quire::block_id{b})));
    }
  }
  s.statistics = cache.statistics();
  s.statistics.refusals = 0;
  s.statistics.hash_collisions = 0;
  return s;
}

/// What can be seen of a sequence.
template <class Sequence>
[[nodiscard]] auto look_at(Sequence const& sequence) -> toy_table
  requires requires { sequence.blocks(); }
{
  auto const blocks = sequence.blocks();
  return {sequence.length().value(), {blocks.begin(), blocks.end()}};
}

} // namespace quire_test
