// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One block group by itself: its units are numbers, its sequences are tables, and its clock is told by hand.

#include <quire/block/block_pool.hpp>
#include <quire/block/immediate_fence.hpp>
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/cache_group.hpp>
#include <quire/cache/detail/block_group.hpp>
#include <quire/cache/detail/fence_clock.hpp>
#include <quire/core/types.hpp>
#include <quire/model/retention.hpp>
#include <quire/prefix/lru_eviction.hpp>
#include <quire/sequence/block_geometry.hpp>
#include <quire/sequence/block_table.hpp>
#include <quire/sequence/prefix_path.hpp>
#include <quire/sequence/standard_retention.hpp>

#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quire_test {

/// Block numbers of a table, −1 where it has none.
inline auto entries(quire::block_table const& t) -> std::vector<int> {
  auto out = std::vector<int>{};
  for (auto const block : t.blocks) { out.push_back(block ? static_cast<int>(block.value()) : -1); }
  return out;
}
/// Unit numbers.
inline auto units_of(std::vector<std::uint32_t> const& numbers) -> std::vector<quire::unit_id> {
  auto out = std::vector<quire::unit_id>{};
  for (auto const n : numbers) { out.emplace_back(n); }
  return out;
}

/// \tparam Fence models `fence_policy`. \tparam Eviction models `eviction_policy`. \tparam Retention models `retention_policy`.
template <class Fence = quire::immediate_fence, class Eviction = quire::lru_eviction,
          class Retention = quire::standard_retention>
class block_workshop {
public:
  using clock_type = quire::detail::fence_clock<Fence>;
  using tickets = typename clock_type::tickets;
  using group_type = quire::detail::block_group<quire::block_pool<>, Eviction, Retention, clock_type>;

  /// A table and what its sequence knows.
  struct holder {
    quire::block_table t;
    std::uint32_t committed = 0;
    std::uint32_t pinned = 0; // [units]
    bool owns_tail = true;
    tickets last{};
    std::vector<quire::block_id> sources; // of copies that are not committed
    std::vector<std::uint32_t> copies;    // the logical blocks that they are
  };
  /// How large it is.
  struct sizes {
    std::uint32_t blocks = 16;
    std::uint32_t block_tokens = 4;
    std::uint32_t per_unit = 1;
    std::uint32_t units = 8;
  };

  clock_type clock;
  quire::block_geometry unit;
  group_type group;
  std::vector<std::uint8_t> in_index; // by unit

  explicit block_workshop(quire::retention const& keeps) : block_workshop{keeps, sizes{}} {}
  block_workshop(quire::retention const& keeps, sizes of)
      : unit{quire::token_count{of.block_tokens * of.per_unit}},
        group{{quire::group_id{0}},
              quire::cache_group{.keeps = keeps,
                                 .blocks = quire::block_count{of.blocks},
                                 .block_tokens = quire::token_count{of.block_tokens},
                                 .block_bytes = {}},
              quire::unit_count{of.units},
              unit,
              quire::block_pool<>{quire::block_count{of.blocks}},
              clock},
        in_index(of.units) {}

  /// What the group is told of the next \p q positions of \p h.
  [[nodiscard]] auto request(holder const& h, std::uint32_t q) const -> quire::detail::append_request {
    auto const skips = h.t.skips(h.committed);
    auto const u = unit.index(h.committed);
    auto const copies = group.by_path() && unit.offset(h.committed) != 0 && skips == 0 &&
                        (u < h.pinned || (!h.owns_tail && holders(h, u) > 1));
    return {.committed = h.committed, .tokens = q, .skips = skips, .owns_tail = h.owns_tail, .copies_unit = copies};
  }
  /// A sequence begins that may reach \p limit, adding up to \p append at once.
  auto begin(holder& h, std::uint32_t limit = 64, std::uint32_t append = 4) -> void {
    h.t.blocks.reserve(group.geometry().blocks(limit) + group.per_unit());
    if (!group.by_path()) { group.set_budget(h.t, group.budget(limit, append, 0)); }
  }
  /// Takes what \p q positions need. \returns [blocks]
  auto take(holder& h, std::uint32_t q) -> std::uint32_t {
    h.copies.clear();
    return group.take(h.t, request(h, q), [&](std::uint32_t j, quire::block_id source, quire::block_id) {
      h.sources.push_back(source);
      h.copies.push_back(j);
    });
  }
  /// The step is over, with work that ends with \p until on \p timeline.
  auto commit(holder& h, quire::detail::append_request const& a, std::uint32_t timeline = 0, quire::ticket until = {})
      -> void {
    h.last[timeline] = std::max(h.last[timeline], until);
    group.commit(h.t, a, timeline, until);
    for (auto const j : std::exchange(h.copies, {})) { group.own(h.t.blocks[j], timeline, until); }
    auto const u = unit.index(a.committed);
    for (auto const source : std::exchange(h.sources, {})) { group.leave_source(h.t, source, u < h.pinned, h.last); }
    if (a.copies_unit) { h.pinned = std::min(h.pinned, u); }
    h.owns_tail = true;
    h.committed += a.tokens;
  }
  /// One step of \p q positions.
  auto append(holder& h, std::uint32_t q, std::uint32_t timeline = 0, quire::ticket until = {}) -> void {
    auto const a = request(h, q);
    take(h, q);
    commit(h, a, timeline, until);
  }
  /// Logical unit \p u of \p h lies in the index as \p as.
  auto arrive(holder& h, std::uint32_t u, std::uint32_t as, quire::unit_origin origin = quire::unit_origin::published)
      -> void {
    in_index[as] = 1;
    group.arrive(h.t, u, quire::unit_id{as}, origin, h.last);
    h.pinned = std::max(h.pinned, u + 1);
  }
  /// Unit \p as leaves the index. \returns [blocks]
  auto depart(std::uint32_t as) -> std::uint32_t {
    in_index[as] = 0;
    return group.depart(quire::unit_id{as}, quire::detail::leave_reason::evicted);
  }
  /// What a prompt of \p prompt positions finds on \p units, and begins with.
  auto find(holder& h, std::vector<std::uint32_t> const& units, std::uint32_t prompt, std::uint32_t hit,
            std::uint32_t limit = 64) -> std::uint32_t {
    h.t.blocks.reserve(group.geometry().blocks(limit) + group.per_unit());
    auto const idle = group.map_hit(h.t, units_of(units), prompt, hit);
    group.attach(h.t);
    if (!group.by_path()) { group.set_budget(h.t, group.budget(limit, 4, 0)); }
    h.committed = std::min(hit, prompt - 1);
    h.pinned = unit.blocks(hit);
    h.owns_tail = false;
    return idle;
  }
  auto fork(holder const& h, holder& child, std::uint32_t length) -> void {
    child.t.blocks.reserve(h.t.blocks.capacity());
    child.pinned = std::min(h.pinned, unit.blocks(length));
    group.fork(h.t, child.t, length, child.pinned);
    if (h.t.budget > 0) { group.set_budget(child.t, h.t.budget); }
    child.committed = length;
    child.owns_tail = false;
    child.last = h.last;
  }
  auto truncate(holder& h, std::uint32_t length) -> void {
    group.truncate(h.t, length, h.pinned, h.last);
    h.pinned = std::min(h.pinned, unit.blocks(length));
    h.committed = length;
    h.owns_tail = !group.shared_end(h.t, length);
  }
  auto drop(holder& h) -> void {
    group.set_budget(h.t, 0);
    group.drop_all(h.t, h.pinned, h.last);
    h = {};
  }

  /// First broken invariant, with everything counted anew from the tables of \p all. \p ended tables use nothing.
  [[nodiscard]] auto broken(std::vector<holder const*> const& all) const -> std::string {
    auto holders = std::vector<std::uint32_t>(group.capacity());
    auto users = holders;
    auto held = std::uint32_t{0};
    for (auto const* h : all) {
      auto mine = std::uint32_t{0};
      auto const count = [&](quire::block_id block) {
        ++mine;
        ++holders[block.value()];
        users[block.value()] += h->t.budget > 0 ? 1U : 0U;
      };
      for (std::uint32_t j = 0; j < h->t.size(); ++j) {
        if (h->t.blocks[j] && !(group.by_path() && j < h->pinned * group.per_unit())) { count(h->t.blocks[j]); }
      }
      for (auto const source : h->sources) { count(source); }
      if (mine != h->t.held || h->t.held != h->t.counted) { return "held blocks of a table are miscounted"; }
      held += mine;
    }
    if (held != group.ledger().held()) { return "held blocks are miscounted"; }
    return group.audit(holders, users, in_index, false, false);
  }
  void check(std::vector<holder const*> const& all) const {
    auto const text = broken(all);
    INFO(text);
    REQUIRE(text.empty());
  }

private:
  /// Holders of the last block of logical unit \p u of \p h.
  [[nodiscard]] auto holders(holder const& h, std::uint32_t u) const -> std::uint32_t {
    auto const j = u * group.per_unit();
    return j < h.t.size() && h.t.blocks[j] ? group.pool().holders(h.t.blocks[j]) : 0U;
  }
};

} // namespace quire_test
