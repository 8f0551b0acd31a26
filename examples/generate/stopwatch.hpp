// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A clock that stands still while the screen is drawn, so that a pretty run is not a slow one.

#include <quire/generate/concepts.hpp>
#include <quire/generate/steady_clock.hpp>
#include <quire/generate/types.hpp>

namespace llama2 {

/// The time of the machine without the time spent between `pause` and `resume`.
class stopwatch {
public:
  /// Now, or when it was paused.
  [[nodiscard]] auto now() const noexcept -> quire::instant {
    auto const at = paused_ ? since_ : quire::steady_clock{}.now();
    return quire::instant{at.value() - lost_.value()};
  }
  /// Stands still.
  auto pause() noexcept -> void {
    since_ = quire::steady_clock{}.now();
    paused_ = true;
  }
  /// Goes on.
  auto resume() noexcept -> void {
    lost_ += quire::steady_clock{}.now() - since_;
    paused_ = false;
  }

private:
  quire::instant since_{};
  quire::nanosecond_count lost_{};
  bool paused_ = false;
};

static_assert(quire::clock<stopwatch>);

} // namespace llama2
