// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A bar on a terminal while a replay runs, and nothing in a pipe or a file.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <utility> // std::move

namespace replay {

/// Shows how far one run is. The destructor wipes the line.
class progress_bar {
public:
  /// Shown only if output and messages both go to a terminal.
  progress_bar(std::string label, std::size_t total)
      : label_{std::move(label)}, total_{std::max<std::size_t>(total, 1)},
        shown_{isatty(STDOUT_FILENO) != 0 && isatty(STDERR_FILENO) != 0} {}
  progress_bar(progress_bar const&) = delete;
  auto operator=(progress_bar const&) -> progress_bar& = delete;
  ~progress_bar() {
    if (drawn_) { fmt::print(stderr, "\r\x1b[K"); }
  }

  /// \p done of the total are done. Costs a comparison unless there is something new to show.
  auto update(std::size_t done) -> void {
    if (!shown_ || done < next_) { return; }
    auto const parts = done * width / total_;
    next_ = (parts + 1) * total_ / width;
    fmt::print(stderr, "\r{:<28} [{:<{}}] {:3} %", label_, std::string(parts, '#'), width, done * 100 / total_);
    std::fflush(stderr);
    drawn_ = true;
  }

private:
  static constexpr std::size_t width = 40;
  std::string label_;
  std::size_t total_;
  std::size_t next_ = 0;
  bool shown_;
  bool drawn_ = false;
};

} // namespace replay
