// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The handle of one request.

#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/detail/cache_state.hpp>
#include <quire/cache/detail/lifetime.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace quire {

/// One request's hold on a cache, `kv_cache::sequence`. Move-only; the destructor releases it.
template <class Policies>
class cache_sequence {
  using state_type = detail::cache_state<Policies>;
  using record_type = typename detail::cache_core<Policies>::record_type;

public:
  /// Refers to nothing.
  cache_sequence() noexcept = default;
  /// Leaves \p other empty.
  cache_sequence(cache_sequence&& other) noexcept
      : state_{std::exchange(other.state_, nullptr)}, record_{other.record_}, generation_{other.generation_} {}
  /// Releases what it held and leaves \p other empty.
  auto operator=(cache_sequence&& other) noexcept -> cache_sequence& {
    if (this != &other) {
      reset();
      state_ = std::exchange(other.state_, nullptr);
      record_ = other.record_;
      generation_ = other.generation_;
    }
    return *this;
  }
  ~cache_sequence() { reset(); }
  /// True while it refers to a live sequence.
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
  /// [tokens] of the prompt that were found in the cache and need no compute; at most P − 1 (S22). Where windows have lost
  /// what belongs to a hit, fewer than `found()`: the rest is computed again, without writing what is there. A fork has found
  /// what it shares.
  [[nodiscard]] auto cached() const -> token_count {
    auto const& r = record();
    return token_count{std::min(r.reuse.start, r.prompt - 1)};
  }
  /// [tokens] of the prompt that the index had.
  [[nodiscard]] auto found() const -> token_count { return token_count{record().reuse.found}; }
  /// [tokens] from `cached()` on whose outputs are not exact, because they rebuild windows from nothing (S28): at most
  /// N_w · (w − 1), and block rounding. Their tokens must be the prompt's.
  [[nodiscard]] auto rebuilt() const -> token_count {
    auto const& r = record();
    return token_count{r.reuse.exact_from > 0 ? r.reuse.exact_from - r.reuse.start : 0U};
  }
  /// What is left to compute of \p prompt, which is the one it was admitted with: everything behind `length()`.
  [[nodiscard]] auto remaining(std::span<token_id const> prompt) const -> std::span<token_id const> {
    return prompt.subspan(std::min<std::size_t>(length().value(), prompt.size()));
  }
  /// [tokens] committed: readable by the next step, L.
  [[nodiscard]] auto length() const -> token_count { return token_count{record().at.committed}; }
  /// [tokens] committed whose ids are known.
  [[nodiscard]] auto resolved() const -> token_count { return token_count{record().at.known}; }
  /// [blocks] in its table of layer group \p group, a launched step's included; `none()` where a window has given a block up.
  [[nodiscard]] auto blocks(group_id group = group_id{0}) const -> std::span<block_id const> {
    auto const& r = record();
    return r.tables[state_->core.groups.part_of(group)].blocks;
  }
  /// [blocks of a unit] that other sequences can match.
  [[nodiscard]] auto shared_blocks() const -> block_count { return block_count{record().path.pinned()}; }
  /// Where the request stands in its life cycle.
  [[nodiscard]] auto phase() const { return record().phase; }
  /// Its number in events.
  [[nodiscard]] auto number() const -> sequence_number { return record().number; }

private:
  template <class>
  friend class kv_cache;
  template <class>
  friend class cache_step_plan;
  cache_sequence(state_type* s, record_type& record) noexcept
      : state_{s}, record_{&record}, generation_{record.generation} {}
  /// \pre the handle is not empty and not used up.
  [[nodiscard]] auto record() const -> record_type& {
    QUIRE_EXPECTS(state_ != nullptr);
    QUIRE_EXPECTS(record_->generation == generation_);
    return *record_;
  }
  auto reset() noexcept -> void {
    if (auto* const s = std::exchange(state_, nullptr); s != nullptr) {
      detail::cache_guard<Policies> const hold{*s};
      static_cast<void>(detail::end(s->core, *record_, detail::cache_core<Policies>::request_event_type::finish));
    }
  }
  state_type* state_ = nullptr;
  record_type* record_ = nullptr;
  std::uint32_t generation_ = 0;
};

} // namespace quire
