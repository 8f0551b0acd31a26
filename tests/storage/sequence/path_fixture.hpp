// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A path and its lengths over an index, without blocks, driven as a cache drives them.

#include <quire/core/types.hpp>
#include <quire/prefix/prefix_pin.hpp>
#include <quire/sequence/block_geometry.hpp>
#include <quire/sequence/prefix_path.hpp>
#include <quire/sequence/sequence_lengths.hpp>

#include "support/catch_compat.hpp"
#include "support/texts.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace quire_test {

/// A sequence as its path and its lengths know it.
struct traveller {
  quire::prefix_path path;
  quire::sequence_lengths at;
};

/// What the steps of one `settle` came to.
struct settled_sums {
  std::uint32_t published = 0;
  std::uint32_t adopted = 0;
  std::uint32_t idle_twins = 0;
  std::uint32_t busy_twins = 0;
  friend auto operator==(settled_sums const&, settled_sums const&) -> bool = default;
};

/// An index of 32 units of 4 tokens, and sequences over it. \tparam Index models `prefix_index`.
template <class Index>
struct path_workshop {
  static constexpr std::uint32_t units = 32;
  Index index{quire::unit_count{units}, quire::token_count{4}};
  quire::block_geometry unit{quire::token_count{4}};
  quire::node_id root = index.open_root({});

  /// Finds and pins what is there of \p prompt, all but the last position at most.
  void attach(traveller& s, text const& prompt, bool skip_writes = true) {
    auto const length = static_cast<std::uint32_t>(prompt.size());
    s.path.reserve(units);
    auto const found = index.match(root, prompt, s.path.open(length / 4));
    s.path.attach(index, found);
    auto const hit = found.units.value() * 4;
    s.at.committed = s.at.known = std::min(hit, length - 1);
    s.at.skip_until = skip_writes ? hit : 0;
  }
  /// Takes units for \p q more positions. \returns the unit that was copied
  auto take(traveller& s, std::uint32_t q) -> quire::unit_id { return s.path.take(index, unit, s.at, q); }
  /// Computes \p tokens behind what was taken, whose ids come with the step, or later.
  auto commit(traveller& s, text const& tokens, quire::unit_id source = {}, bool known = true) -> settled_sums {
    if (source) { release(s.path.leave_source(index, unit.index(s.at.committed), source)); }
    auto const skipped = std::min(s.at.skips(), static_cast<std::uint32_t>(tokens.size()));
    if (known) {
      s.path.keep_tokens(index, unit, s.at.committed + skipped, std::span{tokens}.subspan(skipped));
      s.at.known = s.at.committed + static_cast<std::uint32_t>(tokens.size());
    }
    s.path.own_tail();
    s.at.committed += static_cast<std::uint32_t>(tokens.size());
    REQUIRE(s.path.size() == unit.blocks(s.at.covered())); // no unit too many
    return settle(s);
  }
  /// One whole step.
  auto append(traveller& s, text const& tokens) -> settled_sums {
    auto const source = take(s, static_cast<std::uint32_t>(tokens.size()));
    return commit(s, tokens, source);
  }
  auto settle(traveller& s, bool publishes = true) -> settled_sums {
    auto out = settled_sums{};
    for (;;) {
      auto const done = s.path.settle(index, unit, s.at, publishes);
      if (done.empty()) { return out; }
      REQUIRE(done.end == s.path.pinned());
      auto const last = done.last == quire::unit_origin::published ? 0U : 1U;
      out.published += done.end - done.first - last;
      out.adopted += done.last == quire::unit_origin::adopted ? 1U : 0U;
      out.idle_twins += done.last == quire::unit_origin::idle_twin ? 1U : 0U;
      out.busy_twins += done.last == quire::unit_origin::busy_twin ? 1U : 0U;
    }
  }
  void fork(traveller& s, traveller& child, std::uint32_t length) {
    child.path.reserve(units);
    settle(s);
    s.path.fork(index, child.path, unit.blocks(length));
    child.at = {.committed = length, .known = std::min(s.at.known, length), .skip_until = 0};
  }
  void truncate(traveller& s, std::uint32_t length) {
    settle(s);
    release(s.path.truncate(index, unit.blocks(length)));
    s.at.truncate(length);
  }
  void drop(traveller& s) {
    settle(s, false);
    release(s.path.drop(index));
    s.at = {};
  }
  void release(quire::prefix_pin pin) {
    if (pin) { index.release(std::move(pin)); }
  }
  /// Units that nobody uses, or that nobody needs.
  [[nodiscard]] auto available() const -> std::uint32_t {
    return index.free_units().value() + index.evictable().value();
  }

  /// Proves every invariant of the index from the paths of all \p sequences.
  void check(std::vector<traveller const*> const& sequences) const {
    auto ends = std::vector<std::uint32_t>(units); // by unit: the node that ends with it
    index.for_each_node(
        [&](quire::node_id node, quire::node_id, auto of, std::uint32_t) { ends[of.back()] = node.value(); });
    auto pins = std::vector<std::uint32_t>(index.capacity().value() + 1);
    auto holders = std::vector<std::uint32_t>(units);
    for (auto const* s : sequences) {
      auto const& path = s->path;
      REQUIRE(s->at.known <= s->at.committed);
      REQUIRE(path.pinned() <= path.size());
      if (!path.pin()) {
        REQUIRE(path.size() == 0);
        continue;
      }
      if (!is_root(path.pin().node())) { ++pins[path.pin().node().value()]; }
      for (std::uint32_t u = 0; u < path.size(); ++u) {
        auto const unit_ = path.units()[u];
        if (u < path.pinned()) {
          REQUIRE(index.published(unit_));
        } else if (index.published(unit_)) {
          REQUIRE(ends[unit_.value()] != 0);
          ++pins[ends[unit_.value()]];
        } else {
          ++holders[unit_.value()];
        }
      }
    }
    for (std::uint32_t u = 0; u < units; ++u) {
      if (index.published(quire::unit_id{u})) { continue; }
      CAPTURE(u);
      REQUIRE(index.holders(quire::unit_id{u}) == holders[u]);
    }
    REQUIRE(index.audit(pins).empty());
  }
};

} // namespace quire_test
