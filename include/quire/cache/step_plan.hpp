// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The handle of one step.

#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/detail/cache_state.hpp>
#include <quire/cache/detail/step_slot.hpp>
#include <quire/cache/detail/stepper.hpp>
#include <quire/cache/fwd.hpp>
#include <quire/cache/sequence.hpp>
#include <quire/cache/step.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/view/action.hpp>
#include <quire/view/batch_view.hpp>

#include <cstdint>
#include <span>
#include <utility>

namespace quire {

/// What one step does with one sequence, `kv_cache::step_item`: q positions whose ids are given, or q positions whose ids
/// come later. The two cannot disagree.
template <class Policies>
class cache_step_item {
public:
  /// Adds the positions of \p ids. \param user comes back in the result
  cache_step_item(cache_sequence<Policies> const& target, std::span<token_id const> ids,
                  step_source source = step_source::compute, std::uint64_t user = 0) noexcept
      : target_{&target}, tokens_{static_cast<std::uint32_t>(ids.size())}, ids_{ids}, source_{source}, user_{user} {}
  /// Adds \p n positions whose ids are not known yet: `resolve` tells them (B17).
  cache_step_item(cache_sequence<Policies> const& target, token_count n, step_source source = step_source::compute,
                  std::uint64_t user = 0) noexcept
      : target_{&target}, tokens_{n.value()}, source_{source}, user_{user} {}

private:
  template <class>
  friend class kv_cache;
  template <class>
  friend class cache_step_plan;
  cache_sequence<Policies> const* target_;
  std::uint32_t tokens_;
  std::span<token_id const> ids_{};
  step_source source_;
  std::uint64_t user_;
};

/// A step that is planned or launched, `kv_cache::step_plan`. Move-only; the destructor drops it: before launch everything is
/// as before the plan, after it the step's blocks retire under a ticket issued then.
template <class Policies>
class cache_step_plan {
  using state_type = detail::cache_state<Policies>;
  using core_type = detail::cache_core<Policies>;
  using slot_type = typename core_type::slot_type;
  using wanted = detail::wanted_item<typename core_type::record_type>;

public:
  /// Refers to nothing.
  cache_step_plan() noexcept = default;
  /// Leaves \p other empty.
  cache_step_plan(cache_step_plan&& other) noexcept
      : state_{std::exchange(other.state_, nullptr)}, slot_{other.slot_}, serial_{other.serial_} {}
  /// Drops what it held and leaves \p other empty.
  auto operator=(cache_step_plan&& other) noexcept -> cache_step_plan& {
    if (this != &other) {
      reset();
      state_ = std::exchange(other.state_, nullptr);
      slot_ = other.slot_;
      serial_ = other.serial_;
    }
    return *this;
  }
  ~cache_step_plan() { reset(); }
  /// True while it refers to an open plan.
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
  /// Adds one more item. Refused, it changes nothing: preempt somebody, and try it again.
  /// \pre not launched yet. \throws std::bad_alloc with nothing changed. \complexity O(new blocks). \source B23
  auto try_add(cache_step_item<Policies> const& item) -> step_result {
    auto& s = slot();
    QUIRE_EXPECTS(s.phase == detail::step_phase::planned);
    detail::cache_guard<Policies> const hold{*state_};
    return detail::stepper<Policies>{state_->core}.try_add(s, wanted_of(item));
  }
  /// One answer per item, in the order of the items.
  [[nodiscard]] auto results() const -> std::span<step_result const> {
    auto const& list = slot().results;
    return {list.begin(), list.size()};
  }
  /// True if every item is part of the step.
  [[nodiscard]] auto complete() const -> bool { return slot().items.size() == slot().results.size(); }
  /// Takes what the plan has counted: victims leave, blocks are assigned. Cannot fail. Returns what an executor has to do
  /// before the forward pass, in order.
  /// \pre not launched yet. The span is valid until the plan is committed or dropped.
  auto launch() -> std::span<action const> {
    auto& s = slot();
    detail::cache_guard<Policies> const hold{*state_};
    return detail::stepper<Policies>{state_->core}.launch(s);
  }
  /// What the backend reads and writes for the layers of \p group; immutable until the ticket given at commit is reached. Of
  /// a window, cells are -1 where no query of the step can see. \pre launched
  [[nodiscard]] auto view(group_id group = group_id{0}) const -> batch_view const& {
    auto const& s = slot();
    QUIRE_EXPECTS(s.phase == detail::step_phase::launched);
    return s.groups[state_->core.groups.part_of(group)].view;
  }

private:
  template <class>
  friend class kv_cache;
  cache_step_plan(state_type* s, slot_type& slot) noexcept : state_{s}, slot_{&slot}, serial_{slot.serial} {}
  [[nodiscard]] auto slot() const -> slot_type& {
    QUIRE_EXPECTS(state_ != nullptr && slot_->serial == serial_);
    return *slot_;
  }
  [[nodiscard]] auto wanted_of(cache_step_item<Policies> const& item) const -> wanted {
    return wanted_of(*state_, item);
  }
  [[nodiscard]] static auto wanted_of(state_type const& state, cache_step_item<Policies> const& item) -> wanted {
    QUIRE_EXPECTS(item.target_->state_ == &state);
    auto* const record = item.target_->record_;
    QUIRE_EXPECTS(record->generation == item.target_->generation_);
    return {record, item.tokens_, item.ids_, item.source_ == step_source::load, item.user_};
  }
  auto reset() noexcept -> void {
    if (auto* const s = std::exchange(state_, nullptr); s != nullptr) {
      detail::cache_guard<Policies> const hold{*s};
      detail::stepper<Policies>{s->core}.drop(*slot_);
    }
  }
  state_type* state_ = nullptr;
  slot_type* slot_ = nullptr;
  std::uint64_t serial_ = 0;
};

} // namespace quire
