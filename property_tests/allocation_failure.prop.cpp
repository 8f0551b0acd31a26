// SPDX-License-Identifier: Apache-2.0
// Host memory runs out at the n-th allocation, for every n, in every public operation of a cache: std::bad_alloc passes and
// everything is as before. What must not fail (launch, commit, the end of a sequence, dropping a plan) allocates nothing.
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/model/retention.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/lfu_eviction.hpp>

#include "isolation/identity_fixtures.hpp"
#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"
#include "support/throwing_contract.hpp"
#include "support/toy_snapshot.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using group_list = std::vector<quire::cache_group>;

struct default_case {
  using policies = quire::default_policies;
  static auto groups() -> group_list { return {}; }
};
struct late_case {
  static auto groups() -> group_list { return {}; }
  struct policies : quire::default_policies {
    using fence = quire::ticket_fence<2>;
    using eviction = quire::lfu_eviction;
    template <class Eviction, class Digest>
    using index = quire::flat_index<Eviction, Digest>;
  };
};

// The same with a window and chunks beside what keeps everything.
template <class Case>
struct grouped : Case {
  static auto groups() -> group_list {
    return {{},
            {.keeps = quire::retention::sliding_window(quire::token_count{3}), .blocks = quire::block_count{60}},
            {.keeps = quire::retention::chunked(quire::token_count{4}),
             .blocks = quire::block_count{60},
             .block_tokens = quire::token_count{1}}};
  }
};
using all_cases = std::tuple<default_case, late_case, grouped<default_case>, grouped<late_case>>;

// A cache of 12 blocks of 2 in the middle of its life: two idle prefixes, a decoding sequence, two forks of another one that
// share its partial block, and one that has not started.
template <class Case>
struct scene {
  using cache_type = quire::kv_cache<typename Case::policies>;
  using sequence = typename cache_type::sequence;
  using item = typename cache_type::step_item;
  using plan_type = typename cache_type::step_plan;
  using tokens = std::vector<quire::token_id>;
  static constexpr bool fenced = Case::policies::fence::timelines > 1;

  cache_type cache{quire::cache_options{.blocks = quire::block_count{12},
                                        .block_tokens = quire::token_count{2},
                                        .max_sequences = quire::sequence_count{8},
                                        .max_rows = quire::row_count{4},
                                        .batch_buffers = 3,
                                        .groups = Case::groups()}};
  quire::scope_number scope;
  std::vector<sequence> seqs;
  std::vector<sequence> made; // by the operation
  std::vector<plan_type> plans;
  quire_test::toy_snapshot before;
  tokens long_prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  tokens cached_prompt = {1, 1, 1, 1, 1};
  tokens more = {21, 22, 23, 24, 25};
  quire::compute_identity identity{quire_test::some_fields()};
  quire::compute_identity other_identity{[] {
    auto fields = quire_test::some_fields();
    fields.adapters = quire::adapter_list::of({quire_test::some_adapter(3, 1.0)});
    return fields;
  }()};
  quire::sharing_domain domain = quire_test::domain_of("a");

  scene() {
    seqs.reserve(8);
    made.reserve(4);
    plans.reserve(4);
    scope = cache.open_scope(identity, domain);
    for (auto const& idle : {tokens{1, 1, 1, 1, 1}, tokens{1, 1, 2, 2, 2}}) {
      auto s = admit(idle, 1);
      step(s, idle);
      quiet();
      cache.release(std::move(s));
    }
    seqs.push_back(admit({3, 3, 3}, 5)); // 0: decodes
    step(seqs[0], tokens{3, 3, 3});
    seqs.push_back(admit({4, 4, 4}, 3)); // 1: forked
    step(seqs[1], tokens{4, 4, 4});
    seqs.push_back(cache.fork(seqs[1]).value()); // 2: must copy
    seqs.push_back(admit({5}, 1));               // 3: not started
    quiet();
    note();
  }
  scene(scene const&) = delete;
  auto operator=(scene const&) -> scene& = delete;

  auto admit(tokens const& prompt, std::uint32_t output) -> sequence {
    return cache.admit({.scope = scope, .prompt = prompt, .max_output = quire::token_count{output}}).value();
  }
  auto ticket_of(quire::timeline_id t) -> quire::ticket { return cache.fence().issue(t); }
  void step(sequence const& s, std::span<quire::token_id const> ids) {
    auto const items = std::array{item{s, ids}};
    auto plan = cache.plan_step(items).value();
    static_cast<void>(plan.launch());
    static_cast<void>(cache.commit(std::move(plan), ticket_of(quire::timeline_id{0})));
  }
  // All work is done and reported.
  void quiet() {
    if constexpr (fenced) {
      for (std::uint32_t t = 0; t < Case::policies::fence::timelines; ++t) {
        cache.fence().complete(quire::timeline_id{t}, cache.fence().issued(quire::timeline_id{t}));
      }
    }
    cache.reclaim();
  }
  auto look() -> quire_test::toy_snapshot {
    auto s = quire_test::look_at(cache);
    for (auto const& q : seqs) {
      s.tables.push_back(quire_test::look_at(q));
      for (std::uint32_t g = 1; g < Case::groups().size(); ++g) {
        auto const blocks = q.blocks(quire::group_id{g});
        s.tables.push_back({g, {blocks.begin(), blocks.end()}});
      }
    }
    return s;
  }
  void note() { before = look(); }
};

// Proves the strong guarantee of \p act in the scene that \p prepare leaves. \returns how many allocations it makes.
template <class Case, class Prepare, class Act>
auto strong(Prepare prepare, Act act) -> std::size_t {
  using scene_type = scene<Case>;
  return quire_test::fail_each_allocation(
      [&] {
        auto made = std::make_unique<scene_type>();
        prepare(*made);
        made->note();
        return made;
      },
      [&](std::unique_ptr<scene_type>& s) { act(*s); },
      [](std::unique_ptr<scene_type>& s) {
        auto const audited = s->cache.audit();
        INFO((audited ? std::string{} : audited.error()));
        REQUIRE(audited.has_value());
        REQUIRE(s->look() == s->before);
      });
}
auto nothing = [](auto&) {};

// Opens a plan over everybody that takes free blocks, evicts, copies and refuses.
auto open_plan = [](auto& s) {
  using item = typename std::remove_reference_t<decltype(s)>::item;
  auto const ids = std::span<quire::token_id const>{s.more};
  auto const items = std::array{item{s.seqs[0], ids}, item{s.seqs[2], ids.first(3)},
                                item{s.seqs[1], quire::token_count{2}}, item{s.seqs[3], ids}};
  auto plan = s.cache.plan_step(items);
  if (plan) { s.plans.push_back(std::move(*plan)); }
};
// Room becomes scarce: an admission that has computed nothing yet takes no block, one that has does.
auto fill = [](auto& s) {
  auto const prompt = std::vector<quire::token_id>{6, 6, 6};
  s.seqs.push_back(s.admit(prompt, 1));
  s.step(s.seqs.back(), prompt);
  s.quiet();
};

} // namespace

TEMPLATE_LIST_TEST_CASE("bad_alloc: admission changes nothing", "[cache]", all_cases) {
  CHECK(strong<TestType>(nothing, [](auto& s) {
          auto got = s.cache.admit({.scope = s.scope, .prompt = s.cached_prompt, .max_output = quire::token_count{1}});
          if (got) { s.made.push_back(std::move(*got)); }
        }) > 0);
  CHECK(strong<TestType>([](auto& s) { s.cache.advance_epoch(quire::running_requests::finish_privately); },
                         [](auto& s) {
                           auto got = s.cache.admit(
                               {.scope = s.scope, .prompt = s.cached_prompt, .max_output = quire::token_count{1}});
                           if (got) { s.made.push_back(std::move(*got)); }
                         }) > 0);
  strong<TestType>(nothing, [](auto& s) {
    static_cast<void>(
        s.cache.admit({.scope = s.scope, .prompt = s.long_prompt, .max_output = quire::token_count{500}}));
  });
  CHECK(strong<TestType>(nothing, [](auto& s) { static_cast<void>(s.cache.open_scope(s.other_identity, s.domain)); }) >
        0);
}

TEMPLATE_LIST_TEST_CASE("bad_alloc: planning changes nothing", "[cache]", all_cases) {
  CHECK(strong<TestType>(nothing, open_plan) > 0);
  CHECK(strong<TestType>(fill, open_plan) > 0);
  auto prepared = scene<TestType>{};
  fill(prepared);
  open_plan(prepared);
  REQUIRE(prepared.plans.size() == 1);
  CHECK(prepared.plans[0].results()[1].status == quire::errc::ok);
  CHECK(prepared.plans[0].results()[3].status == quire::errc::over_budget);
  auto const before = prepared.cache.statistics().evicted_blocks;
  static_cast<void>(prepared.plans[0].launch());
  CHECK(prepared.cache.statistics().evicted_blocks > before); // the plan above evicts
}

TEMPLATE_LIST_TEST_CASE("bad_alloc: what must not fail allocates nothing", "[cache]", all_cases) {
  auto const planned = [](auto& s) {
    fill(s);
    open_plan(s);
  };
  auto const launched = [=](auto& s) {
    planned(s);
    static_cast<void>(s.plans[0].launch());
  };
  CHECK(strong<TestType>(planned, [](auto& s) { static_cast<void>(s.plans[0].launch()); }) == 0);
  CHECK(strong<TestType>(planned, [](auto& s) { s.plans.clear(); }) == 0);
  CHECK(strong<TestType>(launched, [](auto& s) { s.plans.clear(); }) == 0);
  CHECK(strong<TestType>(launched, [](auto& s) {
          static_cast<void>(s.cache.commit(std::move(s.plans[0]), s.ticket_of(quire::timeline_id{0})));
        }) == 0);
  CHECK(strong<TestType>(launched, [](auto& s) { // ended under the plan
          s.cache.cancel(std::move(s.seqs[2]));
          static_cast<void>(s.cache.commit(std::move(s.plans[0]), s.ticket_of(quire::timeline_id{0})));
        }) == 0);
  CHECK(strong<TestType>(nothing, [](auto& s) { s.seqs.clear(); }) == 0);
  CHECK(strong<TestType>(nothing, [](auto& s) { s.cache.time_out(std::move(s.seqs[1])); }) == 0);
  CHECK(strong<TestType>(nothing, [](auto& s) { s.cache.advance_epoch(quire::running_requests::must_restart); }) == 0);
  CHECK(strong<TestType>(nothing, [](auto& s) { static_cast<void>(s.cache.statistics()); }) == 0);
}

TEMPLATE_LIST_TEST_CASE("bad_alloc: fork, truncation, preemption, resolving and maintenance change nothing", "[cache]",
                        all_cases) {
  CHECK(strong<TestType>(nothing, [](auto& s) {
          auto got = s.cache.fork(s.seqs[1], quire::token_count{3});
          if (got) { s.made.push_back(std::move(*got)); }
        }) > 0);
  strong<TestType>(nothing, [](auto& s) { static_cast<void>(s.cache.truncate(s.seqs[0], quire::token_count{1})); });
  auto const in_flight = [](auto& s) { // tickets that are not reached
    s.step(s.seqs[0], std::span<quire::token_id const>{s.more}.first(2));
  };
  strong<TestType>(in_flight, [](auto& s) { static_cast<void>(s.cache.truncate(s.seqs[0], quire::token_count{1})); });
  auto const unknown = [](auto& s) {
    using item = typename std::remove_reference_t<decltype(s)>::item;
    auto const items = std::array{item{s.seqs[0], quire::token_count{3}}};
    auto plan = s.cache.plan_step(items).value();
    static_cast<void>(plan.launch());
    static_cast<void>(s.cache.commit(std::move(plan), s.ticket_of(quire::timeline_id{0})));
    s.quiet();
  };
  strong<TestType>(nothing, [](auto& s) { static_cast<void>(s.cache.preempt(s.seqs[0])); });
  CHECK(strong<TestType>(unknown, [](auto& s) {
          static_cast<void>(s.cache.resolve(s.seqs[0], std::span<quire::token_id const>{s.more}.first(3)));
        }) == 0);
  auto const holes = [](auto& s) { s.cache.release(std::move(s.seqs[0])), s.seqs.erase(s.seqs.begin()); };
  CHECK(strong<TestType>(holes, [](auto& s) { static_cast<void>(s.cache.compact()); }) > 0);
  strong<TestType>(in_flight, [](auto& s) { s.cache.reclaim(); });
  strong<TestType>(in_flight, [](auto& s) { static_cast<void>(s.cache.abandon(quire::timeline_id{0})); });
}

namespace {
// A sequence that decodes inside a block: the step before last is done, the last one is in flight on timeline 0.
struct decoding_scene {
  using policies = late_case::policies;
  quire::kv_cache<policies> cache{quire::cache_options{
      .blocks = quire::block_count{4}, .block_tokens = quire::token_count{16}, .batch_buffers = 2}};
  std::vector<quire::token_id> prompt = {1, 2};
  quire::kv_cache<policies>::sequence seq;

  decoding_scene() {
    auto const scope = cache.open_scope(quire::compute_identity{quire_test::some_fields()}, quire_test::domain_of("a"));
    seq = cache.admit({.scope = scope, .prompt = prompt, .max_output = quire::token_count{9}}).value();
    auto const first = step(prompt);
    static_cast<void>(step({prompt.data(), 1}));
    cache.fence().complete(quire::timeline_id{0}, first);
  }
  auto step(std::span<quire::token_id const> ids) -> quire::ticket {
    auto made = cache.plan_step({{seq, ids}}).value();
    static_cast<void>(made.launch());
    auto const until = cache.fence().issue(quire::timeline_id{0});
    static_cast<void>(cache.commit(std::move(made), until));
    return until;
  }
  auto decode_on_the_other() -> quire::expected<decltype(cache)::step_plan> {
    return cache.plan_step({{seq, std::span<quire::token_id const>{prompt.data(), 1}}}, quire::timeline_id{1});
  }
};
} // namespace

TEST_CASE("bad_alloc: a decode step that has to wait for another timeline takes no memory", "[cache]") {
  auto s = decoding_scene{};
  auto plan = quire::expected<decltype(s.cache)::step_plan>{tl::unexpect, quire::errc::plan_open};
  CHECK(quire_test::allocations_of([&] { plan = s.decode_on_the_other(); }) == 0);
  REQUIRE(plan.has_value());
  REQUIRE(plan->complete());
  auto waits = 0;
  for (auto const& a : plan->launch()) { waits += a.kind == quire::action_kind::wait ? 1 : 0; }
  CHECK(waits == 1);
}
