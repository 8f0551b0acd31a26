// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A cache, a toy device and an engine that knows what every sequence should read. Commands come in any order; after each
/// of them the cache is audited, compared with what the engine knows, and read back wherever the device is quiet.

#include <quire/cache/group_figures.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/types.hpp>

#include "isolation/identity_fixtures.hpp"
#include "support/throwing_contract.hpp"
#include "support/toy_command.hpp"
#include "support/toy_device.hpp"
#include "support/toy_kv.hpp"
#include "support/toy_paths.hpp"
#include "support/toy_size.hpp"
#include "support/toy_snapshot.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace quire_test {

/// How often things happened that a property is about.
using toy_coverage = std::map<std::string, std::uint64_t>;

/// \tparam Policies of the cache.
template <class Policies>
class toy_world {
public:
  using cache_type = quire::kv_cache<Policies>;
  using handle = typename cache_type::sequence;
  using plan_type = typename cache_type::step_plan;
  using item_type = typename cache_type::step_item;
  static constexpr std::size_t timelines = Policies::fence::timelines;
  static constexpr bool fenced = !std::is_same_v<typename Policies::fence, quire::immediate_fence>;
  static constexpr bool promises = std::is_same_v<typename Policies::admission, quire::reserve_all>;
  static constexpr std::uint32_t scopes = 3;

  explicit toy_world(toy_size const& size)
      : size_{size},
        cache_{quire::cache_options{.blocks = quire::block_count{size.blocks},
                                    .block_tokens = quire::token_count{size.block_tokens},
                                    .max_sequences = quire::sequence_count{size.sequences},
                                    .max_rows = quire::row_count{size.rows},
                                    .batch_buffers = size.buffers,
                                    .skip_writes = size.skip_writes,
                                    .scrub = size.scrub ? quire::scrub_rule::on_reuse : quire::scrub_rule::never}},
        device_{size.blocks, size.block_tokens}, published_{size.block_tokens}, was_free_(size.blocks, 1) {
    for (std::uint32_t i = 0; i < scopes; ++i) { scope_[i] = cache_.open_scope(identity(i), domain(i)); }
    toy_check(cache_.open_scope(identity(1), domain(1)) == scope_[1], "equal arguments gave another scope");
    audit();
  }
  toy_world(toy_world const&) = delete;
  auto operator=(toy_world const&) -> toy_world& = delete;

  /// Performs one command and checks everything.
  void perform(toy_command const& command) {
    dispatch(command);
    audit();
  }
  /// Lets everybody finish (what was promised is kept), ends all and checks that nothing is left over.
  void finish() {
    while (!plans_.empty()) { drop(0); }
    audit();
    drain();
    audit();
    if constexpr (promises) {
      if (now().lost.value() == 0) {
        for (auto const& m : std::vector{live_}) {
          if (m->epoch < restart_below_) { continue; }
          while (m->kv.size() < m->limit) {
            auto const q =
                std::min(1 + dice_.below(size_.block_tokens + 1), static_cast<std::uint32_t>(m->limit - m->kv.size()));
            toy_check(plan_items({wish{m, q, m->known < m->kv.size()}}, 0, dice_.below(1U << 16U)) == quire::errc::ok,
                      "no plan for a promised step");
            toy_check(plans_.back().items.size() == 1, "a promise was not kept");
            launch();
            commit(plans_.size() - 1);
            drain();
            audit();
          }
        }
      }
    }
    while (!live_.empty()) {
      end(live_.front(), 0);
      audit();
    }
    drain();
    audit();
    auto const left = now();
    toy_check(left.promised.value() == 0, "promised to nobody");
    toy_check(left.published == left.evictable, "pinned by nobody");
    toy_check(left.waiting.value() == 0, "blocks wait for a ticket that was reached");
    toy_check(left.draining.value() == 0, "blocks are held by those who ended");
    toy_check(left.free + left.published + left.lost == left.capacity, "blocks are missing after all have gone");
    auto const s = cache_.statistics();
    coverage_["evicted"] += s.evicted_blocks;
    coverage_["copied"] += s.copied_blocks;
    coverage_["duplicates"] += s.duplicate_blocks;
    coverage_["hits"] += s.hit_tokens;
    coverage_["self hits"] += s.self_hit_tokens;
    coverage_["skipped writes"] += device_.skipped_writes();
    coverage_["lost"] += left.lost.value();
  }
  /// What happened how often.
  [[nodiscard]] auto coverage() const -> toy_coverage const& { return coverage_; }
  /// The cache, for looking at.
  [[nodiscard]] auto cache() -> cache_type& { return cache_; }

  /// What a caller can see.
  [[nodiscard]] auto snapshot() -> toy_snapshot {
    auto s = look_at(cache_);
    for (auto const& m : live_) { s.tables.push_back(look_at(m->h)); }
    return s;
  }

private:
  /// What the engine knows of a sequence.
  struct member {
    handle h;
    std::uint32_t scope = 0;
    bool publishes = true;
    std::uint32_t epoch = 0;
    std::uint32_t limit = 0;
    std::uint32_t prompt = 0;
    std::vector<quire::token_id> tokens; // committed
    std::vector<std::uint64_t> kv;       // of them
    std::size_t known = 0;               // told to the cache
    std::vector<quire::token_id> future; // what must come next
    bool planned = false;
    bool ended = false;
  };
  using member_ptr = std::shared_ptr<member>;
  struct wish {
    member_ptr who;
    std::uint32_t q = 0;
    bool unknown = false;
  };
  struct planned_item {
    member_ptr who;
    std::vector<quire::token_id> tokens;
    std::vector<std::uint64_t> kv;
    bool known = true;
    std::uint32_t skipped = 0; // as the plan said
  };
  struct pending {
    plan_type plan;
    std::vector<planned_item> items;
    std::size_t timeline = 0;
    bool launched = false;
  };
  struct preempted {
    std::uint32_t scope = 0;
    std::vector<quire::token_id> tokens;
    std::uint32_t output = 0;
  };
  using path = std::vector<quire::token_id>;

  [[nodiscard]] static auto identity(std::uint32_t i) -> quire::compute_identity {
    auto fields = some_fields();
    if (i == 1) { fields.adapters = quire::adapter_list::of({some_adapter(7, 1.0)}); }
    return quire::compute_identity{fields};
  }
  [[nodiscard]] static auto domain(std::uint32_t i) -> quire::sharing_domain { return domain_of(i == 2 ? "b" : "a"); }
  /// Figures of the only group.
  [[nodiscard]] auto now() const -> quire::group_figures { return cache_.figures(quire::group_id{0}); }
  [[nodiscard]] auto state_of(quire::block_id block) const { return cache_.block_state_of(quire::group_id{0}, block); }
  /// Tokens that collide often: each block's worth of positions is one of two constants, chosen by \p style.
  [[nodiscard]] auto token_at(std::size_t p, std::uint32_t style) const -> quire::token_id {
    return static_cast<quire::token_id>((style >> (p / size_.block_tokens % 16U)) & 1U);
  }
  [[nodiscard]] auto pick(std::uint32_t a) -> member_ptr { return live_.empty() ? nullptr : live_[a % live_.size()]; }
  [[nodiscard]] auto open() -> pending* {
    for (auto& p : plans_) {
      if (!p.launched) { return &p; }
    }
    return nullptr;
  }

  // --- checks -------------------------------------------------------------------------------------------------------
  void audit() {
    if (auto const audited = cache_.audit(); !audited) { throw toy_failure{"audit: " + audited.error()}; }
    auto const s = cache_.statistics();
    toy_check(s.partitioned(), "the statistics do not partition");
    toy_check(cache_.live_sequences().value() >= live_.size(), "a sequence was lost");
    for (std::uint32_t b = 0; b < size_.blocks; ++b) {
      auto const free = state_of(quire::block_id{b}) == quire::block_state::free;
      if (free && was_free_[b] == 0) { device_.poison(quire::block_id{b}); }
      was_free_[b] = free ? 1 : 0;
    }
    auto const f = now();
    toy_check(f.available + f.reserved == f.free + f.evictable, "what is available is miscounted");
    toy_check(f.reserved.value() == 0 || open() != nullptr, "reserved for nobody");
    if (promises && !fenced) {
      toy_check(f.promised <= f.available || open() != nullptr, "more is promised than there is");
    }
    no_twins();
    auto const quiet = device_.idle();
    for (auto const& m : live_) {
      toy_check(m->h.length().value() == m->kv.size(), "a sequence has another length");
      toy_check(m->h.resolved().value() == m->known, "a sequence has another number of known tokens");
      if (!quiet || m->planned) { continue; }
      auto const blocks = m->h.blocks();
      toy_check(blocks.size() * size_.block_tokens >= m->kv.size(), "a table is too short");
      for (std::uint32_t p = 0; p < m->kv.size(); ++p) {
        auto const found = device_.at(blocks[p / size_.block_tokens], p % size_.block_tokens);
        toy_check(found != toy_poison, "poison at committed position", p);
        toy_check(found == m->kv[p], "foreign or stale bytes at committed position", p);
      }
    }
  }
  /// Equal blocks of sequences that publish are one block.
  void no_twins() const {
    auto const publishing = [&](member const& m) { return m.publishes && m.epoch == epoch_; };
    for (std::size_t i = 0; i < live_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        auto const& a = *live_[i];
        auto const& b = *live_[j];
        if (a.scope != b.scope || !publishing(a) || !publishing(b)) { continue; }
        for (std::size_t k = 0; (k + 1) * size_.block_tokens <= std::min(a.known, b.known); ++k) {
          auto const from = static_cast<std::ptrdiff_t>(k * size_.block_tokens);
          auto const to = from + static_cast<std::ptrdiff_t>(size_.block_tokens);
          if (!std::equal(a.tokens.begin() + from, a.tokens.begin() + to, b.tokens.begin() + from)) { break; }
          toy_check(a.h.blocks()[k] == b.h.blocks()[k], "equal blocks are held twice");
        }
      }
    }
  }
  /// Notes what a sequence has published by now.
  void note_published(member& m) {
    if (m.epoch != epoch_) { m.publishes = false; }
    if (m.publishes) { published_.add({m.scope, m.epoch}, m.tokens, m.known); }
  }

  // --- commands -----------------------------------------------------------------------------------------------------
  void dispatch(toy_command const& x) {
    switch (x.verb) {
    case toy_verb::step: step(x); break;
    case toy_verb::admit: admit(x); break;
    case toy_verb::decode: decode(x); break;
    case toy_verb::release:
      if (auto const m = pick(x.a)) { end(m, x.b); }
      break;
    case toy_verb::fork: fork(x); break;
    case toy_verb::truncate: truncate(x); break;
    case toy_verb::resolve: resolve(x); break;
    case toy_verb::plan: static_cast<void>(plan(x)); break;
    case toy_verb::launch:
      if (open() != nullptr) { launch(); }
      break;
    case toy_verb::commit: commit_some(x.a); break;
    case toy_verb::drop:
      if (!plans_.empty()) { drop(x.a % plans_.size()); }
      break;
    case toy_verb::plan_and_drop: plan_and_drop(x); break;
    case toy_verb::preempt: preempt(x); break;
    case toy_verb::resume: resume(x); break;
    case toy_verb::run: run(x); break;
    case toy_verb::complete: complete(x); break;
    case toy_verb::drain: drain(); break;
    case toy_verb::compact: compact(); break;
    case toy_verb::epoch: epoch(x); break;
    case toy_verb::abandon: abandon(x); break;
    case toy_verb::count_: break;
    }
  }

  void admit(toy_command const& x) {
    auto dice = toy_dice{x.c};
    auto prompt = path{};
    auto const p_b = size_.block_tokens;
    auto const room = size_.blocks * p_b;
    if (!bank_.empty() && x.a % 4 != 0) { // a prefix of something that was there before, or all of it
      auto const& old = bank_[x.a % bank_.size()];
      auto const keep = x.b % 3 == 0 ? old.size() : dice.below(old.size() + 1);
      prompt.assign(old.begin(), old.begin() + static_cast<std::ptrdiff_t>(keep));
    }
    auto const tail = prompt.empty() ? 1 + dice.below(3 * p_b) : dice.below(p_b + 2);
    auto const style = dice.below(1U << 16U);
    for (std::uint32_t i = 0; i < tail; ++i) { prompt.push_back(token_at(prompt.size(), style)); }
    if (!dice.one_in(12) && prompt.size() >= room && room > 1) { prompt.resize(room - 1); }
    if (dice.one_in(40)) { prompt.clear(); }
    if (bank_.size() < 12) {
      bank_.push_back(prompt);
    } else {
      bank_[dice.below(bank_.size())] = prompt;
    }
    auto output = dice.one_in(20) ? 0U : 1 + dice.below(dice.one_in(8) ? room : 2 * p_b);
    auto const draft = dice.one_in(4) ? dice.below(p_b + 1) : 0U;
    if (!dice.one_in(10) && prompt.size() + output + draft > room && prompt.size() + draft < room) {
      output = static_cast<std::uint32_t>(room - prompt.size()) - draft;
    }
    auto const reuse = dice.one_in(6) ? (dice.one_in(2) ? quire::reuse_rule::none : quire::reuse_rule::write_only)
                                      : quire::reuse_rule::read_and_write;
    admit_with(x.b % 5 == 4 ? x.b / 5 % scopes : 0, prompt, output, draft, reuse, false);
  }
  void admit_with(std::uint32_t scope, path const& prompt, std::uint32_t output, std::uint32_t draft,
                  quire::reuse_rule reuse, bool resumed) {
    cache_.reclaim();
    audit();
    auto const before = snapshot();
    auto m = std::make_shared<member>();
    auto got = cache_.admit({.scope = scope_[scope],
                             .prompt = prompt,
                             .max_output = quire::token_count{output},
                             .draft = quire::token_count{draft},
                             .reuse = reuse,
                             .resumed = resumed});
    auto const limit = prompt.size() + output + draft;
    if (!got) {
      toy_check(snapshot() == before, "a refused admission changed something");
      auto const code = got.error().code;
      if (prompt.empty()) { return toy_check(code == quire::errc::empty_prompt, "wrong refusal of an empty prompt"); }
      if (output == 0) { return toy_check(code == quire::errc::zero_output, "wrong refusal of no output"); }
      auto const most = (limit + size_.block_tokens - 1) / size_.block_tokens;
      if (most > size_.blocks) {
        return toy_check(code == quire::errc::never_fits, "wrong refusal of what never fits");
      }
      if (code == quire::errc::never_fits) { // only a hit that needs a copy
        return toy_check(!size_.skip_writes && most + 1 > size_.blocks, "refused what fits");
      }
      ++coverage_["refused admissions"];
      if (code == quire::errc::too_many_sequences) { return; }
      toy_check(code == quire::errc::no_blocks, "an admission was refused for a strange reason");
      auto const& f = before.figures.front();
      toy_check(before.live > 0 || f.lost.value() > 0 || f.waiting.value() > 0 || f.available < f.capacity,
                "an empty cache refused what fits");
      return;
    }
    toy_check(!prompt.empty() && output > 0, "admitted an impossible request");
    toy_check((limit + size_.block_tokens - 1) / size_.block_tokens <= size_.blocks, "admitted what never fits");
    m->h = std::move(*got);
    auto const hit = m->h.cached().value();
    toy_check(hit == m->h.length().value(), "attached is not the length");
    toy_check(hit <= prompt.size() - 1, "the hit leaves nothing to compute");
    auto const best = reuse == quire::reuse_rule::read_and_write ? published_.best_hit({scope, epoch_}, prompt) : 0;
    toy_check(hit <= best, "a hit on what was never published");
    toy_check(!exact_ || hit == best, "missed what is there");
    m->scope = scope;
    m->publishes = reuse != quire::reuse_rule::none;
    m->epoch = epoch_;
    m->limit = static_cast<std::uint32_t>(limit);
    m->prompt = static_cast<std::uint32_t>(prompt.size());
    m->tokens.assign(prompt.begin(), prompt.begin() + hit);
    m->future.assign(prompt.begin() + hit, prompt.end());
    toy_extend(m->kv, scope, epoch_, m->tokens);
    m->known = hit;
    if (hit > 0) { ++coverage_["attached"]; }
    live_.push_back(std::move(m));
  }

  /// The next \p q tokens of a sequence.
  [[nodiscard]] auto next_tokens(member const& m, std::uint32_t q, std::uint32_t style) const -> path {
    auto out = path(m.future.begin(),
                    m.future.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(q, m.future.size())));
    while (out.size() < q) { out.push_back(token_at(m.tokens.size() + out.size(), style)); }
    return out;
  }
  [[nodiscard]] auto plan(toy_command const& x) -> quire::errc {
    auto dice = toy_dice{x.b};
    auto wishes = std::vector<wish>{};
    for (std::size_t i = 0; i < live_.size() && wishes.size() < size_.rows; ++i) {
      auto const& m = live_[(i + x.a) % live_.size()];
      if (dice.one_in(3) && live_.size() > 1) { continue; }
      auto const left = m->limit - static_cast<std::uint32_t>(m->kv.size());
      auto q = dice.one_in(2) ? 1U : 1 + dice.below(2 * size_.block_tokens + 2);
      if (!m->future.empty() && dice.one_in(2)) { q = static_cast<std::uint32_t>(m->future.size()); }
      if (q > left && !dice.one_in(8)) { q = left; }
      if (dice.one_in(50)) { q = 0; }
      auto const behind = m->known < m->kv.size();
      wishes.push_back({m, q, behind ? !dice.one_in(10) : dice.one_in(5)});
    }
    if (!wishes.empty() && dice.one_in(30) && wishes.size() < size_.rows) { wishes.push_back(wishes.front()); }
    return plan_items(std::move(wishes), x.c, x.b);
  }
  auto plan_items(std::vector<wish> wishes, std::uint32_t c, std::uint32_t style) -> quire::errc {
    auto const timeline = c % timelines;
    auto dice = toy_dice{style};
    auto tokens = std::vector<path>{};
    auto items = std::vector<item_type>{};
    for (auto const& w : wishes) { tokens.push_back(next_tokens(*w.who, w.q, dice.below(1U << 16U))); }
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      items.push_back(wishes[i].unknown ? item_type{wishes[i].who->h, quire::token_count{wishes[i].q}}
                                        : item_type{wishes[i].who->h, std::span<quire::token_id const>{tokens[i]}});
    }
    auto busy = std::size_t{0};
    for (auto const& p : plans_) { busy += p.launched ? 1U : 0U; }
    std::erase_if(in_flight_, [&](auto const& f) { return reached(f.first, f.second); });
    busy += in_flight_.size();
    auto const was_open = open() != nullptr;
    auto const before = now();
    auto sizes = std::vector<std::size_t>{};
    for (auto const& w : wishes) { sizes.push_back(w.who->h.blocks().size()); }

    auto got = cache_.plan_step(items, quire::timeline_id{static_cast<std::uint32_t>(timeline)});
    if (!got) {
      auto const code = got.error();
      toy_check(was_open ? code == quire::errc::plan_open
                         : code == quire::errc::views_in_flight && busy == size_.buffers,
                "a plan was refused for a strange reason");
      return code;
    }
    toy_check(!was_open && busy < size_.buffers, "a plan without a buffer, or beside another");
    auto const results = got->results();
    toy_check(results.size() == wishes.size(), "not one result per item");
    auto const after = now();
    auto const available_after = after.available.value();
    if (!fenced) { // or tickets may have been reached
      toy_check(after.free == before.free, "a plan took free blocks before its launch");
      toy_check(after.evictable == before.evictable, "a plan took victims before its launch");
      toy_check(after.published == before.published, "a plan hid what it would evict");
      toy_check(after.promised <= before.promised, "a plan was promised more");
    }
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      toy_check(wishes[i].who->h.blocks().size() == sizes[i], "a plan changed a table before its launch");
    }
    auto made = pending{.plan = {}, .items = {}, .timeline = timeline};
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      auto& m = *wishes[i].who;
      auto const status = results[i].status;
      auto const twice =
          std::any_of(made.items.begin(), made.items.end(), [&](auto const& it) { return it.who == wishes[i].who; });
      auto want = quire::errc::ok;
      if (wishes[i].q == 0) {
        want = quire::errc::zero_tokens;
      } else if (twice) {
        want = quire::errc::duplicate_item;
      } else if (m.planned) {
        want = quire::errc::plan_open;
      } else if (m.epoch < restart_below_) {
        want = quire::errc::stale_epoch;
      } else if (m.kv.size() + wishes[i].q > m.limit) {
        want = quire::errc::over_budget;
      } else if (!wishes[i].unknown && m.known != m.kv.size()) {
        want = quire::errc::unresolved;
      }
      if (want == quire::errc::ok && status == quire::errc::no_blocks) {
        auto const covered = (m.kv.size() + wishes[i].q + size_.block_tokens - 1) / size_.block_tokens;
        auto const grows = covered - std::min(covered, m.h.blocks().size());
        toy_check(grows + 1 > available_after, "no blocks, although there are");
        toy_check(!promises || fenced || after.lost.value() > 0, "a promised step got no blocks");
        ++coverage_["no blocks"];
        continue;
      }
      toy_check(status == want, "an item got a strange answer");
      if (status != quire::errc::ok) { continue; }
      toy_check(results[i].row.value() == made.items.size(), "rows do not follow the items");
      made.items.push_back({wishes[i].who, tokens[i], {}, !wishes[i].unknown, results[i].skipped.value()});
    }
    for (auto& item : made.items) { item.who->planned = true; }
    made.plan = std::move(*got);
    plans_.push_back(std::move(made));
    return quire::errc::ok;
  }

  void launch() {
    auto& p = *open();
    auto job = toy_job{};
    auto const before = now();
    auto const actions = p.plan.launch();
    p.launched = true;
    toy_check(now().available >= before.available, "a launch took more than what was reserved");
    if (cache_.statistics().evicted_blocks > 0) { exact_ = false; }
    job.actions.assign(actions.begin(), actions.end());
    job.view = p.plan.view();
    job.table.assign(job.view.block_table.begin(), job.view.block_table.end());
    job.slot.assign(job.view.slot.begin(), job.view.slot.end());
    for (auto& item : p.items) {
      auto& m = *item.who;
      auto const first = static_cast<std::size_t>(job.view.query_start[job.kv.size()]);
      auto kv = m.kv;
      auto const tokens = std::span<quire::token_id const>{item.tokens};
      // What is stored already was computed with the weights of the admission.
      auto const stored = job.slot[first] == -1 ? std::size_t{1} : std::size_t{0};
      toy_check(item.skipped == stored, "a plan tells other skipped writes than its view");
      toy_extend(kv, m.scope, m.epoch, tokens.first(stored));
      toy_extend(kv, m.scope, epoch_, tokens.subspan(stored));
      item.kv.assign(kv.begin() + static_cast<std::ptrdiff_t>(m.kv.size()), kv.end());
      job.kv.push_back(std::move(kv));
      job.queries.push_back(static_cast<std::int32_t>(item.tokens.size()));
    }
    toy_check(static_cast<std::size_t>(job.view.rows) == p.items.size(), "a view has another number of rows");
    std::set<std::uint32_t> fresh;
    for (std::int32_t row = 0; row < job.view.rows; ++row) {
      for (auto const cell : job.view.table_row(row)) {
        if (cell < 0) { continue; }
        auto const block = quire::block_id{static_cast<std::uint32_t>(cell)};
        toy_check(state_of(block) != quire::block_state::free, "a view shows a free block");
        if (state_of(block) == quire::block_state::writing) {
          toy_check(fresh.insert(block.value()).second, "a fresh block was given twice");
          job.fresh.push_back(block);
        }
      }
    }
    if (size_.scrub) {
      auto const scrubs = std::count_if(actions.begin(), actions.end(),
                                        [](auto const& a) { return a.kind == quire::action_kind::scrub; });
      toy_check(static_cast<std::size_t>(scrubs) == fresh.size(), "not every fresh block is scrubbed");
    }
    coverage_["waits"] += static_cast<std::uint64_t>(std::count_if(
        actions.begin(), actions.end(), [](auto const& a) { return a.kind == quire::action_kind::wait; }));
    device_.enqueue(p.timeline, std::move(job));
    if (!fenced) { device_.run_all(); }
  }
  void commit_some(std::uint32_t a) {
    auto launched = std::vector<std::size_t>{};
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (plans_[i].launched) { launched.push_back(i); }
    }
    if (!launched.empty()) { commit(launched[a % launched.size()]); }
  }
  void commit(std::size_t which) {
    auto p = std::move(plans_[which]);
    plans_.erase(plans_.begin() + static_cast<std::ptrdiff_t>(which));
    [[maybe_unused]] auto until = quire::ticket{};
    if constexpr (fenced) {
      until = cache_.fence().issue(quire::timeline_id{static_cast<std::uint32_t>(p.timeline)});
      device_.enqueue(p.timeline, until);
      in_flight_.push_back({p.timeline, until.value()});
    }
    auto const stale = std::any_of(p.items.begin(), p.items.end(), [](auto const& item) { return item.who->ended; });
    auto const done = [&] {
      if constexpr (fenced) {
        return cache_.commit(std::move(p.plan), until);
      } else {
        return cache_.commit(std::move(p.plan));
      }
    }();
    toy_check(done.has_value() != stale, "stale was not told, or told without reason");
    if (stale) {
      toy_check(done.error() == quire::errc::stale, "another error than stale");
      ++coverage_["stale commits"];
    }
    for (auto& item : p.items) {
      auto& m = *item.who;
      m.planned = false;
      if (m.ended) { continue; }
      m.tokens.insert(m.tokens.end(), item.tokens.begin(), item.tokens.end());
      m.kv.insert(m.kv.end(), item.kv.begin(), item.kv.end());
      m.future.erase(m.future.begin(),
                     m.future.begin() + static_cast<std::ptrdiff_t>(std::min(m.future.size(), item.tokens.size())));
      if (item.known) { m.known = m.tokens.size(); }
      note_published(m);
    }
  }
  void drop(std::size_t which) {
    auto p = std::move(plans_[which]);
    plans_.erase(plans_.begin() + static_cast<std::ptrdiff_t>(which));
    auto const launched = p.launched;
    p.plan = plan_type{};
    if constexpr (fenced) {
      if (launched) {
        auto const until = cache_.fence().issued(quire::timeline_id{static_cast<std::uint32_t>(p.timeline)});
        device_.enqueue(p.timeline, until);
        in_flight_.push_back({p.timeline, until.value()});
      }
    }
    for (auto& item : p.items) { item.who->planned = false; }
    ++coverage_[launched ? "dropped after launch" : "dropped before launch"];
  }
  void step(toy_command const& x) {
    if (plan(x) != quire::errc::ok) { return; }
    audit();
    launch();
    audit();
    commit(plans_.size() - 1);
  }
  void decode(toy_command const& x) {
    auto wishes = std::vector<wish>{};
    for (std::size_t i = 0; i < live_.size() && wishes.size() < size_.rows; ++i) {
      auto const& m = live_[(i + x.a) % live_.size()];
      if (m->kv.size() < m->limit) { wishes.push_back({m, 1, m->known < m->kv.size()}); }
    }
    if (plan_items(std::move(wishes), x.c, x.b) != quire::errc::ok) { return; }
    launch();
    audit();
    commit(plans_.size() - 1);
  }
  void plan_and_drop(toy_command const& x) {
    if (open() != nullptr) { return; }
    cache_.reclaim();
    audit();
    auto const before = snapshot();
    if (plan(x) != quire::errc::ok) { return; }
    audit();
    drop(plans_.size() - 1);
    // A reader's hold may have become a pin: the same blocks are pinned, the states agree.
    toy_check(snapshot() == before, "a plan that was dropped left something behind");
  }

  void end(member_ptr m, std::uint32_t how) {
    m->ended = true;
    std::erase(live_, m);
    switch (how % 4) {
    case 0: cache_.release(std::move(m->h)); break;
    case 1: cache_.cancel(std::move(m->h)); break;
    case 2: cache_.time_out(std::move(m->h)); break;
    default: m->h = handle{}; break; // the destructor
    }
    toy_check(!m->h, "an ended handle still refers to something");
    if (m->planned) { ++coverage_["ended with a plan open"]; }
  }
  void preempt(toy_command const& x) {
    auto const m = pick(x.a);
    if (!m) { return; }
    auto const phase = m->h.phase();
    auto const legal = phase == quire::request_state::prefilling || phase == quire::request_state::decoding;
    auto const done = cache_.preempt(m->h);
    toy_check(done.has_value() == legal, "preemption does not follow the life cycle");
    if (!done) { return; }
    toy_check(!m->h, "a preempted handle still refers to something");
    m->ended = true;
    std::erase(live_, m);
    auto tokens = m->tokens;
    tokens.insert(tokens.end(), m->future.begin(), m->future.end());
    if (tokens.size() >= m->limit) { return; }
    preempted_.push_back({m->scope, tokens, m->limit - static_cast<std::uint32_t>(tokens.size())});
  }
  void resume(toy_command const& x) {
    if (preempted_.empty()) { return; }
    auto const at = preempted_.begin() + static_cast<std::ptrdiff_t>(x.a % preempted_.size());
    auto const p = *at;
    auto const before = live_.size();
    admit_with(p.scope, p.tokens, p.output, 0, quire::reuse_rule::read_and_write, true);
    if (live_.size() > before) { preempted_.erase(at); }
  }
  void fork(toy_command const& x) {
    auto const m = pick(x.a);
    if (!m) { return; }
    auto dice = toy_dice{x.c};
    auto const length = x.b % 2 == 0 ? static_cast<std::uint32_t>(m->kv.size()) : dice.below(m->kv.size() + 2);
    cache_.reclaim();
    audit();
    auto const before = snapshot();
    auto got = cache_.fork(m->h, quire::token_count{length});
    auto const want = m->planned              ? quire::errc::plan_open
                      : length > m->kv.size() ? quire::errc::out_of_range
                                              : quire::errc::ok;
    if (!got) {
      toy_check(snapshot() == before, "a refused fork changed something");
      if (want == quire::errc::ok) {
        toy_check(got.error() == quire::errc::no_blocks || got.error() == quire::errc::too_many_sequences,
                  "a fork was refused for a strange reason");
      } else {
        toy_check(got.error() == want, "a fork was refused for a strange reason");
      }
      return;
    }
    toy_check(want == quire::errc::ok, "a fork that must be refused");
    auto child = std::make_shared<member>();
    child->h = std::move(*got);
    child->scope = m->scope;
    child->publishes = m->publishes;
    child->epoch = m->epoch;
    child->limit = m->limit;
    child->prompt = m->prompt;
    child->tokens.assign(m->tokens.begin(), m->tokens.begin() + length);
    child->kv.assign(m->kv.begin(), m->kv.begin() + length);
    child->known = std::min<std::size_t>(m->known, length);
    if (!dice.one_in(4)) { // goes the way of its parent, or its own
      child->future.assign(m->tokens.begin() + length, m->tokens.end());
      child->future.insert(child->future.end(), m->future.begin(), m->future.end());
    }
    ++coverage_["forks"];
    live_.push_back(std::move(child));
  }
  void truncate(toy_command const& x) {
    auto const m = pick(x.a);
    if (!m) { return; }
    auto dice = toy_dice{x.c};
    auto const length = x.b % 8 == 0 ? 0U : dice.below(m->kv.size() + 2);
    cache_.reclaim();
    audit();
    auto const before = snapshot();
    auto const by = static_cast<std::uint32_t>(m->kv.size()) - length;
    auto const done = x.b % 2 == 0 && length <= m->kv.size() ? cache_.drop_last(m->h, quire::token_count{by})
                                                             : cache_.truncate(m->h, quire::token_count{length});
    auto const want = m->planned              ? quire::errc::plan_open
                      : length > m->kv.size() ? quire::errc::out_of_range
                                              : quire::errc::ok;
    if (!done) {
      toy_check(snapshot() == before, "a refused truncation changed something");
      if (want == quire::errc::ok) {
        toy_check(promises && done.error() == quire::errc::no_blocks, "a truncation was refused for a strange reason");
        ++coverage_["refused truncations"];
      } else {
        toy_check(done.error() == want, "a truncation was refused for a strange reason");
      }
      return;
    }
    toy_check(want == quire::errc::ok, "a truncation that must be refused");
    if (length == m->kv.size()) { return; }
    if (dice.one_in(2)) {
      m->future.insert(m->future.begin(), m->tokens.begin() + length, m->tokens.end());
    } else {
      m->future.clear();
    }
    m->tokens.resize(length);
    m->kv.resize(length);
    m->known = std::min<std::size_t>(m->known, length);
    ++coverage_["truncations"];
  }
  void resolve(toy_command const& x) {
    auto const m = pick(x.a);
    if (!m) { return; }
    auto const open = m->tokens.size() - m->known;
    auto const n = x.b % 3 == 0 ? open : toy_dice{x.c}.below(open + 1);
    auto const ids = std::span<quire::token_id const>{m->tokens}.subspan(m->known, n);
    auto const done = cache_.resolve(m->h, ids);
    toy_check(done.has_value() == !m->planned, "resolving does not follow the rules");
    if (!done) { return toy_check(done.error() == quire::errc::plan_open, "resolve gave a strange answer"); }
    auto const one_more = std::vector<quire::token_id>(open - n + 1, 0);
    auto const beyond = cache_.resolve(m->h, one_more);
    toy_check(!beyond && beyond.error() == quire::errc::out_of_range, "resolved what was never committed");
    m->known += n;
    if (n > 0) { ++coverage_["resolved"]; }
    note_published(*m);
  }

  // --- the device and its fence -------------------------------------------------------------------------------------
  [[nodiscard]] auto reached(std::size_t t, std::uint64_t ticket) const -> bool {
    return ticket <= std::max(told_[t], abandoned_[t]);
  }
  void run(toy_command const& x) {
    auto dice = toy_dice{x.c};
    for (auto n = 1 + x.a % 6; n > 0; --n) { static_cast<void>(device_.run_one(dice.below(timelines))); }
    if (dice.one_in(2)) { device_.run_zombie(dice.below(8)); }
  }
  void complete([[maybe_unused]] toy_command const& x) {
    if constexpr (fenced) {
      auto dice = toy_dice{x.c};
      for (auto n = 1 + x.a % 3; n > 0; --n) {
        auto const t = dice.below(timelines);
        auto const k = dice.one_in(3) ? device_.executed(t) : dice.below(device_.executed(t) + 1);
        tell(t, k);
      }
      if (x.b % 2 == 0) { cache_.reclaim(); }
    }
  }
  void tell([[maybe_unused]] std::size_t t, [[maybe_unused]] std::uint64_t k) {
    if constexpr (fenced) {
      cache_.fence().complete(quire::timeline_id{static_cast<std::uint32_t>(t)}, quire::ticket{k});
      told_[t] = std::max(told_[t], k);
    }
  }
  void drain() {
    device_.run_all();
    toy_check(device_.idle(), "the device is stuck");
    for (std::size_t t = 0; t < timelines; ++t) { tell(t, device_.executed(t)); }
    cache_.reclaim();
    toy_check(now().waiting.value() == 0 || !plans_.empty(), "blocks wait although all work is done");
  }
  void compact() {
    cache_.reclaim();
    audit();
    auto const before = snapshot();
    auto const moves = cache_.compact();
    if (!moves) {
      toy_check(snapshot() == before, "a refused compaction changed something");
      toy_check(!plans_.empty() || fenced, "compaction was refused without a reason");
      return;
    }
    toy_check(plans_.empty(), "compacted under a plan");
    device_.perform(*moves);
    coverage_["moves"] += moves->size();
    auto const used = size_.blocks - now().free.value();
    if (now().lost.value() > 0) { return; }
    for (std::uint32_t b = 0; b < size_.blocks; ++b) {
      auto const free = state_of(quire::block_id{b}) == quire::block_state::free;
      toy_check(free == (b >= used), "blocks in use are not together");
    }
  }
  void epoch(toy_command const& x) {
    if (x.a % 3 != 0) { return; } // rarely
    ++epoch_;
    auto const rule = x.b % 4 == 0 ? quire::running_requests::must_restart : quire::running_requests::finish_privately;
    if (rule == quire::running_requests::must_restart) { restart_below_ = epoch_; }
    cache_.advance_epoch(rule);
    ++coverage_["epochs"];
  }
  void abandon([[maybe_unused]] toy_command const& x) {
    if constexpr (fenced) {
      auto const t = x.a % timelines;
      if (!plans_.empty()) {
        auto const refused = cache_.abandon(quire::timeline_id{static_cast<std::uint32_t>(t)});
        toy_check(!refused && refused.error() == quire::errc::plan_open, "gave up a timeline under a plan");
        return;
      }
      auto const in_flight =
          std::any_of(in_flight_.begin(), in_flight_.end(), [&](auto const& f) { return !reached(f.first, f.second); });
      // The others go on as far as they can; whoever waits for the lost one is lost with it.
      auto lost = std::vector<std::size_t>{t};
      for (auto again = true; again;) {
        again = false;
        for (std::size_t u = 0; u < timelines; ++u) {
          while (u != t && device_.run_one(u)) { again = true; }
        }
      }
      for (std::size_t u = 0; u < timelines; ++u) {
        if (u != t && !device_.idle(u)) { lost.push_back(u); }
      }
      for (auto const u : lost) {
        device_.lose(u);
        tell(u, device_.executed(u));
        auto const timeline = quire::timeline_id{static_cast<std::uint32_t>(u)};
        toy_check(cache_.abandon(timeline).has_value(), "abandon refused");
        abandoned_[u] = cache_.fence().issued(timeline).value();
      }
      for (auto const& m : live_) {
        auto const length = m->h.length().value();
        toy_check(length <= m->kv.size(), "a lost timeline made a sequence longer");
        if (!in_flight) { toy_check(length == m->kv.size(), "nothing was in flight, but a sequence was cut"); }
        if (length < m->kv.size()) { ++coverage_["cut by a lost timeline"]; }
        m->future.insert(m->future.begin(), m->tokens.begin() + length, m->tokens.end());
        m->tokens.resize(length);
        m->kv.resize(length);
        m->known = std::min<std::size_t>(m->known, length);
      }
      exact_ = false;
      ++coverage_["abandoned"];
    }
  }

  toy_size size_;
  cache_type cache_;
  toy_device<timelines> device_;
  std::array<quire::scope_number, scopes> scope_{};
  std::vector<member_ptr> live_;
  std::vector<pending> plans_; // at most one of them is not launched
  std::vector<preempted> preempted_;
  std::vector<path> bank_;
  toy_paths published_;
  std::vector<std::uint8_t> was_free_;
  std::vector<std::pair<std::size_t, std::uint64_t>> in_flight_;
  std::array<std::uint64_t, timelines> told_{};
  std::array<std::uint64_t, timelines> abandoned_{};
  std::uint32_t epoch_ = 0;
  std::uint32_t restart_below_ = 0;
  bool exact_ = true; // nothing was evicted so far
  toy_dice dice_{4711};
  toy_coverage coverage_;
};

} // namespace quire_test
