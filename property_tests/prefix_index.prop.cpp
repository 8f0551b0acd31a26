// SPDX-License-Identifier: Apache-2.0
// Both prefix indexes against a naive map, victim by victim, while pins come and go and claims are made and undone. Runs and
// digests are not part of the model: whatever a run tree does with them must not show.
#include <quire/identity/constant_digest.hpp>
#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/lfu_eviction.hpp>
#include <quire/prefix/lru_eviction.hpp>
#include <quire/prefix/run_tree.hpp>

#include "support/model_prefix_world.hpp"
#include "support/rc_prop.hpp"
#include "support/throwing_contract.hpp"

#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using quire_test::index_command;
using quire_test::index_size;
using quire_test::index_verb;
using quire_test::model_order;
using quire_test::model_prefix_world;
using quire_test::toy_dice;

using coverage_type = std::map<std::string, std::uint64_t>;

struct tree_lru {
  using index = quire::run_tree<quire::lru_eviction>;
  static constexpr auto order = model_order::lru;
  static constexpr bool runs = true;
};
struct tree_lfu {
  using index = quire::run_tree<quire::lfu_eviction, quire::constant_digest>; // everything has one digest and one place
  static constexpr auto order = model_order::lfu;
  static constexpr bool runs = true;
};
struct tree_fifo {
  using index = quire::run_tree<quire::fifo_eviction>;
  static constexpr auto order = model_order::fifo;
  static constexpr bool runs = true;
};
struct flat_lru {
  using index = quire::flat_index<quire::lru_eviction, quire::constant_digest>;
  static constexpr auto order = model_order::lru;
  static constexpr bool runs = false;
};
struct flat_lfu {
  using index = quire::flat_index<quire::lfu_eviction>;
  static constexpr auto order = model_order::lfu;
  static constexpr bool runs = false;
};
struct flat_fifo {
  using index = quire::flat_index<quire::fifo_eviction>;
  static constexpr auto order = model_order::fifo;
  static constexpr bool runs = false;
};

template <class Case>
void run_world(index_size const& size, std::span<index_command const> commands, coverage_type& coverage) {
  try {
    auto world = model_prefix_world<typename Case::index>{size, Case::order, Case::runs};
    for (auto const& command : commands) { world.perform(command); }
    world.finish();
    for (auto const& [what, times] : world.coverage()) { coverage[what] += times; }
  } catch (quire_test::contract_violation const& broken) {
    throw quire_test::toy_failure{std::string{"contract: "} + broken.expr};
  }
}

constexpr int usual_mix[] = {8, 6, 6, 4, 3, 2, 3, 3, 2, 1, 1};
static_assert(std::size(usual_mix) == static_cast<std::size_t>(index_verb::count_));

auto any_commands() -> rc::Gen<std::vector<index_command>> {
  static auto const verbs = [] {
    auto out = std::vector<index_verb>{};
    for (std::size_t v = 0; v < std::size(usual_mix); ++v) {
      out.insert(out.end(), static_cast<std::size_t>(usual_mix[v]), static_cast<index_verb>(v));
    }
    return out;
  }();
  auto const number = rc::gen::resize(100, rc::gen::inRange<std::uint32_t>(0, 1U << 12U));
  return rc::gen::scale(4.0, rc::gen::container<std::vector<index_command>>(
                                 rc::gen::map(rc::gen::tuple(rc::gen::elementOf(verbs), number, number),
                                              [](std::tuple<index_verb, std::uint32_t, std::uint32_t> const& t) {
                                                return index_command{std::get<0>(t), std::get<1>(t), std::get<2>(t)};
                                              })));
}

// Small alphabets, so that prefixes collide all the time.
auto any_size() -> index_size {
  auto size = index_size{};
  size.block_tokens = *rc::gen::element<std::uint32_t>(1, 2, 3, 5, 16, 17);
  size.blocks = *rc::gen::resize(100, rc::gen::inRange<std::uint32_t>(1, 64));
  size.longest = *rc::gen::resize(100, rc::gen::inRange<std::uint32_t>(1, 20));
  size.usual = size.longest;
  size.symbols = *rc::gen::element<std::uint32_t>(2, 1, 3, 4);
  size.branching = *rc::gen::element<std::uint32_t>(2, 1, 3, 5);
  return size;
}

// A list too long to be shrunk in reasonable time, for what only shows at size.
template <class Case>
void long_run(index_size const& size, std::size_t commands, std::uint64_t seed, coverage_type& coverage) {
  auto dice = toy_dice{seed};
  auto list = std::vector<index_command>{};
  for (std::size_t i = 0; i < commands; ++i) {
    auto const verb = dice.one_in(2)
                          ? index_verb::request
                          : static_cast<index_verb>(dice.below(static_cast<std::uint64_t>(index_verb::count_)));
    list.push_back({verb, dice.below(4096), dice.below(1U << 20U)});
  }
  INFO("seed " << seed);
  run_world<Case>(size, list, coverage);
}

} // namespace

TEMPLATE_TEST_CASE("prefix_index: agrees with a naive map, victim by victim", "[prefix]", tree_lru, tree_lfu, tree_fifo,
                   flat_lru, flat_lfu, flat_fifo) {
  static coverage_type coverage;
  static auto cases = 0;
  coverage.clear();
  cases = 0;
  quire_test::prop("any commands", [] {
    auto const size = any_size();
    auto const commands = *any_commands();
    RC_LOG() << size << '\n';
    run_world<TestType>(size, commands, coverage);
    ++cases;
  });
  if (cases < 40) { return; } // a failure was replayed
  for (auto const* const what :
       {"victims", "restored", "orphans", "duplicates", "replaced", "shared", "removed", "moved"}) {
    INFO(what);
    CHECK(coverage[what] > 0);
  }
}

TEMPLATE_TEST_CASE("prefix_index: runs longer than 512 blocks", "[prefix]", tree_lru, tree_lfu) {
  auto coverage = coverage_type{};
  for (auto const seed : {1U, 2U}) {
    long_run<TestType>(
        {.blocks = 1500, .block_tokens = seed, .longest = 900, .usual = 900, .symbols = 3, .branching = 100}, 40, seed,
        coverage);
  }
  CHECK(coverage["victims"] > 1000);
}

TEMPLATE_TEST_CASE("prefix_index: a fragmented arena of runs", "[prefix]", tree_lru, tree_lfu) {
  auto coverage = coverage_type{};
  for (auto const seed : {1U, 2U}) {
    long_run<TestType>({.blocks = 700, .block_tokens = 1, .longest = 300, .usual = 2, .symbols = 2000, .branching = 1},
                       900, seed, coverage);
  }
  CHECK(coverage["victims"] > 1000);
}
