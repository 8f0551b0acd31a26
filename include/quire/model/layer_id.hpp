// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The name of a layer inside one model description.

#include <quire/core/strong.hpp>

#include <cstdint>

namespace quire {

/// \cond INTERNAL
namespace tag {
struct layer;
} // namespace tag
/// \endcond

/// Names a layer of a model, in [0, layers), in the order in which a forward pass runs them.
using layer_id = strong_id<tag::layer, std::uint32_t>;

} // namespace quire
