// SPDX-License-Identifier: Apache-2.0
// A plan that is dropped before its launch has never been: wherever one is put into a run, every later decision, down to the
// numbers of the blocks and the order of eviction, stays what it was.
#include <quire/cache/kv_cache.hpp>

#include "support/rc_prop.hpp"
#include "support/toy_generators.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace {

using quire_test::toy_command;
using quire_test::toy_verb;
using world = quire_test::toy_world<quire::default_policies>;

auto is_whole(toy_command const& c) -> bool { // leaves no plan behind
  return c.verb != toy_verb::plan && c.verb != toy_verb::launch && c.verb != toy_verb::commit &&
         c.verb != toy_verb::drop;
}

void compare_with_drop_at(quire_test::toy_size const& size, std::span<toy_command const> commands,
                          std::vector<quire_test::toy_snapshot> const& undisturbed, std::size_t at) {
  auto twin = world{size};
  for (std::size_t i = 0; i < commands.size(); ++i) {
    if (i == at) { twin.perform({toy_verb::plan_and_drop, 3, commands[i].b, 5}); }
    twin.perform(commands[i]);
    quire_test::toy_check(twin.snapshot() == undisturbed[i], "a dropped plan changed what came after it, at command",
                          i);
  }
}

} // namespace

TEST_CASE("kv_cache: a plan dropped before launch changes no later decision", "[cache]") {
  quire_test::prop("a drop at any point", [] {
    auto const size = quire_test::any_toy_size();
    auto const commands = *rc::gen::scale(
        5.0, rc::gen::container<std::vector<toy_command>>(rc::gen::suchThat(quire_test::any_toy_command(), is_whole)));
    RC_LOG() << size << '\n';
    auto undisturbed = std::vector<quire_test::toy_snapshot>{};
    {
      auto alone = world{size};
      for (auto const& command : commands) {
        alone.perform(command);
        undisturbed.push_back(alone.snapshot());
      }
    }
    auto const stride = 1 + commands.size() / 8;
    for (std::size_t at = commands.size() % stride; at < commands.size(); at += stride) {
      compare_with_drop_at(size, commands, undisturbed, at);
    }
  });
}
