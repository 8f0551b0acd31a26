// SPDX-License-Identifier: Apache-2.0
// Any end of a sequence at any point of any step leaves a cache that audits, and in the end every block comes back:
// exhaustively over how it ends, where the step stands, what kind of step it is, and which groups there are.
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/core/types.hpp>
#include <quire/model/retention.hpp>

#include "isolation/identity_fixtures.hpp"
#include "storage/group_fixture.hpp"
#include "support/catch_compat.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::check;
using quire_test::group;
using quire_test::group_of;
using quire_test::groups_of;
using quire_test::head;
using quire_test::joined;
using quire_test::tail;
using quire_test::text;
using quire_test::tokens;
using quire_test::window_of;

struct ticketed : default_policies {
  using fence = ticket_fence<1>;
};

enum class how { release, cancel, time_out, preempt, destroy };
enum class point { before_plan, planned, launched, committed, dropped_plan, dropped_launch };
enum class step_kind { prefill, within_block, opens_block, whole_hit, behind_hit, copies, moves_window };
// Who ends: the one whose step it is, its parent or child, which shares all its blocks, or another one of the same step.
enum class who { itself, relative, neighbour };

struct stack {
  char const* name;
  std::vector<cache_group> groups;
  unsigned block_tokens;
};
auto stacks() -> std::vector<stack> {
  return {
      {"one full group", {group_of({})}, 4},
      {"blocks of one token", {group_of({})}, 1},
      {"full and window of 2 in blocks of 4", {group_of({}), group_of(window_of(2), 40)}, 4},
      {"windows only", {group_of(window_of(6), 40), group_of(window_of(3, 2), 40, 2)}, 4},
      {"two full groups of different blocks", {group_of({}), group_of({}, 80, 2)}, 4},
      {"full groups and chunks", {group_of({}, 80, 2), group_of({}), group_of(quire_test::chunks_of(8), 40)}, 4},
  };
}

auto options_of(stack const& s) -> cache_options {
  auto out = groups_of(160 / s.block_tokens, s.groups, s.block_tokens);
  out.batch_buffers = 16; // no step waits for views
  return out;
}

// One cache, one step, one end.
template <class P>
class story {
  using cache_type = kv_cache<P>;
  using sequence = typename cache_type::sequence;
  using step_item = typename cache_type::step_item;
  using step_plan = typename cache_type::step_plan;
  static constexpr bool fenced = !std::is_same_v<typename P::fence, immediate_fence>;

public:
  explicit story(stack const& s)
      : cache_{options_of(s)},
        scope_{cache_.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("tenant"))} {}

  void run(how end, point where, step_kind kind, who whom, bool commits) {
    prepare(kind);
    auto& dying = whom == who::itself ? self_ : whom == who::relative ? relative_ : neighbour_;
    if (where == point::before_plan) { finish(dying, end); }
    auto items = std::vector<step_item>{};
    if (self_) { items.emplace_back(self_, ids_); }
    if (neighbour_) { items.emplace_back(neighbour_, neighbour_ids_); }
    auto plan = cache_.plan_step(items).value();
    check(cache_);
    REQUIRE(plan.complete());
    if (where == point::planned) { finish(dying, end); }
    if (where == point::dropped_plan) {
      plan = {};
      check(cache_);
      finish(dying, end);
      return over();
    }
    if (where == point::planned && !commits) {
      plan = {};
      return over();
    }
    static_cast<void>(plan.launch());
    check(cache_);
    if (where == point::launched) { finish(dying, end); }
    if (where == point::dropped_launch || !commits) {
      plan = {};
      check(cache_);
      if (where == point::dropped_launch) { finish(dying, end); }
      if (where == point::committed) { finish(dying, end); }
      return over();
    }
    commit(std::move(plan), true);
    if (where == point::committed) { finish(dying, end); }
    over();
  }

private:
  auto admit(text const& prompt) -> sequence {
    auto wanted = admit_request{};
    wanted.scope = scope_;
    wanted.prompt = prompt;
    wanted.max_output = token_count{8};
    auto out = cache_.admit(wanted);
    check(cache_);
    REQUIRE(out.has_value());
    return std::move(*out);
  }
  void commit(step_plan&& plan, bool may_be_stale = false) {
    if constexpr (fenced) {
      auto const done = cache_.commit(std::move(plan), cache_.fence().issue(timeline_id{0}));
      CHECK((done || may_be_stale));
    } else {
      auto const done = cache_.commit(std::move(plan));
      CHECK((done || may_be_stale));
    }
    check(cache_);
  }
  void complete() {
    if constexpr (fenced) { cache_.fence().complete(timeline_id{0}, cache_.fence().issued(timeline_id{0})); }
    cache_.reclaim();
    check(cache_);
  }
  // Computes the rest of a prompt, two positions beyond each block, so that windows move on.
  auto serve(text const& prompt) -> sequence {
    auto out = admit(prompt);
    while (out.length().value() < prompt.size()) {
      auto const rest = tail(prompt, out.length().value());
      auto const ids = head(rest, std::min<std::size_t>(rest.size(), 6));
      auto plan = cache_.plan_step({step_item{out, ids}}).value();
      REQUIRE(plan.complete());
      static_cast<void>(plan.launch());
      commit(std::move(plan));
    }
    return out;
  }
  void prepare(step_kind kind) {
    auto const prompt = ascending(16);
    neighbour_ = serve(ascending(7, 500));
    neighbour_ids_ = {900};
    switch (kind) {
    case step_kind::prefill:
      self_ = admit(prompt);
      ids_ = head(prompt, 10);
      break;
    case step_kind::within_block:
      self_ = serve(head(prompt, 14));
      ids_ = {700};
      break;
    case step_kind::opens_block:
      self_ = serve(prompt);
      ids_ = {700};
      break;
    case step_kind::whole_hit:
    case step_kind::behind_hit: {
      auto kept = serve(prompt);
      cache_.release(std::move(kept));
      auto const longer = kind == step_kind::whole_hit ? prompt : joined(prompt, ascending(5, 600));
      self_ = admit(longer);
      ids_ = tail(longer, self_.length().value());
      break;
    }
    case step_kind::copies:
      self_ = serve(head(prompt, 14));
      ids_ = {700};
      break;
    case step_kind::moves_window:
      self_ = serve(prompt);
      ids_ = {700, 701, 702, 703, 704};
      break;
    }
    complete();
    if (auto made = cache_.fork(self_, self_.length())) { relative_ = std::move(*made); }
    check(cache_);
    if (kind == step_kind::copies && relative_) { std::swap(self_, relative_); }
  }
  void finish(sequence& s, how end) {
    if (!s) { return; }
    switch (end) {
    case how::release: cache_.release(std::move(s)); break;
    case how::cancel: cache_.cancel(std::move(s)); break;
    case how::time_out: cache_.time_out(std::move(s)); break;
    case how::preempt: static_cast<void>(cache_.preempt(s)); break; // refused where nothing is computed
    case how::destroy: s = {}; break;
    }
    check(cache_);
  }
  // The others go on, all of them end, and nothing is missing.
  void over() {
    for (auto* const s : {&self_, &relative_, &neighbour_}) {
      if (!*s || s->length().value() == 0) { continue; }
      auto const id = text{800};
      auto plan = cache_.plan_step({step_item{*s, id}}).value();
      check(cache_);
      CHECK((plan.complete() || plan.results()[0].status == errc::other_tokens));
      static_cast<void>(plan.launch());
      check(cache_);
      commit(std::move(plan));
    }
    for (auto* const s : {&self_, &relative_, &neighbour_}) {
      *s = {};
      check(cache_);
    }
    complete();
    for (std::uint32_t g = 0; g < cache_.groups(); ++g) {
      auto const f = cache_.figures(group(g));
      CHECK(f.free + f.evictable == f.capacity);
      CHECK(f.available == f.capacity);
      CHECK(f.waiting + f.draining + f.promised + f.reserved + f.lost == block_count{});
    }
  }

  cache_type cache_;
  scope_number scope_;
  text ids_;
  text neighbour_ids_;
  sequence self_;
  sequence relative_;
  sequence neighbour_;
};

template <class P>
void every_end() {
  for (auto const& s : stacks()) {
    for (auto const kind : {step_kind::prefill, step_kind::within_block, step_kind::opens_block, step_kind::whole_hit,
                            step_kind::behind_hit, step_kind::copies, step_kind::moves_window}) {
      for (auto const where : {point::before_plan, point::planned, point::launched, point::committed,
                               point::dropped_plan, point::dropped_launch}) {
        for (auto const end : {how::release, how::cancel, how::time_out, how::preempt, how::destroy}) {
          for (auto const whom : {who::itself, who::relative, who::neighbour}) {
            for (auto const commits : {true, false}) {
              INFO(s.name << ", step " << static_cast<int>(kind) << ", point " << static_cast<int>(where) << ", end "
                          << static_cast<int>(end) << ", who " << static_cast<int>(whom) << ", commits " << commits);
              story<P>{s}.run(end, where, kind, whom, commits);
            }
          }
        }
      }
    }
  }
}
} // namespace

TEST_CASE("S24: any end at any point of any step leaves a cache that audits, and every block comes back") {
  every_end<default_policies>();
}
TEST_CASE(
    "S24: any end at any point of any step behind a fence leaves a cache that audits, and every block comes back") {
  every_end<ticketed>();
}
TEST_CASE("S24: a decode step is launched, its sequence ends, and it is committed with a ticket") { // full and window 2
  auto one = stacks()[2];
  story<ticketed>{one}.run(how::release, point::launched, step_kind::within_block, who::itself, true);
}
