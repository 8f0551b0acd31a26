// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A prefix index that is obviously right: a map from paths to units, one entry per unit, every question answered by
/// looking at all of them. The orders of eviction are written from their definitions, unit by unit:
///
/// - LRU: the idle leaf whose last release is longest ago; of one release the deepest.
/// - LFU: the idle leaf that the fewest requests were admitted onto, its publisher included; ties as LRU.
/// - FIFO: the idle leaf that was published first, where a unit that its publisher hung directly behind its own last one, with
///   nobody else there, counts as published with that one (\p runs), or for itself.
///
/// Whatever the order, idle leaves below closed roots come first; which of them is left open.

#include <quire/core/types.hpp>

#include "support/toy_kv.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace quire_test {

/// Order of eviction.
enum class model_order : std::uint8_t { lru, fifo, lfu };

/// The naive index.
class model_prefix {
public:
  /// Number of the root, then one symbol per unit.
  using path = std::vector<std::uint32_t>;
  /// One cached unit.
  struct entry {
    std::uint32_t unit = 0;
    std::uint32_t pins = 0;      ///< Holders whose path contains it.
    std::uint64_t released = 0;  ///< When it became idle.
    std::uint64_t published = 0; ///< When it was published.
    std::uint32_t uses = 1;      ///< Requests that were admitted onto it, its publisher included.
    std::uint32_t children = 0;  ///< Cached units right below it.
  };

  /// Orders victims by \p order; \p runs as above.
  model_prefix(model_order order, bool runs) : order_{order}, runs_{runs} {}

  /// Units of the longest cached prefix of \p p.
  [[nodiscard]] auto match(path const& p) const -> std::vector<std::uint32_t> {
    auto out = std::vector<std::uint32_t>{};
    auto at = path{p.front()};
    for (std::size_t i = 1; i < p.size(); ++i) {
      at.push_back(p[i]);
      auto const found = units_.find(at);
      if (found == units_.end()) { break; }
      out.push_back(found->second.unit);
    }
    return out;
  }
  /// Idle units on \p p.
  [[nodiscard]] auto idle_on(path p) const -> std::uint32_t {
    std::uint32_t n = 0;
    for (; p.size() > 1; p.pop_back()) { n += units_.at(p).pins == 0 ? 1U : 0U; }
    return n;
  }
  /// Units among the last \p back of \p p that only one holder pins.
  [[nodiscard]] auto only_one_on(path p, std::size_t back) const -> std::uint32_t {
    std::uint32_t n = 0;
    for (; back > 0; --back, p.pop_back()) { n += units_.at(p).pins == 1 ? 1U : 0U; }
    return n;
  }
  /// A holder of all of \p p; \p use if a request was admitted onto it.
  void pin(path p, bool use) {
    for (; p.size() > 1; p.pop_back()) {
      auto& e = units_.at(p);
      ++e.pins;
      e.uses += use ? 1U : 0U;
    }
  }
  /// That holder leaves. Everything that becomes idle does so at one time.
  void release(path p) {
    ++clock_;
    for (; p.size() > 1; p.pop_back()) {
      auto& e = units_.at(p);
      if (--e.pins == 0) { e.released = clock_; }
    }
  }
  /// True if \p p is cached.
  [[nodiscard]] auto has(path const& p) const -> bool { return units_.contains(p); }
  /// The unit at \p p. \pre it is cached
  [[nodiscard]] auto at(path const& p) -> entry& { return units_.at(p); }
  /// A holder of the path above \p p publishes \p unit there and holds it too. \param owned it published the unit above.
  /// \param first of a call
  void publish(path const& p, std::uint32_t unit, bool owned, bool first) {
    auto above = p;
    above.pop_back();
    auto const joins = runs_ && above.size() > 1 &&
                       (!first || (owned && units_.at(above).pins == 1 && units_.at(above).children == 0));
    auto const when = joins ? units_.at(above).published : ++clock_;
    units_.emplace(p, entry{unit, 1, 0, when, 1, 0});
    count_children(p, 1);
  }
  /// Nobody looks below \p root any more.
  void close(std::uint32_t root) { closed_.insert(root); }
  /// True if \p p hangs below a closed root.
  [[nodiscard]] auto lost(path const& p) const -> bool { return closed_.contains(p.front()); }
  /// True if the entry \p e at \p p may leave before everything that the order says.
  [[nodiscard]] auto leaves_first(path const& p, entry const& e) const -> bool {
    return lost(p) && e.pins == 0 && e.children == 0;
  }
  /// Where the unit with that number is; empty if nowhere.
  [[nodiscard]] auto path_of(std::uint32_t unit) const -> path {
    auto const found =
        std::find_if(units_.begin(), units_.end(), [&](auto const& one) { return one.second.unit == unit; });
    return found == units_.end() ? path{} : found->first;
  }
  /// True if something leaves before the victim of the order.
  [[nodiscard]] auto some_leave_first() const -> bool {
    return std::any_of(units_.begin(), units_.end(),
                       [&](auto const& one) { return leaves_first(one.first, one.second); });
  }
  /// Path of the next victim of the order, empty if there is none.
  [[nodiscard]] auto victim() const -> path {
    auto const* best = static_cast<path const*>(nullptr);
    auto least = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>{};
    for (auto const& [p, e] : units_) {
      if (e.pins != 0 || e.children != 0) { continue; }
      auto const deep = ~std::uint64_t{p.size()};
      auto const key = order_ == model_order::fifo  ? std::tuple{e.published, deep, std::uint64_t{0}}
                       : order_ == model_order::lru ? std::tuple{e.released, deep, std::uint64_t{0}}
                                                    : std::tuple{std::uint64_t{e.uses}, e.released, deep};
      if (best == nullptr || key < least) {
        best = &p;
        least = key;
      }
    }
    return best == nullptr ? path{} : *best;
  }
  /// Takes \p p out.
  auto take(path const& p) -> entry {
    auto const e = units_.at(p);
    units_.erase(p);
    count_children(p, -1);
    return e;
  }
  /// Idle units.
  [[nodiscard]] auto evictable() const -> std::size_t {
    return static_cast<std::size_t>(
        std::count_if(units_.begin(), units_.end(), [](auto const& one) { return one.second.pins == 0; }));
  }
  /// Everything that is cached.
  [[nodiscard]] auto all() const -> std::map<path, entry> const& { return units_; }
  /// True if \p a is \p b or lies above it.
  [[nodiscard]] static auto is_prefix(path const& a, path const& b) -> bool {
    return a.size() <= b.size() && std::equal(a.begin(), a.end(), b.begin());
  }

private:
  void count_children(path p, int more) {
    p.pop_back();
    if (p.size() > 1) { units_.at(p).children += static_cast<std::uint32_t>(more); }
  }

  model_order order_;
  bool runs_;
  std::uint64_t clock_ = 0;
  std::map<path, entry> units_;
  std::set<std::uint32_t> closed_;
};

} // namespace quire_test
