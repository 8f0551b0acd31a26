// SPDX-License-Identifier: Apache-2.0
// With QUIRE_UNCHECKED a contract is type-checked and never evaluated.
// define: QUIRE_UNCHECKED
#include <quire/core/contract.hpp>

namespace {
int evaluations = 0;
auto holds() -> bool {
  ++evaluations;
  return false;
}
void checked_operation() { QUIRE_EXPECTS(holds()); }
} // namespace

auto main() -> int {
  checked_operation();
  if (holds()) { return 2; } // keeps the function used
  return evaluations == 1 ? 0 : 1;
}
