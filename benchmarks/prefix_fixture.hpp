// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A prefix index driven the way the cache drives it, for benchmarks below `kv_cache`.

#include "support.hpp"

#include <quire/core/types.hpp>
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/prefix_pin.hpp>
#include <quire/prefix/run_tree.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace quire_bench {

/// [tokens] per unit.
inline constexpr std::uint32_t unit_tokens = 16;
/// [units] of the prompt that the goals speak of: 8192 tokens.
inline constexpr std::uint32_t prompt_units = 512;

/// In which order a fresh index hands out its units.
enum class unit_order : std::uint8_t { consecutive, scattered };

/// Index and scope.
template <class Index = quire::run_tree<>>
class prefix_fixture {
public:
  explicit prefix_fixture(std::uint32_t units, unit_order order = unit_order::consecutive)
      : index{quire::unit_count{units}, quire::token_count{unit_tokens}}, root{index.open_root({})} {
    if (order == unit_order::scattered) { scatter(); }
  }

  /// Makes the free units come in random order.
  auto scatter() -> void {
    std::vector<quire::unit_id> all(index.free_units().value());
    allocate(all);
    std::mt19937_64 random{7};
    std::shuffle(all.begin(), all.end(), random);
    for (auto const unit : all) { index.drop_unit(unit); }
  }
  /// Units for \p out, evicting where none is free.
  auto allocate(std::span<quire::unit_id> out) -> void {
    auto const free = index.free_units().value();
    if (free < out.size()) { evict(out.subspan(free)); }
    for (auto& unit : out) { unit = index.take_unit(); }
  }
  /// Frees the least recently used units.
  auto evict(std::span<quire::unit_id> out) -> void {
    expect(index.evict(out).value() == out.size(), "nothing left to evict");
  }
  /// Turns every idle cached unit into a free one.
  auto flush() -> void {
    std::vector<quire::unit_id> all(index.evictable().value());
    evict(all);
  }
  /// Copies the tokens of full units to where they are compared.
  auto write(std::span<quire::token_id const> tokens, std::span<quire::unit_id const> units) -> void {
    for (std::size_t i = 0; i < units.size(); ++i) {
      auto const from = tokens.subspan(i * unit_tokens, unit_tokens);
      std::copy(from.begin(), from.end(), index.tokens(units[i]).begin());
    }
  }
  /// Makes units matchable. \pre their tokens are written and they are new to the index
  auto publish(quire::prefix_pin& pin, std::span<quire::unit_id const> units) -> void {
    expect(index.publish(pin, units).published.value() == units.size(), "a unit exists already");
  }
  /// Attaches what is there of \p tokens and publishes the rest. \returns the pin of all of it
  auto admit(std::span<quire::token_id const> tokens) -> quire::prefix_pin {
    ids.resize(tokens.size() / unit_tokens);
    auto const found = index.match(root, tokens, ids);
    auto pin = index.pin(found);
    auto const rest = std::span{ids}.subspan(found.units.value());
    if (rest.empty()) { return pin; }
    allocate(rest);
    write(tokens.subspan(std::size_t{found.units.value()} * unit_tokens), rest);
    publish(pin, rest);
    return pin;
  }
  /// Attaches, publishes and lets go: the units are cached.
  auto cache(std::span<quire::token_id const> tokens) -> void { index.release(admit(tokens)); }

  Index index;
  quire::node_id root;
  std::vector<quire::unit_id> ids; ///< Of the prompt admitted last.
};

} // namespace quire_bench
