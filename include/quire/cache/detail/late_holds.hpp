// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Holds on blocks of window groups that a sequence gave up while in-flight work may still read them (S18).

#include <quire/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// FIFO of holds and their tickets on one timeline. A block may wait several times, once for each who left it.
class late_holds {
public:
  /// Makes sure that \p more pushes need no memory. \throws std::bad_alloc; nothing has changed then.
  auto reserve(std::size_t more) -> void {
    if (first_ > 0 && waiting_.size() + more > waiting_.capacity()) {
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    if (waiting_.size() + more > waiting_.capacity()) { waiting_.reserve(2 * (waiting_.size() + more)); }
  }
  /// \pre `reserve` \param unready who left it wrote it, and may not have finished
  auto push(std::uint32_t group, block_id block, ticket until, bool unready) noexcept -> void {
    waiting_.push_back({until, block, group, unready});
  }
  /// Hands holds whose ticket \p reached(ticket) to \p release(group, block, unready), oldest first.
  template <class Reached, class Release>
  auto drain(Reached reached, Release release) -> void {
    while (first_ < waiting_.size() && reached(waiting_[first_].until)) {
      auto const late = waiting_[first_++];
      release(late.group, late.block, late.unready);
    }
    if (first_ == waiting_.size()) {
      waiting_.clear();
      first_ = 0;
    }
  }
  [[nodiscard]] auto empty() const noexcept -> bool { return first_ == waiting_.size(); }
  [[nodiscard]] auto size() const noexcept -> std::size_t { return waiting_.size() - first_; }
  /// Visits (group, block, unready).
  template <class Visit>
  auto for_each(Visit visit) const -> void {
    for (auto i = first_; i < waiting_.size(); ++i) {
      visit(waiting_[i].group, waiting_[i].block, waiting_[i].unready);
    }
  }
  /// Forgets the holds for which \p gone(group, block).
  template <class Gone>
  auto remove_if(Gone gone) -> void {
    auto const begin = waiting_.begin() + static_cast<std::ptrdiff_t>(first_);
    auto const is_gone = [&](late_hold const& late) { return gone(late.group, late.block); };
    waiting_.erase(std::remove_if(begin, waiting_.end(), is_gone), waiting_.end());
  }

private:
  struct late_hold {
    ticket until;
    block_id block;
    std::uint32_t group;
    bool unready;
  };
  std::vector<late_hold> waiting_;
  std::size_t first_ = 0;
};
/// \endcond

} // namespace quire::detail
