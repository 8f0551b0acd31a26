// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Which hits there can be: every path of full blocks that was ever published, as plain token lists.

#include <quire/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace quire_test {

/// The paths of each scope and epoch.
class toy_paths {
public:
  /// Scope and epoch.
  using key = std::pair<std::uint32_t, std::uint32_t>;
  using path = std::vector<quire::token_id>;

  /// Of blocks of \p block_tokens tokens.
  explicit toy_paths(std::uint32_t block_tokens) : block_tokens_{block_tokens} {}

  /// Notes the full blocks of a sequence whose first \p known tokens are committed and known.
  void add(key const& where, path const& tokens, std::size_t known) {
    auto const full = std::min(known, tokens.size()) / block_tokens_;
    for (std::size_t j = 1; j <= full; ++j) { paths_[where].insert(front(tokens, j)); }
  }
  /// The longest hit there can be: nothing but committed, known, full blocks of the same scope and weights.
  [[nodiscard]] auto best_hit(key const& where, path const& prompt) -> std::uint32_t {
    auto const& paths = paths_[where];
    std::size_t j = 0;
    while ((j + 1) * block_tokens_ <= prompt.size() && paths.contains(front(prompt, j + 1))) { ++j; }
    return static_cast<std::uint32_t>(std::min(j * block_tokens_, prompt.size() - 1));
  }

private:
  [[nodiscard]] auto front(path const& tokens, std::size_t blocks) const -> path {
    return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(blocks * block_tokens_)};
  }

  std::size_t block_tokens_;
  std::map<key, std::set<path>> paths_;
};

} // namespace quire_test
