// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The wait that is always over.

#include <quire/core/types.hpp>
#include <quire/view/concepts.hpp>

namespace quire {

/// Returns at once: right where nothing runs beside the caller. Null model of `ticket_waiter`.
struct no_wait {
  /// Does nothing.
  void operator()(timeline_id /*timeline*/, ticket /*until*/) const noexcept {}
};

static_assert(ticket_waiter<no_wait>);

} // namespace quire
