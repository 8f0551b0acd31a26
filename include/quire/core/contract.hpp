// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Contract checks. A broken contract is a bug in the caller: it is reported with file, line and the
/// condition, and the program aborts before anything has changed. Ordinary outcomes are never
/// contracts: they are returned (see `errc.hpp`).
///
/// A whole program may set `QUIRE_CONTRACT_INCLUDE` to a header that defines
/// `QUIRE_CONTRACT_FAIL(kind, expr)`; quire's own tests do so to throw. A function that carries a
/// contract is therefore not `noexcept`.

#include <quire/core/config.hpp>

#ifdef QUIRE_CONTRACT_INCLUDE
#include QUIRE_CONTRACT_INCLUDE
#else
#include <cstdio>  // std::fprintf
#include <cstdlib> // std::abort

/// \cond INTERNAL
namespace quire::detail {
[[noreturn]] inline void contract_failed(char const* file, int line, char const* kind, char const* expr) noexcept {
  std::fprintf(stderr, "%s:%d: quire %s violated: %s\n", file, line, kind, expr);
  std::abort();
}
} // namespace quire::detail
#define QUIRE_CONTRACT_FAIL(kind, expr) ::quire::detail::contract_failed(__FILE__, __LINE__, kind, expr)
/// \endcond
#endif

/// \cond INTERNAL
#ifdef QUIRE_UNCHECKED
#define QUIRE_EXPECTS(expr) static_cast<void>(sizeof((expr) ? 1 : 0)) // unevaluated, still type-checked
#else
#define QUIRE_EXPECTS(expr)                                                   \
  do {                                                                        \
    if (!(expr)) [[unlikely]] { QUIRE_CONTRACT_FAIL("precondition", #expr); } \
  } while (false)
#endif
/// \endcond
