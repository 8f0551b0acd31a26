// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Why a request was not accepted.

#include <quire/core/errc.hpp>

#include <string>

namespace quire {

/// A refused request. Nothing has changed.
struct generation_refusal {
  errc code = errc::ok;  ///< The kind.
  std::string message{}; ///< What was wrong, with figures, and what would work.
};

} // namespace quire
