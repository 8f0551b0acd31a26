// SPDX-License-Identifier: Apache-2.0
// expect: constraint.*not satisf|constraints not satisfied
// A failure that is not returned is a failure that nobody sees: `run` has to return expected<void>.
#include <quire/view/recording_executor.hpp>

struct silent_executor {
  void run(std::span<quire::action const>) {}
};

auto main() -> int {
#ifdef FIXED
  auto recorder = quire::recording_executor<quire::null_executor>{};
#else
  auto recorder = quire::recording_executor<silent_executor>{};
#endif
  return static_cast<int>(recorder.recorded().size());
}
