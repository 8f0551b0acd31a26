// SPDX-License-Identifier: Apache-2.0
#include <quire/core/contract.hpp>

#include "support/catch_compat.hpp"

#include <string>

namespace {

int evaluations = 0;
auto at_most(int n, int limit) -> bool {
  ++evaluations;
  return n <= limit;
}
void take(int n) { QUIRE_EXPECTS(at_most(n, 3)); }

} // namespace

TEST_CASE("contract: a kept one costs one evaluation and nothing else") {
  evaluations = 0;
  REQUIRE_NOTHROW(take(3));
  REQUIRE(evaluations == 1);
}

TEST_CASE("contract: a broken one throws in tests, with kind and condition") {
  auto seen = std::string{};
  try {
    take(4);
  } catch (quire_test::contract_violation const& broken) { seen = std::string{broken.kind} + ": " + broken.expr; }
  REQUIRE(seen == "precondition: at_most(n, 3)");
  REQUIRE_THROWS_AS(take(4), quire_test::contract_violation);
}

TEST_CASE("contract: is one statement") {
  auto reached = false;
  if (evaluations < 0)
    QUIRE_EXPECTS(false);
  else
    reached = true;
  REQUIRE(reached);
}
