// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Declarations of the view room, with the default template arguments.

#include <quire/view/concepts.hpp>

namespace quire {

struct action;
struct batch_view;
struct block_place;
struct csr_buffers;
struct csr_view;
struct host_group;
struct host_plane;
struct layout_difference;
struct layout_place;
struct layout_shape;
struct no_wait;
struct null_executor;
struct plane_layout;
struct table_delta;
struct token_place;
struct view_error;
struct view_rules;
class view_layout;

template <executor Inner = null_executor>
class recording_executor;
template <ticket_waiter Wait = no_wait>
class host_executor;

} // namespace quire
