// SPDX-License-Identifier: Apache-2.0
// The pool against an obvious model: every block has one state and a number of holders, free blocks come in the documented
// order, and illegal calls are refused by contract and change nothing.
#include <quire/block/block_pool.hpp>
#include <quire/block/fifo_allocation.hpp>
#include <quire/block/lifo_allocation.hpp>
#include <quire/block/lowest_allocation.hpp>

#include "support/rc_prop.hpp"
#include "support/throwing_contract.hpp"
#include "support/toy_kv.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <ostream>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

namespace {

using quire::block_event;
using quire::block_id;
using quire::block_state;
using quire_test::toy_check;
using quire_test::toy_dice;

// True if \p act breaks a contract.
template <class Act>
auto refused(Act act) -> bool {
  try {
    act();
  } catch (quire_test::contract_violation const&) { return true; }
  return false;
}

// The free blocks in the order in which they are handed out.
template <class Allocation>
struct model_free {
  std::deque<std::uint32_t> order;
  explicit model_free(std::uint32_t n) {
    for (std::uint32_t b = 0; b < n; ++b) { order.push_back(b); }
  }
  auto take() -> std::uint32_t {
    auto const b = order.front();
    order.pop_front();
    return b;
  }
  void give(std::uint32_t b) {
    if constexpr (std::is_same_v<Allocation, quire::lifo_allocation>) {
      order.push_front(b);
    } else if constexpr (std::is_same_v<Allocation, quire::fifo_allocation>) {
      order.push_back(b);
    } else {
      order.insert(std::lower_bound(order.begin(), order.end(), b), b);
    }
  }
};

struct pool_command {
  std::uint32_t verb = 0;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  friend auto operator<<(std::ostream& out, pool_command const& c) -> std::ostream& {
    return out << c.verb << '(' << c.a << ", " << c.b << ')';
  }
};
constexpr std::uint32_t pool_verbs = 13;

template <class Allocation>
class pool_world {
public:
  explicit pool_world(std::uint32_t n)
      : pool_{quire::block_count{n}}, free_{n}, state_(n, block_state::free), holders_(n, 0) {}

  void perform(pool_command const& c) {
    auto const n = static_cast<std::uint32_t>(state_.size());
    auto const b = c.a % n;
    switch (c.verb) {
    case 0: allocate(1); break;
    case 1: allocate(c.a % (n + 2)); break;
    case 2: call(holders_[b] > 0, [&] { pool_.retain(block_id{b}); }, [&] { ++holders_[b]; }); break;
    case 3: release(b); break;
    case 4: event(b, static_cast<block_event>(c.b % static_cast<std::uint32_t>(block_event::count_))); break;
    case 5:
      call(
          holders_[b] == 0 && state_[b] == block_state::retiring, [&] { pool_.reclaim(block_id{b}); },
          [&] { freed(b); });
      break;
    case 6: retire_last(b); break;
    case 7:
      call(holders_[b] == 0 && retires(b), [&] { pool_.retire_and_reclaim(block_id{b}); }, [&] { freed(b); });
      break;
    case 8:
      call(
          holders_[b] == 0 && state_[b] == block_state::published, [&] { pool_.evict_and_reclaim(block_id{b}); },
          [&] { freed(b); });
      break;
    case 9: release_many(c.b); break;
    case 10: relocate(c.b); break;
    case 11: call(state_[b] == block_state::published, [&] { pool_.hold(block_id{b}); }, [&] { ++holders_[b]; }); break;
    default:
      toy_check(refused([&] { static_cast<void>(pool_.state(block_id{n + c.b})); }), "a foreign block has a state");
      break;
    }
    compare();
  }

private:
  [[nodiscard]] auto retires(std::uint32_t b) const -> bool {
    return quire::standard_block_lifecycle::table.next(state_[b], block_event::retire) == block_state::retiring;
  }
  void freed(std::uint32_t b) {
    state_[b] = block_state::free;
    free_.give(b);
  }
  // Performs \p act, which must be refused unless \p legal.
  template <class Act, class Effect>
  void call(bool legal, Act act, Effect effect) {
    toy_check(refused(act) != legal, "a legal call was refused, or an illegal one was not");
    if (legal) { effect(); }
  }
  void allocate(std::uint32_t n) {
    auto out = std::vector<block_id>(n);
    auto const can = std::min<std::size_t>(n, free_.order.size());
    auto got = std::size_t{0};
    if (n == 1) {
      out[0] = pool_.try_allocate();
      got = out[0] ? 1 : 0;
    } else {
      got = pool_.try_allocate(out).value();
    }
    toy_check(got == can, "another number of blocks");
    for (std::size_t i = 0; i < got; ++i) {
      auto const b = free_.take();
      toy_check(out[i].value() == b, "another block");
      state_[b] = block_state::writing;
      holders_[b] = 1;
    }
  }
  void release(std::uint32_t b) {
    auto last = false;
    call(
        holders_[b] > 0, [&] { last = pool_.release(block_id{b}); },
        [&] { toy_check(last == (--holders_[b] == 0), "the last holder was not told, or another was"); });
  }
  void retire_last(std::uint32_t b) {
    auto last = false;
    call(
        holders_[b] > 0 && (holders_[b] > 1 || retires(b)), [&] { last = pool_.release_and_retire(block_id{b}); },
        [&] {
          toy_check(last == (--holders_[b] == 0), "the last holder was not told, or another was");
          if (last) { state_[b] = block_state::retiring; }
        });
  }
  // Events that move no block in or out of the free ones.
  void event(std::uint32_t b, block_event e) {
    auto const to = quire::standard_block_lifecycle::table.next(state_[b], e);
    if (to && (e == block_event::allocate || e == block_event::reclaim)) { return; }
    call(to.has_value(), [&] { pool_.apply(block_id{b}, e); }, [&] { state_[b] = *to; });
  }
  void release_many(std::uint32_t bits) {
    auto blocks = std::vector<block_id>{};
    for (std::uint32_t b = 0; b < state_.size(); ++b) {
      if (holders_[b] > 0 && (holders_[b] > 1 || retires(b)) && (bits >> (b % 12U) & 1U) != 0) {
        blocks.push_back(block_id{b});
      }
    }
    auto dice = toy_dice{bits};
    for (std::size_t i = blocks.size(); i > 1; --i) { std::swap(blocks[i - 1], blocks[dice.below(i)]); }
    pool_.release_and_reclaim(blocks);
    for (auto const block : blocks) {
      if (--holders_[block.value()] == 0) { freed(block.value()); }
    }
  }
  void relocate(std::uint32_t bits) {
    auto to = std::vector<block_id>(state_.size());
    auto targets = std::vector<std::uint32_t>(free_.order.begin(), free_.order.end());
    for (std::uint32_t b = 0; b < state_.size(); ++b) {
      if (state_[b] == block_state::free || (bits >> (b % 12U) & 1U) == 0 || targets.empty()) { continue; }
      to[b] = block_id{targets.back()};
      targets.pop_back();
    }
    pool_.relocate(to);
    for (std::uint32_t b = 0; b < state_.size(); ++b) {
      if (!to[b]) { continue; }
      std::swap(state_[b], state_[to[b].value()]);
      std::swap(holders_[b], holders_[to[b].value()]);
    }
    free_.order.clear();
    for (auto b = static_cast<std::uint32_t>(state_.size()); b-- > 0;) {
      if (state_[b] == block_state::free) { free_.give(b); }
    }
  }
  void compare() {
    std::size_t free = 0;
    for (std::uint32_t b = 0; b < state_.size(); ++b) {
      toy_check(pool_.state(block_id{b}) == state_[b], "another state", b);
      toy_check(pool_.holders(block_id{b}) == holders_[b], "another number of holders", b);
      free += state_[b] == block_state::free ? 1U : 0U;
    }
    toy_check(free == free_.order.size() && pool_.free_blocks().value() == free, "another number of free blocks");
    toy_check(pool_.capacity().value() == state_.size(), "another capacity");
  }

  quire::block_pool<Allocation> pool_;
  model_free<Allocation> free_;
  std::vector<block_state> state_;
  std::vector<std::uint32_t> holders_;
};

auto any_pool_commands(std::uint32_t verbs) -> rc::Gen<std::vector<pool_command>> {
  auto const number = [](std::uint32_t below) {
    return rc::gen::resize(100, rc::gen::inRange<std::uint32_t>(0, below));
  };
  return rc::gen::scale(4.0, rc::gen::container<std::vector<pool_command>>(
                                 rc::gen::map(rc::gen::tuple(number(verbs), number(1U << 12U), number(1U << 12U)),
                                              [](std::tuple<std::uint32_t, std::uint32_t, std::uint32_t> const& t) {
                                                return pool_command{std::get<0>(t), std::get<1>(t), std::get<2>(t)};
                                              })));
}

} // namespace

TEMPLATE_TEST_CASE("block_pool: agrees with its model", "[block]", quire::lifo_allocation, quire::fifo_allocation,
                   quire::lowest_allocation) {
  quire_test::prop("any calls, legal or not", [] {
    auto const blocks = *rc::gen::resize(100, rc::gen::inRange<std::uint32_t>(1, 80));
    auto const commands = *any_pool_commands(pool_verbs);
    auto world = pool_world<TestType>{blocks};
    for (auto const& command : commands) { world.perform(command); }
  });
}
