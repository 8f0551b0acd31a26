// SPDX-License-Identifier: Apache-2.0
// A published unit is immutable: who looks at an index cannot write tokens.
// expect: read-only|not assignable|cannot assign
#include <quire/prefix/run_tree.hpp>

auto first_token(quire::run_tree<> const& index) -> quire::token_id {
#ifdef FIXED
  return index.tokens(quire::unit_id{0})[0];
#else
  return index.tokens(quire::unit_id{0})[0] = 7;
#endif
}
