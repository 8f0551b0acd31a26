// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// `quire::expected<T>`: a value, or the reason why there is none. Always `tl::expected`, in every
/// language mode, so that C++20 and C++23 users of one program share one type.

#include <quire/core/errc.hpp>

#include <tl/expected.hpp>

namespace quire {

/// A `T`, or the error that prevented it.
template <class T, class E = errc>
using expected = tl::expected<T, E>;

/// Wraps an error for returning it as an `expected`.
[[nodiscard]] inline auto refuse(errc e) -> tl::unexpected<errc> { return tl::unexpected<errc>{e}; }

} // namespace quire
