// SPDX-License-Identifier: Apache-2.0
#include <quire/core/detail/bit_tree.hpp>

#include "support/catch_compat.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <set>

namespace {

void check_matches(quire::detail::bit_tree const& tree, std::set<std::size_t> const& model) {
  REQUIRE(tree.empty() == model.empty());
  if (!model.empty()) { REQUIRE(tree.min() == *model.begin()); }
}

} // namespace

TEST_CASE("bit_tree: agrees with an ordered set, around each boundary of a level") {
  for (auto const size : {std::size_t{1}, std::size_t{2}, std::size_t{63}, std::size_t{64}, std::size_t{65},
                          std::size_t{4095}, std::size_t{4096}, std::size_t{4097}, std::size_t{300'000}}) {
    auto tree = quire::detail::bit_tree{size};
    auto model = std::set<std::size_t>{};
    check_matches(tree, model);
    auto random = std::uint64_t{size};
    for (auto step = 0; step < 500; ++step) {
      random = random * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
      auto const i = static_cast<std::size_t>((random >> 33) % size);
      REQUIRE(tree.contains(i) == (model.count(i) == 1));
      if ((random >> 20) % 3 != 0) {
        tree.insert(i);
        model.insert(i);
      } else {
        tree.erase(i);
        model.erase(i);
      }
      check_matches(tree, model);
    }
    while (!model.empty()) {
      tree.erase(*model.begin());
      model.erase(model.begin());
      check_matches(tree, model);
    }
  }
}

TEST_CASE("bit_tree: the first and the last member of the last word") {
  auto tree = quire::detail::bit_tree{130};
  tree.insert(129);
  tree.insert(128);
  REQUIRE(tree.min() == 128);
  tree.erase(128);
  REQUIRE(tree.min() == 129);
  tree.erase(128); // absent: nothing changes
  REQUIRE(tree.min() == 129);
}
