// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A prefix index that is obviously right: a map from paths to blocks, one entry per block, every question answered by
/// looking at all of them. The orders of eviction are written from their definitions, block by block:
///
/// - LRU: the idle leaf whose last release is longest ago; of one release the deepest.
/// - LFU: the idle leaf that the fewest requests were admitted onto, its publisher included; ties as LRU.
/// - FIFO: the idle leaf that was published first, where a block that its publisher hung directly behind its own last one, with
///   nobody else there, counts as published with that one (\p runs), or for itself.

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
  /// Number of the root, then one symbol per block.
  using path = std::vector<std::uint32_t>;
  /// One cached block.
  struct entry {
    std::uint32_t block = 0;
    std::uint32_t pins = 0;      ///< Holders whose path contains it.
    std::uint64_t released = 0;  ///< When it became idle.
    std::uint64_t published = 0; ///< When it was published.
    std::uint32_t uses = 1;      ///< Requests that were admitted onto it, its publisher included.
    std::uint32_t children = 0;  ///< Cached blocks right below it.
  };

  /// Orders victims by \p order; \p runs as above.
  model_prefix(model_order order, bool runs) : order_{order}, runs_{runs} {}

  /// Blocks of the longest cached prefix of \p p.
  [[nodiscard]] auto match(path const& p) const -> std::vector<std::uint32_t> {
    auto out = std::vector<std::uint32_t>{};
    auto at = path{p.front()};
    for (std::size_t i = 1; i < p.size(); ++i) {
      at.push_back(p[i]);
      auto const found = blocks_.find(at);
      if (found == blocks_.end()) { break; }
      out.push_back(found->second.block);
    }
    return out;
  }
  /// Idle blocks on \p p.
  [[nodiscard]] auto idle_on(path p) const -> std::uint32_t {
    std::uint32_t n = 0;
    for (; p.size() > 1; p.pop_back()) { n += blocks_.at(p).pins == 0 ? 1U : 0U; }
    return n;
  }
  /// Blocks among the last \p back of \p p that only one holder pins.
  [[nodiscard]] auto only_one_on(path p, std::size_t back) const -> std::uint32_t {
    std::uint32_t n = 0;
    for (; back > 0; --back, p.pop_back()) { n += blocks_.at(p).pins == 1 ? 1U : 0U; }
    return n;
  }
  /// A holder of all of \p p; \p use if a request was admitted onto it.
  void pin(path p, bool use) {
    for (; p.size() > 1; p.pop_back()) {
      auto& e = blocks_.at(p);
      ++e.pins;
      e.uses += use ? 1U : 0U;
    }
  }
  /// That holder leaves. Everything that becomes idle does so at one time.
  void release(path p) {
    ++clock_;
    for (; p.size() > 1; p.pop_back()) {
      auto& e = blocks_.at(p);
      if (--e.pins == 0) { e.released = clock_; }
    }
  }
  /// True if \p p is cached.
  [[nodiscard]] auto has(path const& p) const -> bool { return blocks_.contains(p); }
  /// The block at \p p. \pre it is cached
  [[nodiscard]] auto at(path const& p) -> entry& { return blocks_.at(p); }
  /// A holder of the path above \p p publishes \p block there and holds it too. \param owned it published the block above.
  /// \param first of a call
  void publish(path const& p, std::uint32_t block, bool owned, bool first) {
    auto above = p;
    above.pop_back();
    auto const joins = runs_ && above.size() > 1 &&
                       (!first || (owned && blocks_.at(above).pins == 1 && blocks_.at(above).children == 0));
    auto const when = joins ? blocks_.at(above).published : ++clock_;
    put(p, entry{block, 1, 0, when, 1, 0});
  }
  /// Path of the next victim, empty if there is none.
  [[nodiscard]] auto victim() const -> path {
    auto const* best = static_cast<path const*>(nullptr);
    auto least = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>{};
    for (auto const& [p, e] : blocks_) {
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
    auto const e = blocks_.at(p);
    blocks_.erase(p);
    count_children(p, -1);
    return e;
  }
  /// Puts a block back that was taken.
  void put(path const& p, entry const& e) {
    blocks_.emplace(p, e);
    count_children(p, 1);
  }
  /// Idle blocks.
  [[nodiscard]] auto evictable() const -> std::size_t {
    return static_cast<std::size_t>(
        std::count_if(blocks_.begin(), blocks_.end(), [](auto const& b) { return b.second.pins == 0; }));
  }
  /// Everything that is cached.
  [[nodiscard]] auto all() const -> std::map<path, entry> const& { return blocks_; }
  /// True if \p a is \p b or lies above it.
  [[nodiscard]] static auto is_prefix(path const& a, path const& b) -> bool {
    return a.size() <= b.size() && std::equal(a.begin(), a.end(), b.begin());
  }

private:
  void count_children(path p, int more) {
    p.pop_back();
    if (p.size() > 1) { blocks_.at(p).children += static_cast<std::uint32_t>(more); }
  }

  model_order order_;
  bool runs_;
  std::uint64_t clock_ = 0;
  std::map<path, entry> blocks_;
};

} // namespace quire_test
