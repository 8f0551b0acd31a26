// SPDX-License-Identifier: Apache-2.0
// The default contract handler names file, line, kind and condition, and aborts.
// aborts: contract_abort.cpp:[0-9]+: quire precondition violated: blocks > 0
#include <quire/core/contract.hpp>

namespace {
auto per_block(int blocks) -> int {
  QUIRE_EXPECTS(blocks > 0);
  return 64 / blocks;
}
} // namespace

auto main(int argc, char**) -> int { return per_block(argc - 1); }
