// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// An executor that remembers what it was asked to do.

#include <quire/core/expected.hpp>
#include <quire/view/action.hpp>
#include <quire/view/concepts.hpp>
#include <quire/view/fwd.hpp>
#include <quire/view/null_executor.hpp> // IWYU pragma: keep, the default of Inner

#include <concepts>
#include <span>
#include <utility>
#include <vector>

namespace quire {

/// Passes actions on to \p Inner and keeps those that it performed, in order: for the tests of an engine and for
/// operation logs. \tparam Inner the executor that does the work.
template <executor Inner>
class recording_executor {
public:
  /// Records in front of a default executor.
  recording_executor()
    requires std::default_initializable<Inner>
  = default;
  /// Records in front of \p inner.
  explicit recording_executor(Inner inner) : inner_{std::move(inner)} {}

  /// Lets the inner executor perform \p actions, then records them.
  /// \returns what the inner executor returned; a refused span is not recorded.
  /// \throws std::bad_alloc before anything is performed, and whatever the inner executor throws
  [[nodiscard]] auto run(std::span<action const> actions) -> expected<void> {
    // Room first: once the bytes have moved, the record cannot fail any more.
    if (auto const needed = recorded_.size() + actions.size(); needed > recorded_.capacity()) {
      auto const doubled = 2 * recorded_.capacity();
      recorded_.reserve(needed > doubled ? needed : doubled);
    }
    auto result = inner_.run(actions);
    if (result) { recorded_.insert(recorded_.end(), actions.begin(), actions.end()); }
    return result;
  }

  /// Everything performed since construction or `clear()`, in order. \invalidates the span: the next `run` or `clear`
  [[nodiscard]] auto recorded() const noexcept -> std::span<action const> { return recorded_; }
  /// Forgets what was recorded.
  void clear() noexcept { recorded_.clear(); }
  /// The executor that does the work.
  [[nodiscard]] auto inner() noexcept -> Inner& { return inner_; }

private:
  [[no_unique_address]] Inner inner_;
  std::vector<action> recorded_ = {};
};

static_assert(executor<recording_executor<>>);

} // namespace quire
