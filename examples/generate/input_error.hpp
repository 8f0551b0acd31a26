// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Input that cannot be used. The program prints what is wrong and ends with exit code 2.

#include <stdexcept>

namespace llama2 {

/// Something about the arguments or a file is wrong; the text says what, and what would be right.
struct input_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace llama2
