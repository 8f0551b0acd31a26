// SPDX-License-Identifier: Apache-2.0
#include <quire/core/detail/fixed_list.hpp>
#include <quire/core/detail/unfilled_vector.hpp>

#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <stdexcept>
#include <type_traits>
#include <vector>

namespace {
using quire::detail::fixed_list;
using quire::detail::unfilled_vector;

// Says when it goes; cannot move.
struct guest {
  guest(std::vector<int>& log, int number) : log_{&log}, number_{number} {
    if (number < 0) { throw std::runtime_error{"refused"}; }
  }
  guest(guest const&) = delete;
  auto operator=(guest const&) -> guest& = delete;
  ~guest() { log_->push_back(number_); }
  std::vector<int>* log_;
  int number_;
};
} // namespace

TEST_CASE("fixed_list: what cannot move is made in place and goes in reverse order") {
  static_assert(!std::is_copy_constructible_v<fixed_list<guest>>);
  auto gone = std::vector<int>{};
  {
    auto list = fixed_list<guest>{3};
    auto const* const first = &list.emplace_back(gone, 1);
    list.emplace_back(gone, 2);
    CHECK_THROWS_AS(list.emplace_back(gone, -1), std::runtime_error);
    CHECK(list.size() == 2);
    CHECK(&list[0] == first);
    CHECK(list.end() - list.begin() == 2);
    list.emplace_back(gone, 3);
    CHECK_THROWS_AS(list.emplace_back(gone, 4), quire_test::contract_violation);
  }
  CHECK(gone == std::vector<int>{3, 2, 1});
}

TEST_CASE("unfilled_vector: resize keeps what is there, and leaves the rest to the caller") {
  auto values = unfilled_vector<int>{};
  values.assign(3, 7);
  values.resize(1);
  values.resize(3); // these were 7: nothing has written them since
  CHECK(values[0] == 7);
  CHECK(values[2] == 7);
  values.push_back(8);
  CHECK(values.back() == 8);
}
