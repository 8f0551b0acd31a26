// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Digests of runs that somebody has asked for. Nobody does in a cache without tiers or events: then this is empty.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// Digest of the first `length(node)` units of a run, by node. A run that grows keeps it; one that is cut forgets it.
template <class Digest>
class run_digests {
public:
  /// From now on digests are kept. \throws std::bad_alloc
  auto keep(std::size_t nodes) -> void {
    if (entries_.empty()) { entries_.resize(nodes); }
  }
  /// [units] that the kept digest of \p node covers; 0 = none is kept.
  [[nodiscard]] auto length(std::uint32_t node) const noexcept -> std::uint32_t {
    return entries_.empty() ? 0 : entries_[node].length;
  }
  [[nodiscard]] auto digest(std::uint32_t node) const noexcept -> Digest const& { return entries_[node].digest; }
  auto note(std::uint32_t node, std::uint32_t length, Digest const& digest) noexcept -> void {
    entries_[node] = {digest, length};
  }
  auto forget(std::uint32_t node) noexcept -> void {
    if (!entries_.empty()) { entries_[node].length = 0; }
  }

private:
  struct entry {
    Digest digest{};
    std::uint32_t length = 0;
  };
  std::vector<entry> entries_;
};
/// \endcond

} // namespace quire::detail
