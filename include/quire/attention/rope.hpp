// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Everything about rotary positions.

// IWYU pragma: begin_exports
#include <quire/attention/position_shift.hpp>
#include <quire/attention/request_rope.hpp>
#include <quire/attention/resolved_rope.hpp>
#include <quire/attention/rope_config.hpp>
#include <quire/attention/rope_layout.hpp>
#include <quire/attention/rope_scaling.hpp>
// IWYU pragma: end_exports
