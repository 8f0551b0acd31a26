// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Everything about layouts: shapes, planes, sets of planes.

// IWYU pragma: begin_exports
#include <quire/view/element_index.hpp>
#include <quire/view/layout_difference.hpp>
#include <quire/view/layout_place.hpp>
#include <quire/view/layout_role.hpp>
#include <quire/view/layout_shape.hpp>
#include <quire/view/plane_layout.hpp>
#include <quire/view/view_layout.hpp>
// IWYU pragma: end_exports
