// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Output states of prompts: the logits at position P − 1.
///
/// A prompt whose every block is resident still needs the distribution at P − 1 (S22). Either that position is computed
/// again, or its logits were kept, here. They belong to the scope that computed them, as KV does.

#include <quire/core/types.hpp>

#include <algorithm> // std::equal, std::min_element
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire {

/// A small store of logits by scope and whole prompt, least recently used first out. It compares every token: a digest
/// decides nothing.
class kept_outputs {
public:
  /// Keeps \p capacity prompts; 0 keeps nothing.
  explicit kept_outputs(std::uint32_t capacity = 0) : capacity_{capacity} {}

  /// Logits behind \p prompt in \p scope. \returns an empty span if they are not kept; else valid until `keep` or `forget`
  /// \complexity O(kept prompts)
  [[nodiscard]] auto find(scope_number scope, std::span<token_id const> prompt) -> std::span<float const> {
    for (auto& e : entries_) {
      if (!e.is(scope, prompt)) { continue; }
      e.used = ++uses_;
      return e.logits;
    }
    return {};
  }
  /// Keeps \p logits behind \p prompt in \p scope, in place of what was used longest ago.
  auto keep(scope_number scope, std::span<token_id const> prompt, std::span<float const> logits) -> void {
    if (capacity_ == 0) { return; }
    auto at = entries_.begin();
    while (at != entries_.end() && !at->is(scope, prompt)) { ++at; }
    if (at == entries_.end() && entries_.size() < capacity_) { at = entries_.emplace(at); }
    if (at == entries_.end()) {
      at = std::min_element(entries_.begin(), entries_.end(),
                            [](auto const& a, auto const& b) { return a.used < b.used; });
    }
    at->scope = scope;
    at->prompt.assign(prompt.begin(), prompt.end());
    at->logits.assign(logits.begin(), logits.end());
    at->used = ++uses_;
  }
  /// Forgets everything, because the weights have changed.
  auto forget() noexcept -> void { entries_.clear(); }
  /// Prompts kept now.
  [[nodiscard]] auto size() const noexcept -> std::size_t { return entries_.size(); }

private:
  struct entry {
    scope_number scope{};
    std::vector<token_id> prompt{};
    std::vector<float> logits{};
    std::uint64_t used = 0;
    [[nodiscard]] auto is(scope_number s, std::span<token_id const> p) const -> bool {
      return scope == s && std::equal(prompt.begin(), prompt.end(), p.begin(), p.end());
    }
  };
  std::vector<entry> entries_;
  std::uint32_t capacity_;
  std::uint64_t uses_ = 0;
};

} // namespace quire
