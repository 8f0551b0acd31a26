// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The exception for impossible configurations.

#include <stdexcept>

namespace quire {

/// Thrown on cold paths when a configuration cannot exist (a page of 0 tokens, heads that do not
/// divide). The text names what was wrong and what would work.
class config_error : public std::invalid_argument {
public:
  using std::invalid_argument::invalid_argument;
};

} // namespace quire
