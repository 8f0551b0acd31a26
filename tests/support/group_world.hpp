// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A cache with several layer groups, the memory of each group, and an engine that knows what every query should read.
///
/// The KV of a position is a hash of its group, its scope and all tokens up to it. A step is a job of a late device: it
/// performs its actions, writes the KV of its new positions and reads, for every query and group, exactly the positions
/// that the group's attention rule lets it see, through the view. Jobs of a timeline run in order, timelines in any order.

#include <quire/cache/group_figures.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/core/types.hpp>
#include <quire/model/retention.hpp>
#include <quire/view/action.hpp>
#include <quire/view/batch_view.hpp>
#include <quire/view/validate.hpp>

#include "isolation/identity_fixtures.hpp"
#include "support/toy_kv.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace quire_test {

/// Groups, sizes and the seed of everything that happens.
struct group_case {
  std::vector<quire::cache_group> groups;
  std::uint32_t block_tokens = 4;
  std::uint32_t blocks = 16;
  std::uint32_t max_append = 0;
  std::uint32_t rebuild = 0;
  std::uint32_t bytes = 0; ///< Of memory that the groups share; 0 = pools of their own.
  bool skip_writes = true;
  bool scrub = false;
  std::uint32_t seed = 1;
  std::uint32_t commands = 120;
  friend auto operator<<(std::ostream& out, group_case const& c) -> std::ostream& {
    out << c.blocks << " blocks of " << c.block_tokens << ", max_append " << c.max_append << ", rebuild " << c.rebuild
        << ", bytes " << c.bytes << (c.skip_writes ? "" : ", no skipped writes") << (c.scrub ? ", scrub" : "")
        << ", seed " << c.seed << ", " << c.commands << " commands;";
    for (auto const& g : c.groups) {
      out << ' ' << quire::name_of(g.keeps.kind) << '(' << g.keeps.extent.value() << ", sinks " << g.keeps.sinks.value()
          << ") " << g.blocks.value() << " x " << g.block_tokens.value();
    }
    return out;
  }
};

/// \tparam Policies of the cache.
template <class Policies>
class group_world {
  using cache_type = quire::kv_cache<Policies>;
  using handle = typename cache_type::sequence;
  using item_type = typename cache_type::step_item;
  static constexpr std::size_t timelines = Policies::fence::timelines;
  static constexpr bool fenced = !std::is_same_v<typename Policies::fence, quire::immediate_fence>;
  static constexpr std::uint32_t rows = 5;

  struct sequence {
    handle hold;
    std::uint32_t scope;
    std::uint32_t limit;
    std::vector<quire::token_id> tokens; // committed and known, then what is left of the prompt
    std::uint32_t prompt;
    std::uint32_t exact = 0;  // windows are being rebuilt before it
    std::uint32_t length = 0; // committed, as far as the engine knows
  };
  struct row {
    std::uint32_t scope;
    std::vector<quire::token_id> tokens; // readable, the new ones included
    std::uint32_t queries;
    std::uint32_t exact;
  };
  struct job {
    std::vector<quire::action> actions;
    std::vector<quire::batch_view> views; // by group; they point into the cache's buffers
    std::vector<std::vector<std::int32_t>> tables;
    std::vector<row> rows;
    std::uint64_t ticket = 0;
    std::vector<std::pair<std::uint32_t, std::size_t>> garbage; // (group, slot): what a dropped plan may have written
  };

public:
  explicit group_world(group_case const& c) : case_{c}, cache_{options(c)}, random_{c.seed} {
    for (std::uint32_t i = 0; i < 2; ++i) {
      scope_[i] = cache_.open_scope(quire::compute_identity{some_fields()}, domain_of(i == 0 ? "a" : "b"));
    }
    for (std::uint32_t g = 0; g < c.groups.size(); ++g) {
      memory_.emplace_back(std::size_t{now(g).capacity.value()} * block_tokens(g), toy_poison);
    }
  }

  /// Runs all commands. \throws what `toy_check` throws at the first thing that is wrong
  void run() {
    for (std::uint32_t i = 0; i < case_.commands; ++i) {
      command();
      audit();
    }
    sequences_.clear();
    audit();
    drain();
    audit();
    for (std::uint32_t g = 0; g < case_.groups.size(); ++g) {
      auto const f = now(g);
      toy_check(case_.bytes > 0 || f.free + f.evictable + f.lost == f.capacity, "blocks leak");
      toy_check(f.promised == quire::block_count{}, "promises leak");
      toy_check(f.reserved == quire::block_count{}, "reserved for nobody");
    }
  }
  /// How often things happened.
  std::map<std::string, std::uint64_t> seen;

private:
  static auto options(group_case const& c) -> quire::cache_options {
    return {.bytes = quire::byte_count{c.bytes},
            .blocks = quire::block_count{c.blocks},
            .block_tokens = quire::token_count{c.block_tokens},
            .max_sequences = quire::sequence_count{6},
            .max_rows = quire::row_count{rows},
            .batch_buffers = 2,
            .skip_writes = c.skip_writes,
            .scrub = c.scrub ? quire::scrub_rule::on_reuse : quire::scrub_rule::never,
            .max_append = quire::token_count{c.max_append},
            .rebuild = quire::token_count{c.rebuild},
            .groups = c.groups};
  }
  /// Figures of group \p g.
  [[nodiscard]] auto now(std::uint32_t g) const -> quire::group_figures { return cache_.figures(quire::group_id{g}); }
  [[nodiscard]] auto block_tokens(std::uint32_t g) const -> std::uint32_t {
    auto const own = case_.groups[g].block_tokens.value();
    return own == 0 ? case_.block_tokens : own;
  }
  auto below(std::uint32_t n) -> std::uint32_t { return n == 0 ? 0 : static_cast<std::uint32_t>(random_() % n); }
  void audit() {
    auto const ok = cache_.audit();
    toy_check(ok.has_value(), ok ? "" : ok.error().c_str());
    for (auto& s : sequences_) { s.length = s.hold.length().value(); }
  }

  void command() {
    switch (below(17)) {
    case 0:
    case 1: admit(); break;
    case 2:
    case 3: end(); break;
    case 4: truncate(); break;
    case 5: plan_and_drop(); break;
    case 6: reclaim(); break;
    case 7: compact(); break;
    case 8: fork(); break;
    case 9: lose(); break;
    default: step(); break;
    }
  }
  auto any() -> sequence* { return sequences_.empty() ? nullptr : &sequences_[below(size_of(sequences_))]; }
  template <class T>
  static auto size_of(T const& v) -> std::uint32_t {
    return static_cast<std::uint32_t>(v.size());
  }

  void admit() {
    std::vector<quire::token_id> prompt;
    if (!pool_of_prompts_.empty() && below(3) != 0) {
      prompt = pool_of_prompts_[below(size_of(pool_of_prompts_))];
      prompt.resize(1 + below(size_of(prompt)));
    }
    for (auto n = below((case_.rebuild > 0 ? 8 : 3) * case_.block_tokens); n > 0 || prompt.empty();
         n -= n > 0 ? 1 : 0) {
      prompt.push_back(static_cast<quire::token_id>(below(3)));
    }
    auto const scope = below(2);
    auto const output = 1 + below(2 * case_.block_tokens);
    auto const draft = below(3) == 0 ? below(4) : 0U;
    auto made =
        cache_.admit({.scope = scope_[scope],
                      .prompt = prompt,
                      .max_output = quire::token_count{output},
                      .draft = quire::token_count{draft},
                      .reuse = below(8) == 0 ? quire::reuse_rule::write_only : quire::reuse_rule::read_and_write});
    if (!made) {
      ++seen["refused"];
      return;
    }
    ++seen["admitted"];
    seen["attached"] += made->cached() > quire::token_count{} ? 1U : 0U;
    seen["full hits"] += prompt.size() > 1 && made->cached().value() + 1 == prompt.size() ? 1U : 0U;
    if (pool_of_prompts_.size() < 12) { pool_of_prompts_.push_back(prompt); }
    auto const rebuilt = made->rebuilt().value();
    auto const exact = rebuilt == 0 ? 0U : made->cached().value() + rebuilt;
    seen["rebuilt"] += rebuilt > 0 ? 1U : 0U;
    seen["stored again"] += rebuilt == 0 && made->found().value() > made->cached().value() + 1 ? 1U : 0U;
    sequences_.push_back({std::move(*made), scope, size_of(prompt) + output + draft, prompt, size_of(prompt), exact});
  }
  void end() {
    if (sequences_.empty()) { return; }
    auto const at = sequences_.begin() + below(size_of(sequences_));
    if (at->hold.length().value() < at->tokens.size()) { ++seen["ended in prefill"]; }
    pool_of_prompts_.resize(std::min<std::size_t>(pool_of_prompts_.size(), 12));
    if (pool_of_prompts_.size() == 12) { pool_of_prompts_[below(12)] = at->tokens; } // follow-up turns
    if (below(2) == 0) { cache_.cancel(std::move(at->hold)); }
    sequences_.erase(at);
  }
  void fork() {
    auto* const parent = any();
    if (parent == nullptr) { return; }
    auto const length = below(parent->hold.length().value() + 1);
    auto child = cache_.fork(parent->hold, quire::token_count{length});
    auto const can = cache_.resumable_length(parent->hold, quire::token_count{length});
    if (!child) {
      seen["fork refused"] += 1;
      toy_check(child.error() != quire::errc::not_resident || !can || can->value() != length,
                "a fork is refused that could go on");
      return;
    }
    toy_check(can && can->value() == length, "a fork goes on where nothing can");
    ++seen["forks"];
    auto tokens = std::vector<quire::token_id>{parent->tokens.begin(), parent->tokens.begin() + length};
    sequences_.push_back(
        {std::move(*child), parent->scope, parent->limit, std::move(tokens), length, length == 0 ? 0 : parent->exact});
  }
  void truncate() {
    auto* const s = any();
    if (s == nullptr) { return; }
    auto const before = s->hold.length().value();
    auto const length = below(3) == 0 ? below(before + 1) : before - below(std::min(before, 4U) + 1);
    auto const can = cache_.resumable_length(s->hold, quire::token_count{length});
    auto const done = cache_.truncate(s->hold, quire::token_count{length});
    if (!done) {
      ++seen["truncation refused"];
      if (done.error() == quire::errc::not_resident) {
        toy_check(length != before && (!can || can->value() > length), "a cut is refused that could go on");
      }
      toy_check(s->hold.length().value() == before, "a refused cut changed the length");
      return;
    }
    ++seen["cuts"];
    s->tokens.resize(length);
    s->prompt = length;
    if (length == 0) { s->exact = 0; }
    if (below(3) == 0) { // and goes on with a text of its own
      for (auto n = below(3 * case_.block_tokens); n > 0 && s->tokens.size() < s->limit; --n) {
        s->tokens.push_back(static_cast<quire::token_id>(below(3)));
      }
    }
  }
  void compact() {
    if constexpr (!fenced) {
      auto const moves = cache_.compact();
      toy_check(moves.has_value(), "nothing is in flight and blocks do not move");
      seen["moves"] += moves->size();
      perform(*moves);
    }
  }
  void reclaim() {
    if constexpr (fenced) {
      run_device(below(4));
      cache_.reclaim();
    }
  }

  /// A device dies, in the middle of what it does; what it has begun may still be written at any time.
  void lose() {
    if constexpr (fenced) {
      if (below(3) != 0) { return zombies(below(20)); }
      auto const idle = std::all_of(queue_.begin(), queue_.end(), [](auto const& jobs) { return jobs.empty(); });
      auto lost = std::array<bool, timelines>{};
      lost[below(timelines)] = true;
      for (auto again = true; std::exchange(again, false);) { // who waits for it is lost as well
        for (std::size_t u = 0; u < timelines; ++u) {
          if (lost[u] || !waits_for(u, lost)) { continue; }
          lost[u] = again = true;
        }
      }
      for (std::uint32_t u = 0; u < timelines; ++u) {
        seen["timelines lost"] += lost[u] && !queue_[u].empty() ? 1U : 0U;
        seen["in flight beside a lost one"] += !lost[u] && !queue_[u].empty() ? 1U : 0U;
        if (!lost[u]) { continue; }
        for (auto const& work : queue_[u]) {
          if (held_back(work)) { break; } // work that waits for others never begins any more
          auto const writes = writes_of(work.actions, work.views);
          zombies_.insert(zombies_.end(), writes.begin(), writes.end());
          zombies_.insert(zombies_.end(), work.garbage.begin(), work.garbage.end());
        }
        queue_[u].clear();
        auto const timeline = quire::timeline_id{u};
        done_[u] = cache_.fence().issued(timeline).value();
        toy_check(cache_.abandon(timeline).has_value(), "a timeline is not given up");
      }
      for (auto& s : sequences_) {
        auto const length = s.hold.length().value();
        toy_check(length <= s.length, "a lost timeline made a sequence longer");
        toy_check(!idle || length == s.length, "nothing was in flight, but a sequence was cut");
        seen["cut to nothing"] += length == 0 && s.length > 0 ? 1U : 0U;
        seen["cut back"] += length > 0 && length < s.length ? 1U : 0U;
        seen["kept"] += !idle && length > 0 && length == s.length ? 1U : 0U;
        if (length == 0) { s.exact = 0; }
        s.length = length;
      }
    }
  }
  /// True if \p work waits for what has not come yet.
  [[nodiscard]] auto held_back(job const& work) const -> bool {
    return std::any_of(work.actions.begin(), work.actions.end(), [&](auto const& a) {
      return a.kind == quire::action_kind::wait && done_[a.timeline.value()] < a.until.value();
    });
  }
  /// True if a job of timeline \p u waits for what a lost one has not finished.
  [[nodiscard]] auto waits_for(std::size_t u, std::array<bool, timelines> const& lost) const -> bool {
    return std::any_of(queue_[u].begin(), queue_[u].end(), [&](auto const& work) {
      return std::any_of(work.actions.begin(), work.actions.end(), [&](auto const& a) {
        auto const t = a.timeline.value();
        return a.kind == quire::action_kind::wait && lost[t] && done_[t] < a.until.value();
      });
    });
  }
  /// (group, slot) that a step writes.
  [[nodiscard]] auto writes_of(std::span<quire::action const> actions, std::span<quire::batch_view const> views) const
      -> std::vector<std::pair<std::uint32_t, std::size_t>> {
    std::vector<std::pair<std::uint32_t, std::size_t>> out;
    for (auto const& a : actions) {
      if (a.kind == quire::action_kind::wait) { continue; }
      auto const unit = block_tokens(a.group.value());
      for (std::uint32_t i = 0; i < unit; ++i) {
        out.emplace_back(a.group.value(), std::size_t{a.target.block.value()} * unit + i);
      }
    }
    for (std::uint32_t g = 0; g < views.size(); ++g) {
      for (auto const slot : views[g].slot) {
        if (slot != -1) { out.emplace_back(g, static_cast<std::size_t>(slot)); }
      }
    }
    return out;
  }
  void zombies(std::uint32_t writes) {
    for (; writes > 0 && !zombies_.empty(); --writes) {
      auto const [g, slot] = zombies_[below(size_of(zombies_))];
      memory_[g][slot] = toy_poison + 1;
    }
  }

  struct chosen {
    std::vector<std::size_t> which;
    std::vector<std::vector<quire::token_id>> ids;
    std::vector<item_type> items;
  };
  auto choose() -> chosen {
    chosen c;
    auto const all = below(3) == 0;
    for (std::size_t i = 0; i < sequences_.size() && c.which.size() < rows; ++i) {
      if (!all && below(3) == 0) { continue; }
      auto& s = sequences_[i];
      auto const length = s.hold.length().value();
      auto const prompt_left = size_of(s.tokens) > length ? size_of(s.tokens) - length : 0U;
      auto const room = s.limit - length;
      if (room == 0) { continue; }
      auto q = prompt_left > 0 ? 1 + below(prompt_left) : 1 + (below(4) == 0 ? below(3) : 0U);
      q = std::min(q, room);
      if (case_.max_append != 0 && below(10) != 0) { q = std::min(q, case_.max_append); }
      std::vector<quire::token_id> ids;
      for (std::uint32_t k = 0; k < q; ++k) {
        ids.push_back(k < prompt_left ? s.tokens[length + k] : static_cast<quire::token_id>(below(3)));
      }
      c.which.push_back(i);
      c.ids.push_back(std::move(ids));
    }
    for (std::size_t k = 0; k < c.which.size(); ++k) { c.items.emplace_back(sequences_[c.which[k]].hold, c.ids[k]); }
    return c;
  }
  void plan_and_drop() {
    auto c = choose();
    if (c.items.empty()) { return; }
    auto const timeline = quire::timeline_id{below(timelines)};
    auto plan = cache_.plan_step(c.items, timeline);
    if (!plan) { return; }
    ++seen["plans dropped"];
    if (below(2) == 0) {
      auto const actions = plan->launch();
      job work;
      for (auto const& a : actions) {
        if (a.kind == quire::action_kind::wait) { work.actions.push_back(a); }
      }
      std::vector<quire::batch_view> views;
      for (std::uint32_t g = 0; g < case_.groups.size(); ++g) { views.push_back(plan->view(quire::group_id{g})); }
      work.garbage = writes_of(actions, views);
      ++seen["launched and dropped"];
      *plan = {};
      if constexpr (fenced) { // the cache has issued a ticket for what was launched
        work.ticket = cache_.fence().issued(timeline).value();
        queue_[timeline.value()].push_back(std::move(work));
      }
    }
    *plan = {};
  }
  void step() {
    auto c = choose();
    if (c.items.empty()) { return; }
    auto const timeline = quire::timeline_id{below(timelines)};
    auto plan = cache_.plan_step(c.items, timeline);
    if (!plan) {
      if constexpr (fenced) { run_device(3); }
      return;
    }
    auto const actions = plan->launch();
    job work;
    work.actions.assign(actions.begin(), actions.end());
    for (std::uint32_t g = 0; g < case_.groups.size(); ++g) {
      auto const& view = plan->view(quire::group_id{g});
      auto const valid = quire::validate(view, {.pool = now(g).capacity, .holes = true});
      toy_check(valid.has_value(),
                valid
                    ? ""
                    : (std::string{"a view is not valid: "} + std::string{quire::message(valid.error().fault)}).c_str(),
                g);
      work.views.push_back(view);
      work.tables.emplace_back(view.block_table.begin(), view.block_table.end());
    }
    for (std::size_t k = 0; k < c.which.size(); ++k) {
      auto const status = plan->results()[k].status;
      seen["items refused"] += status != quire::errc::ok ? 1U : 0U;
      if (status == quire::errc::beyond_append) { ++seen["beyond append"]; }
      auto& s = sequences_[c.which[k]];
      toy_check(fenced || status != quire::errc::no_blocks, "an admitted request finds no block");
      if (status == quire::errc::other_tokens) { ++seen["other tokens"]; }
      if (status != quire::errc::ok) { continue; }
      auto tokens = std::vector<quire::token_id>{s.tokens.begin(), s.tokens.begin() + s.hold.length().value()};
      tokens.insert(tokens.end(), c.ids[k].begin(), c.ids[k].end());
      if (tokens.size() > s.tokens.size()) { s.tokens = tokens; }
      work.rows.push_back({s.scope, std::move(tokens), size_of(c.ids[k]), s.exact});
    }
    if constexpr (fenced) {
      auto const until = cache_.fence().issue(timeline);
      work.ticket = until.value();
      toy_check(cache_.commit(std::move(*plan), until).has_value(), "a commit fails");
      queue_[timeline.value()].push_back(std::move(work));
      run_device(below(3));
    } else {
      execute(work);
      toy_check(cache_.commit(std::move(*plan)).has_value(), "a commit fails");
    }
    ++seen["steps"];
  }

  // --- the device ---------------------------------------------------------------------------------------------------
  void run_device(std::uint32_t jobs) {
    for (; jobs > 0; --jobs) { run_one(below(timelines)); }
  }
  auto run_one(std::size_t t) -> bool {
    if (queue_[t].empty()) { return false; }
    for (auto const& a : queue_[t].front().actions) {
      if (a.kind == quire::action_kind::wait && done_[a.timeline.value()] < a.until.value()) { return false; }
    }
    execute(queue_[t].front());
    done_[t] = queue_[t].front().ticket;
    if constexpr (fenced) {
      cache_.fence().complete(quire::timeline_id{static_cast<std::uint32_t>(t)}, quire::ticket{done_[t]});
    }
    queue_[t].pop_front();
    return true;
  }
  void drain() {
    for (auto again = true; again;) {
      again = false;
      for (std::size_t t = 0; t < timelines; ++t) { again = run_one(t) || again; }
    }
    cache_.reclaim();
  }
  void perform(std::span<quire::action const> actions) {
    for (auto const& a : actions) {
      if (a.kind == quire::action_kind::wait) { continue; }
      auto& memory = memory_[a.group.value()];
      auto const unit = block_tokens(a.group.value());
      auto const at = [&](quire::block_place p) { return memory.begin() + std::ptrdiff_t{p.block.value()} * unit; };
      if (a.kind == quire::action_kind::copy) {
        std::copy_n(at(a.source), a.tokens.value(), at(a.target));
        ++seen["copies"];
      } else if (a.kind == quire::action_kind::move) {
        std::copy_n(at(a.source), unit, at(a.target));
        std::fill_n(at(a.source), unit, toy_poison);
      } else if (a.kind == quire::action_kind::scrub) {
        std::fill_n(at(a.target), unit, toy_poison);
      }
    }
  }
  [[nodiscard]] static auto kv(std::uint32_t g, row const& r) -> std::vector<std::uint64_t> {
    std::vector<std::uint64_t> out;
    toy_extend(out, r.scope * std::uint64_t{16} + g, 1, r.tokens);
    return out;
  }
  /// The first position that a query at \p p may see besides the sinks; by the definition, not by `resident_range`.
  [[nodiscard]] static auto first_seen(quire::retention const& keeps, std::uint32_t p) -> std::uint32_t {
    switch (keeps.kind) {
    case quire::retention_kind::full: return 0;
    case quire::retention_kind::chunked: return p / keeps.extent.value() * keeps.extent.value();
    default: return p + 1 < keeps.extent.value() ? 0 : p + 1 - keeps.extent.value();
    }
  }
  void execute(job const& work) {
    for (auto const& [g, slot] : work.garbage) { memory_[g][slot] = toy_poison + 1; }
    perform(work.actions);
    for (std::uint32_t g = 0; g < work.views.size(); ++g) {
      auto const& view = work.views[g];
      auto& memory = memory_[g];
      auto const unit = block_tokens(g);
      toy_check(
          std::equal(view.block_table.begin(), view.block_table.end(), work.tables[g].begin(), work.tables[g].end()),
          "a view changed while it was in flight");
      for (std::int32_t r = 0; r < view.rows; ++r) {
        auto const i = static_cast<std::size_t>(r);
        auto const values = kv(g, work.rows[i]);
        auto const length = static_cast<std::uint32_t>(view.length[i]);
        toy_check(length == values.size(), "a row has another length");
        auto const start = static_cast<std::size_t>(view.query_start[i]);
        auto const q = work.rows[i].queries;
        for (std::uint32_t k = 0; k < q; ++k) {
          auto const p = static_cast<std::uint32_t>(view.position[start + k]);
          toy_check(p == length - q + k, "a position is wrong");
          if (view.slot[start + k] == -1) {
            ++seen["skipped writes"];
          } else {
            // What rebuilds a window is not exact before the last window's reach.
            auto const reach = case_.groups[g].keeps.keeps_all() ? 0U : case_.groups[g].keeps.extent.value() - 1;
            auto const exact = case_.groups[g].keeps.keeps_all() || p + reach >= work.rows[i].exact;
            toy_check(p >= work.rows[i].exact || !case_.groups[g].keeps.keeps_all(),
                      "a full group is written while windows are rebuilt");
            memory[static_cast<std::size_t>(view.slot[start + k])] = exact ? values[p] : ~values[p];
          }
        }
        for (std::uint32_t p = length - q; p < length; ++p) {
          if (p < work.rows[i].exact && !case_.groups[g].keeps.keeps_all()) { continue; }
          auto const from = first_seen(case_.groups[g].keeps, p);
          for (std::uint32_t t = 0; t <= p; ++t) {
            if (t < from && t >= case_.groups[g].keeps.sinks.value()) { continue; }
            toy_check(t >= static_cast<std::uint32_t>(view.first_position[i]),
                      "a view begins behind what a query sees");
            auto const place = view.locate(r, quire::token_pos{t});
            toy_check(place.block != quire::block_id::none(), "a query sees a position without a block");
            auto const read = memory[std::size_t{place.block.value()} * unit + place.offset.value()];
            toy_check(read == values[t], "a query reads another KV");
          }
        }
      }
    }
  }

  group_case case_;
  cache_type cache_;
  std::mt19937 random_;
  std::array<quire::scope_number, 2> scope_;
  std::vector<std::vector<std::uint64_t>> memory_; // by group
  std::vector<std::vector<quire::token_id>> pool_of_prompts_;
  std::array<std::deque<job>, timelines> queue_;
  std::array<std::uint64_t, timelines> done_{};
  std::vector<std::pair<std::uint32_t, std::size_t>> zombies_; // (group, slot) that lost devices may write
  std::vector<sequence> sequences_;                            // dies first
};

} // namespace quire_test
