// SPDX-License-Identifier: Apache-2.0
// One layer group under any operations of several sequences and work on two timelines: every count is right after each of
// them, no block is used again before everybody who left it is done with it, and nothing waits for ever.
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/detail/fence_clock.hpp>
#include <quire/core/types.hpp>
#include <quire/model/retention.hpp>
#include <quire/sequence/prefix_path.hpp>

#include "storage/cache/block_workshop.hpp"
#include "support/rc_prop.hpp"
#include "support/throwing_contract.hpp"
#include "support/toy_kv.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace quire;
using quire_test::toy_check;
using quire_test::toy_dice;
using workshop = quire_test::block_workshop<ticket_fence<2>>;

constexpr std::uint32_t block_tokens = 2;
constexpr std::uint32_t limit = 40;

class group_world {
  using tickets = workshop::tickets;
  using chain = std::vector<std::uint32_t>; // unit numbers from the first one on
  struct sequence : workshop::holder {
    bool live = false;
    chain units;
  };

public:
  group_world(retention const& keeps, std::uint32_t per_unit, std::uint32_t blocks)
      : w_{keeps, {.blocks = blocks, .block_tokens = block_tokens, .per_unit = per_unit, .units = 12}}, uses_(blocks),
        lost_(blocks) {}

  void perform(std::uint64_t seed) {
    auto dice = toy_dice{seed};
    auto& s = all_[dice.below(all_.size())];
    if (!s.live) {
      start(s, dice);
    } else {
      switch (dice.below(8)) {
      case 0:
      case 1:
      case 2: append(s, dice); break;
      case 3: arrive(s, dice); break;
      case 4: fork(s, dice); break;
      case 5: cut(s, dice); break;
      case 6: leaves(s, [&] { w_.group.trim(s.t, s.committed, s.last); }); break;
      default:
        leaves(s, [&] { w_.drop(s); });
        s = {};
        break;
      }
    }
    device(dice);
    compare();
  }
  // All end, all work is over: nothing may wait any more.
  void finish() {
    for (auto& s : all_) {
      if (!s.live) { continue; }
      leaves(s, [&] { w_.drop(s); });
      s = {};
    }
    for (std::uint32_t t = 0; t < 2; ++t) { tell(t, w_.clock.issued(timeline_id{t}).value()); }
    w_.group.reclaim();
    compare();
    auto const& group = w_.group;
    toy_check(group.waiting() == 0, "a block waits although all work is over");
    auto const kept = group.by_path() ? group.published() : group.idle();
    toy_check(group.free() + kept + group.lost() == group.capacity(), "a block is gone");
  }

private:
  void start(sequence& s, toy_dice& dice) {
    s.live = true;
    if (chains_.empty() || dice.one_in(3)) { return w_.begin(s, limit, 6); }
    auto units = chains_[dice.below(chains_.size())];
    auto const most = static_cast<std::uint32_t>(units.size()) * w_.unit.block_tokens();
    auto const prompt = most + dice.below(2);
    auto ids = quire_test::units_of(units);
    auto hit = w_.group.longest_hit(ids, prompt, most);
    while (hit % w_.unit.block_tokens() != 0) {
      hit = w_.group.longest_hit(ids, prompt, hit - hit % w_.unit.block_tokens());
    }
    if (hit == 0) { return w_.begin(s, limit, 6); }
    units.resize(hit / w_.unit.block_tokens());
    w_.find(s, units, prompt, hit, limit);
    s.last = w_.clock.latest(); // others may still write it
    s.units = units;
  }
  void append(sequence& s, toy_dice& dice) {
    auto const q = 1 + dice.below(6);
    auto const a = w_.request(s, q);
    auto const wanted = w_.group.needs(s.t, a);
    if (s.committed + q > limit) { return; }
    if (wanted > w_.group.free()) { w_.group.evict(wanted - w_.group.free()); }
    if (wanted > w_.group.free()) { return; }
    auto const before = s.t.blocks;
    auto const free = w_.group.free();
    toy_check(w_.take(s, q) == wanted && w_.group.free() == free - wanted, "another number of blocks was taken");
    for (std::uint32_t j = 0; j < s.t.size(); ++j) {
      auto const block = s.t.blocks[j];
      if (j < before.size() && before[j] == block) { continue; }
      toy_check(!lost_[block.value()], "a block that a lost device may write is used again", block.value());
      for (std::uint32_t t = 0; t < 2; ++t) {
        toy_check(reached(t, uses_[block.value()][t]), "a block is used again before its ticket", block.value());
      }
      uses_[block.value()] = {};
    }
    auto const sources = s.sources;
    auto const t = dice.below(2);
    auto const timeline = timeline_id{t};
    if (dice.one_in(4)) { // launched and dropped
      s.last[t] = std::max(s.last[t], w_.clock.issue(timeline));
      w_.clock.note(t, s.last[t]);
      for (auto j = before.size(); j < s.t.size(); ++j) { note(s.t.blocks[j], s.last); }
      w_.group.give_back(s.t, static_cast<std::uint32_t>(before.size()), s.last);
      for (std::size_t i = sources.size(); i-- > 0;) {
        auto const j = static_cast<std::uint32_t>(std::find(before.begin(), before.end(), sources[i]) - before.begin());
        note(s.t.blocks[j], s.last);
        w_.group.undo_copy(s.t, j, sources[i], s.last);
      }
      s.sources.clear();
      return;
    }
    auto const until = dice.one_in(2) ? w_.clock.issue(timeline) : w_.clock.issued(timeline);
    w_.clock.note(t, until);
    w_.commit(s, a, t, until);
    for (auto const source : sources) { note(source, s.last); }
    s.units.resize(std::min<std::size_t>(s.units.size(), s.pinned));
  }
  // The next full unit lies in the index, under a number of its own or as the twin of another.
  void arrive(sequence& s, toy_dice& dice) {
    auto const u = static_cast<std::uint32_t>(s.units.size());
    if ((u + 1) * w_.unit.block_tokens() > s.committed || u < s.pinned) { return; }
    auto as = no_unit;
    auto origin = unit_origin::published;
    for (auto const& c : chains_) {
      if (c.size() <= u || !std::equal(s.units.begin(), s.units.end(), c.begin())) { continue; }
      as = c[u];
      origin = in_use(as) || !over() ? unit_origin::busy_twin : unit_origin::idle_twin;
      break;
    }
    if (as == no_unit || (dice.one_in(2) && w_.group.by_path() == false)) {
      auto const free = std::find(w_.in_index.begin(), w_.in_index.end(), 0);
      if (free == w_.in_index.end()) { return; }
      as = static_cast<std::uint32_t>(free - w_.in_index.begin());
      origin = unit_origin::published;
    }
    auto const mine = s.t.blocks;
    if (origin != unit_origin::published) { quire::detail::join(s.last, w_.clock.latest()); }
    leaves(s, [&] { w_.arrive(s, u, as, origin); });
    s.units.push_back(as);
    auto c = s.units;
    if (std::find(chains_.begin(), chains_.end(), c) == chains_.end()) { chains_.push_back(c); }
    if (!w_.group.by_path() || origin != unit_origin::published) { return; }
    for (auto& other : all_) { // who holds the same blocks holds the unit now
      if (&other == &s || !other.live || other.units.size() != u || other.t.size() <= u * w_.group.per_unit()) {
        continue;
      }
      if (other.t.blocks[u * w_.group.per_unit()] != mine[u * w_.group.per_unit()]) { continue; }
      w_.arrive(other, u, as, unit_origin::adopted);
      other.units.push_back(as);
    }
  }
  void fork(sequence& s, toy_dice& dice) {
    auto& child = all_[dice.below(all_.size())];
    auto const length = dice.below(s.committed + 1);
    if (child.live || !w_.group.can_resume_at(s.t, length, s.committed)) { return; }
    w_.fork(s, child, length);
    child.live = true;
    child.units = s.units;
    child.units.resize(std::min<std::size_t>(child.units.size(), w_.unit.blocks(length)));
    child.pinned = std::min(child.pinned, static_cast<std::uint32_t>(child.units.size()));
  }
  void cut(sequence& s, toy_dice& dice) {
    auto const length = dice.below(s.committed + 1);
    if (!w_.group.can_resume_at(s.t, length, s.committed)) { return; }
    auto const told = w_.group.would_free(s.t, length, s.pinned);
    auto const before = w_.group.free() + w_.group.idle() + w_.group.waiting() + w_.group.lost();
    leaves(s, [&] { w_.truncate(s, length); });
    toy_check(w_.group.free() + w_.group.idle() + w_.group.waiting() + w_.group.lost() == before + told,
              "a cut frees another number of blocks than foretold");
    s.units.resize(std::min<std::size_t>(s.units.size(), s.pinned));
    if (w_.group.by_path()) { s.owns_tail = s.pinned * w_.group.per_unit() >= s.t.size() || sole(s); }
  }
  // Nobody shares the unit that a sequence ends in.
  [[nodiscard]] auto sole(sequence const& s) const -> bool {
    auto const first = w_.unit.index(s.committed - 1) * w_.group.per_unit();
    return w_.group.pool().holders(s.t.blocks[first]) == 1;
  }
  // Reports come late, twice and out of order; units leave; rarely a device is lost.
  void device(toy_dice& dice) {
    auto const t = dice.below(2);
    if (dice.one_in(2)) { tell(t, dice.below(w_.clock.issued(timeline_id{t}).value() + 1)); }
    if (dice.one_in(2)) { w_.group.reclaim(); }
    if (dice.one_in(6)) { w_.group.evict(dice.below(3)); }
    if (dice.one_in(6)) { depart(dice.below(w_.in_index.size())); }
    if (dice.one_in(40) && !w_.group.by_path()) {
      w_.group.doom(t);
      for (std::uint32_t b = 0; b < lost_.size(); ++b) { lost_[b] = lost_[b] || w_.group.doomed(block_id{b}); }
      given_up_[t] = w_.clock.issued(timeline_id{t}).value();
      w_.clock.abandon(t, w_.clock.issued(timeline_id{t}));
    }
  }
  void depart(std::uint32_t unit) {
    if (w_.in_index[unit] == 0 || in_use(unit)) { return; }
    if (!over()) { return; }
    w_.depart(unit);
    std::erase_if(chains_, [&](chain const& c) { return std::find(c.begin(), c.end(), unit) != c.end(); });
  }
  // A pin that nobody needs waits for its work; here all tickets stand for it.
  [[nodiscard]] auto over() const -> bool { return !w_.group.by_path() || w_.clock.reached(w_.clock.latest()); }
  [[nodiscard]] auto in_use(std::uint32_t unit) const -> bool {
    return std::any_of(all_.begin(), all_.end(), [&](sequence const& s) {
      return std::find(s.units.begin(), s.units.end(), unit) != s.units.end();
    });
  }
  void tell(std::uint32_t t, std::uint64_t until) {
    w_.clock.fence().complete(timeline_id{t}, ticket{until});
    told_[t] = std::max(told_[t], until);
  }
  [[nodiscard]] auto reached(std::uint32_t t, ticket until) const -> bool {
    return until.value() <= told_[t] || until.value() <= given_up_[t];
  }
  void note(block_id block, tickets const& last) { quire::detail::join(uses_[block.value()], last); }
  // Performs \p act, and notes the uses of blocks that \p s had before it and has no more.
  template <class Act>
  void leaves(sequence& s, Act act) {
    auto const before = s.t.blocks;
    auto const last = s.last;
    act();
    for (auto const block : before) {
      if (block && std::find(s.t.blocks.begin(), s.t.blocks.end(), block) == s.t.blocks.end()) { note(block, last); }
    }
  }
  void compare() {
    auto live = std::vector<workshop::holder const*>{};
    for (auto const& s : all_) {
      if (s.live) { live.push_back(&s); }
    }
    auto const text = w_.broken(live);
    toy_check(text.empty(), text.c_str());
  }

  static constexpr std::uint32_t no_unit = 0xffff'ffffU;
  workshop w_;
  std::array<sequence, 4> all_{};
  std::vector<chain> chains_;
  std::vector<tickets> uses_; // by block: of those who left it since it was taken
  std::vector<bool> lost_;
  std::array<std::uint64_t, 2> told_{};
  std::array<std::uint64_t, 2> given_up_{};
};

} // namespace

TEST_CASE("block_group: nothing is used again before its tickets", "[block][fence]") {
  auto const kinds = std::array{retention::full(), retention::sliding_window(token_count{5}),
                                retention::sink_window({.sinks = token_count{3}, .window = token_count{4}}),
                                retention::chunked(token_count{6})};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    for (auto const per_unit : {1U, 2U}) {
      quire_test::prop("kind " + std::to_string(kind) + ", " + std::to_string(per_unit) + " blocks a unit", [&] {
        auto const blocks = *rc::gen::resize(100, rc::gen::inRange<std::uint32_t>(8, 40));
        auto const steps =
            *rc::gen::scale(3.0, rc::gen::container<std::vector<std::uint64_t>>(rc::gen::arbitrary<std::uint64_t>()));
        auto world = group_world{kinds[kind], per_unit, blocks};
        for (auto const step : steps) { world.perform(step); }
        world.finish();
      });
    }
  }
}
