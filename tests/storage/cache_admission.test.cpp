// SPDX-License-Identifier: Apache-2.0
// Who is let in, what that promises, and that the promise is kept (S17); eviction never takes from the caller (AC).
#include <quire/cache/kv_cache.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::check;
using quire_test::engine;
using quire_test::figures;
using quire_test::figures_of;
using quire_test::head;
using quire_test::joined;
using quire_test::pool_of;
using quire_test::tail;
using quire_test::text;

template <class Admission>
struct admitting : default_policies {
  using admission = Admission;
};

// A request as the engine of these tests keeps it.
struct job {
  text prompt;
  unsigned outputs;
  unsigned made = 0;
};
} // namespace

TEST_CASE("S17: reserve_all sets the whole budget aside") {
  auto e = engine<>{pool_of(8)};
  auto a = e.serve(ascending(5, 100), 7); // 12 positions = 3 blocks
  CHECK(figures_of(e.cache) == figures{6, 0, 1, 1, 0});
  auto b = e.admit(ascending(4, 200), 8); // 3 more
  CHECK(e.now().promised == block_count{4});
  auto const refused = e.ask(ascending(9, 300), 3); // 3 blocks beside 4 promised of 6
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == errc::no_blocks);
  CHECK(refused.error().needed == block_count{3});
  CHECK(refused.error().promised == block_count{4});
  CHECK(refused.error().available == block_count{6});
  CHECK(refused.error().capacity == block_count{8});
  CHECK_THAT(refused.error().message(),
             quire_test::ContainsSubstring("needs 3 blocks; 6 available, 4 of them promised; the pool has 8"));
  CHECK(e.ask(ascending(5, 300), 3).has_value()); // 2 fit
  CHECK(e.cache.statistics().refusals == 1);
}

TEST_CASE("S17: an idle prefix counts as room, and attaching it takes that room") {
  auto e = engine<>{pool_of(4)};
  e.keep(ascending(9)); // 2 idle blocks
  CHECK(e.now().available == block_count{4});
  auto a = e.admit(joined(ascending(8), {50}), 7); // 16 positions = 4 blocks, 2 of them attached
  CHECK(a.seq.cached() == token_count{8});
  CHECK(e.now().available == block_count{2});
  CHECK(e.now().promised == block_count{2});
  CHECK_FALSE(e.ask(text{1, 2, 3, 4, 60}).has_value()); // even one block more would not fit
}

TEST_CASE("case 101: what can never fit is refused at once, so that it blocks nobody") {
  auto e = engine<>{pool_of(4)};
  auto const r1 = e.ask(ascending(20), 4); // 6 blocks of 4
  REQUIRE_FALSE(r1.has_value());
  CHECK(r1.error().code == errc::never_fits);
  CHECK(r1.error().needed == block_count{6});
  CHECK(e.ask(ascending(3)).has_value());
  CHECK(e.ask(ascending(15)).has_value()); // exactly the pool
  CHECK(e.ask(ascending(16)).error().code == errc::never_fits);
}

TEST_CASE("S39: an empty prompt and an output of nothing are refused") {
  auto e = engine<>{pool_of(4)};
  CHECK(e.ask(text{}).error().code == errc::empty_prompt);
  CHECK(e.ask(ascending(3), 0).error().code == errc::zero_output);
  CHECK(e.cache.live_sequences() == sequence_count{0});
}

TEST_CASE("S17: under reserve_all every admitted request finishes without preemption") {
  auto random = std::mt19937{20260101};
  for (auto const unit : {1U, 2U, 3U, 5U, 16U}) {
    for (auto const blocks : {1U, 2U, 5U, 17U}) {
      auto e = engine<>{pool_of(blocks, unit)};
      auto waiting = std::vector<job>{};
      for (auto i = 0; i < 25; ++i) {
        waiting.push_back({ascending(1 + random() % (2 * unit), static_cast<token_id>(random() % 3 * 50)),
                           1 + static_cast<unsigned>(random() % 5)});
      }
      auto running = std::vector<std::unique_ptr<std::pair<engine<>::request, job>>>{};
      auto done = 0U;
      auto never = 0U;
      for (auto turns = 0; turns < 2000 && done + never < 25; ++turns) {
        while (!waiting.empty() && running.size() < 8) {
          auto& next = waiting.back();
          auto got = e.ask(next.prompt, next.outputs);
          if (!got) {
            if (got.error().code != errc::never_fits) { break; }
            ++never;
          } else {
            auto const hit = got->cached().value();
            running.push_back(std::make_unique<std::pair<engine<>::request, job>>(
                engine<>::request{std::move(*got), head(next.prompt, hit)}, next));
          }
          waiting.pop_back();
        }
        for (auto& one : running) { // a refused step would fail inside plan()
          auto& [r, what] = *one;
          auto const length = r.seq.length().value();
          if (length < what.prompt.size()) {
            e.prefill(r, what.prompt);
          } else {
            e.step({{&r, {7}}});
          }
          what.made = r.seq.length().value() - static_cast<unsigned>(what.prompt.size());
        }
        for (auto i = running.size(); i-- > 0;) {
          if (running[i]->second.made < running[i]->second.outputs) { continue; }
          e.read(running[i]->first);
          e.release(running[i]->first);
          running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
          ++done;
        }
      }
      CHECK(done + never == 25);
      CHECK(e.now().available == e.now().capacity); // nothing leaked
      CHECK(e.now().promised == block_count{0});
    }
  }
}

TEMPLATE_TEST_CASE("S17: under optimistic and watermark admission the oldest finishes and everybody does in the end",
                   "", optimistic, watermark, admit_all) {
  auto random = std::mt19937{20260102};
  for (auto const blocks : {4U, 6U, 11U}) {
    auto e = engine<admitting<TestType>>{pool_of(blocks)};
    using request = typename engine<admitting<TestType>>::request;
    struct active {
      std::size_t age;
      job what;
      text all; // prompt and what was made so far
      request r;
    };
    auto waiting = std::vector<std::pair<std::size_t, std::pair<job, text>>>{}; // oldest first
    for (std::size_t i = 0; i < 12; ++i) {
      auto const prompt = ascending(1 + random() % 8, static_cast<token_id>(100 * i));
      waiting.push_back({i, {job{prompt, 1 + static_cast<unsigned>(random() % 7)}, prompt}});
    }
    auto running = std::vector<std::unique_ptr<active>>{};
    auto done = std::vector<std::size_t>{};
    auto preempted = 0;
    for (auto turn = 0; turn < 3000 && done.size() < 12; ++turn) {
      while (!waiting.empty()) {
        auto const& [age, rest] = waiting.front();
        auto const& [what, all] = rest;
        auto const left = static_cast<unsigned>(what.prompt.size() + what.outputs - all.size());
        auto wanted = admit_request{};
        wanted.scope = e.scope;
        wanted.prompt = all;
        wanted.max_output = token_count{std::max(1U, left)};
        wanted.resumed = all.size() > what.prompt.size();
        auto got = e.ask(wanted);
        if (!got) { break; }
        auto const hit = got->cached().value();
        running.push_back(std::make_unique<active>(active{age, what, all, request{std::move(*got), head(all, hit)}}));
        waiting.erase(waiting.begin());
      }
      std::sort(running.begin(), running.end(), [](auto const& a, auto const& b) { return a->age < b->age; });
      for (std::size_t i = 0; i < running.size(); ++i) {
        auto& one = *running[i];
        auto const length = one.r.seq.length().value();
        auto const ids = length < one.all.size() ? tail(one.all, length) : text{static_cast<token_id>(900 + length)};
        for (;;) {
          auto const item = typename engine<admitting<TestType>>::step_item{one.r.seq, ids};
          auto status = errc::ok;
          {
            auto const planned = e.cache.plan_step({&item, 1});
            REQUIRE(planned.has_value());
            status = planned->results()[0].status;
          }
          check(e.cache);
          if (status == errc::ok) {
            e.step({{&one.r, ids}});
            if (length == one.all.size()) { one.all = joined(one.all, ids); }
            break;
          }
          REQUIRE(status == errc::no_blocks);
          REQUIRE(running.size() > 1);    // the oldest can always go on when it is alone
          auto& victim = *running.back(); // the youngest, be it this one
          auto const itself = running.size() == i + 1;
          if (e.cache.preempt(victim.r.seq)) {
            ++preempted;
          } else {
            e.release(victim.r);
          } // nothing computed yet
          check(e.cache);
          waiting.insert(waiting.begin(), {victim.age, {victim.what, victim.all}});
          running.pop_back();
          if (itself) { break; }
        }
        if (i == running.size()) { break; }
        if (one.all.size() >= one.what.prompt.size() + one.what.outputs) {
          e.read(one.r);
          done.push_back(one.age);
          e.release(one.r);
          running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
          --i;
        }
      }
      std::sort(waiting.begin(), waiting.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
    }
    CHECK(done.size() == 12);
    CHECK(e.cache.statistics().preemptions == static_cast<std::uint64_t>(preempted));
    CHECK(e.now().available == e.now().capacity);
  }
}

TEST_CASE("S17: the watermark stays free at admission") {
  auto e = engine<admitting<watermark>>{pool_of(10), {}, watermark{200}};
  auto a = e.admit(ascending(20, 100), 20); // 5 of 10 now, 2 stay free
  e.prefill(a, ascending(20, 100));
  CHECK_FALSE(e.ask(ascending(16, 300)).has_value()); // 4 of 5 available would go below 2
  CHECK(e.ask(ascending(12, 300)).has_value());
}

TEST_CASE("S17: a truncation that would promise blocks which others hold is refused and changes nothing") {
  auto e = engine<>{pool_of(4)};
  auto a = e.serve(ascending(8), 4);
  auto b = e.serve(ascending(8), 4); // shares both blocks
  auto const before = figures_of(e.cache);
  auto const refused = e.cache.truncate(a.seq, token_count{4});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == errc::no_blocks);
  check(e.cache);
  CHECK(figures_of(e.cache) == before);
  CHECK(a.seq.length() == token_count{8});
  e.step({{&a, {9, 10, 11, 12}}, {&b, {19, 20, 21, 22}}}); // both finish
  e.read(a);
  e.read(b);
  e.release(b);
  e.truncate(a, 4); // now it is alone
}

TEST_CASE("S17: a step beyond the budget is refused") {
  auto e = engine<>{pool_of(8)};
  auto r = e.serve(ascending(3), 2);
  auto const ids = text{4, 5, 6};
  auto const item = engine<>::step_item{r.seq, ids};
  auto planned = e.cache.plan_step({&item, 1});
  REQUIRE(planned.has_value());
  CHECK(planned->results()[0].status == errc::over_budget);
  CHECK_FALSE(static_cast<bool>(planned->results()[0].row));
  planned->launch();
  CHECK(e.cache.commit(std::move(*planned)).has_value()); // an empty step is a step
  check(e.cache);
  e.step({{&r, {4, 5}}});
}

TEST_CASE("S17: decoding ends with the budget, inside a block too") {
  auto e = engine<>{pool_of(8)};
  auto r = e.serve(ascending(5), 2);
  e.step({{&r, {6}}});
  e.step({{&r, {7}}});
  auto const ids = text{8};
  auto const item = engine<>::step_item{r.seq, ids};
  auto const planned = e.cache.plan_step({&item, 1});
  REQUIRE(planned.has_value());
  CHECK(planned->results()[0].status == errc::over_budget);
}

TEST_CASE("S17: an item that cannot be served is left out and changes nothing, the others go on") {
  auto e = engine<admitting<admit_all>>{pool_of(3)};
  auto a = e.admit(ascending(8, 100), 4);
  auto b = e.admit(ascending(8, 200), 4);
  auto c = e.admit(ascending(4, 300), 4);
  auto const ids = std::vector{ascending(8, 100), ascending(8, 200), ascending(4, 300)};
  auto const items = std::vector<engine<admitting<admit_all>>::step_item>{
      {a.seq, ids[0]}, {b.seq, ids[1]}, {c.seq, ids[2]}, {a.seq, ids[0]}};
  auto planned = e.cache.plan_step(items);
  check(e.cache);
  REQUIRE(planned.has_value());
  CHECK_FALSE(planned->complete());
  CHECK(planned->results()[0].status == errc::ok);
  CHECK(planned->results()[0].row == row_id{0});
  CHECK(planned->results()[1].status == errc::no_blocks);
  CHECK(planned->results()[2].status == errc::ok);
  CHECK(planned->results()[2].row == row_id{1});
  CHECK(planned->results()[3].status == errc::duplicate_item);
  planned->launch();
  CHECK(b.seq.blocks().empty());
  CHECK(planned->view().rows == 2);
  CHECK(e.cache.commit(std::move(*planned)).has_value());
  check(e.cache);
  CHECK(a.seq.length() == token_count{8});
  CHECK(b.seq.length() == token_count{0});
}

TEST_CASE("S18: an answer brings back what its item brought along, and says whose writes are skipped") {
  auto e = engine<>{pool_of(16)};
  e.keep(ascending(8));
  auto hit = e.admit(ascending(8), 4);
  auto fresh = e.admit(ascending(3, 100), 4);
  auto const ids = std::vector{text{8}, ascending(3, 100)};
  auto const items = std::vector<engine<>::step_item>{{hit.seq, ids[0], step_source::compute, 7},
                                                      {fresh.seq, token_count{99}, step_source::compute, 8},
                                                      {fresh.seq, ids[1]}};
  auto const planned = e.cache.plan_step(items);
  REQUIRE(planned.has_value());
  auto const results = planned->results();
  REQUIRE(results.size() == 3);
  CHECK(results[0].user == 7);
  CHECK(results[0].skipped == token_count{1});
  CHECK(results[1].status == errc::over_budget);
  CHECK(results[1].user == 8);
  CHECK(results[1].skipped == token_count{0});
  CHECK(results[2].user == 0);
  CHECK(results[2].skipped == token_count{0});
}

TEST_CASE("S17: a plan that is not launched reserves: nothing is taken, and nobody else may have it") {
  auto e = engine<admitting<optimistic>>{pool_of(6)};
  e.keep(ascending(9));                    // 2 idle blocks, 4 free ones
  auto r = e.admit(ascending(20, 100), 4); // 5 blocks now
  auto const before = e.now();
  auto const all = ascending(20, 100);
  {
    auto const planned = e.plan({{&r, all}});
    auto const f = e.now();
    CHECK(f.free == before.free);
    CHECK(f.evictable == before.evictable);
    CHECK(f.published == before.published);
    CHECK(f.reserved == block_count{5});
    CHECK(f.available == block_count{1});
    CHECK(r.seq.blocks().empty());
    CHECK_FALSE(e.ask(ascending(5, 200)).has_value());          // 2 blocks beside 5 reserved of 6
    CHECK_FALSE(e.ask(joined(ascending(8), {50})).has_value()); // pins 2 idle ones and needs a third
  }
  CHECK(e.now() == before);
  auto planned = e.plan({{&r, all}});
  e.execute(planned, {{&r, all}});
  CHECK(e.now().reserved == block_count{0}); // taken now
  CHECK(e.now().free == block_count{0});
  CHECK(e.now().evictable == block_count{1});
  CHECK(e.now().published == block_count{1});
  CHECK(r.seq.blocks().size() == 5);
  e.commit(std::move(planned), {{&r, all}});
  e.read(r);
}

TEST_CASE("case 106: matched blocks are pinned before anything is allocated, and count as taken") {
  auto e = engine<>{pool_of(4)};
  e.keep(ascending(9));                                       // blocks 1 and 2 of the case, idle
  auto other = e.serve(ascending(5, 100), 3);                 // uses the two others
  auto const prompt = joined(ascending(8), ascending(7, 50)); // needs the two idle ones and two new
  auto const refused = e.ask(prompt);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == errc::no_blocks);
  CHECK(e.now().published == block_count{3}); // nothing of the match was evicted
  CHECK(e.cache.statistics().evicted_blocks == 0);
  e.release(other);
  auto r = e.serve(prompt);
  CHECK(r.seq.cached() == token_count{8});
  e.read(r);
}

TEST_CASE("case 107: a block that work in flight still holds is no victim, and becomes one later") {
  auto e = engine<>{pool_of(4)};
  auto r = e.serve(ascending(8), 8); // both blocks are published and in use
  auto const refused = e.ask(ascending(13, 100));
  REQUIRE_FALSE(refused.has_value());
  CHECK(e.now().evictable == block_count{0});
  e.release(r);
  CHECK(e.ask(ascending(13, 100)).has_value());
}

TEST_CASE("case 108: victims are never of the caller's own chain") {
  auto e = engine<>{pool_of(6)};
  e.keep(ascending(13)); // three idle blocks, the oldest in the order
  e.keep(ascending(5, 500));
  auto r = e.serve(joined(ascending(12), {50, 51}), 6); // attaches them and needs two more
  e.step({{&r, {52, 53, 54}}});
  CHECK(r.seq.cached() == token_count{12});
  e.read(r);
  CHECK(e.hit(ascending(13)) == 12);
}

TEST_CASE("case 109: what hangs below a block leaves before it, so that nothing cached lacks its parent") {
  for (auto victims = 0U; victims <= 6; ++victims) {
    auto e = engine<>{pool_of(8)};
    auto const prompt = ascending(25);
    e.keep(prompt); // six idle blocks in a row, two free ones
    e.keep(ascending((victims + 2) * 4 - 1, 1000));
    CHECK(e.cache.statistics().evicted_blocks == victims);
    CHECK(e.hit(prompt) == 24 - 4 * victims);
  }
}
