// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Contract hook of the test programs (QUIRE_CONTRACT_INCLUDE): a broken contract throws, so that a test can check
/// that it was noticed and that nothing had changed.

namespace quire_test {

/// Thrown when a contract of the library is broken.
struct contract_violation {
  char const* kind; ///< "precondition".
  char const* expr; ///< Text of the condition.
};

/// A function, because a braced list in the macro would break inside the arguments of an assertion macro.
[[noreturn]] inline void contract_broken(char const* kind, char const* expr) { throw contract_violation{kind, expr}; }

} // namespace quire_test

#define QUIRE_CONTRACT_FAIL(kind, expr) ::quire_test::contract_broken(kind, expr)
