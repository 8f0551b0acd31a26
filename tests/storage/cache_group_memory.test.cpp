// SPDX-License-Identifier: Apache-2.0
// Host memory of caches with layer groups: a steady decode allocates nothing, a failed allocation changes nothing; and caches
// for real models, whose groups come from the preset.
#include <quire/block/ticket_fence.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/model_spec.hpp>
#include <quire/model/presets.hpp>
#include <quire/model/retention.hpp>
#include <quire/prefix/flat_index.hpp>

#include "storage/group_fixture.hpp"
#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"
#include "support/toy_snapshot.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::check;
using quire_test::chunks_of;
using quire_test::domain_of;
using quire_test::group;
using quire_test::group_of;
using quire_test::groups_of;
using quire_test::some_fields;
using quire_test::text;
using quire_test::tokens;
using quire_test::window_of;

struct ticketed : default_policies {
  using fence = ticket_fence<1>;
};
struct eager : default_policies { // pools so small that plans evict
  using admission = admit_all;
};
struct flat_late : eager {
  using fence = ticket_fence<2>;
  template <class E, class D>
  using index = flat_index<E, D>;
};
} // namespace

TEMPLATE_TEST_CASE("S26: 200 decode steps of 8 sequences over four groups allocate nothing", "", default_policies,
                   ticketed) {
  auto options = groups_of(8 * 40,
                           {group_of({}), group_of(window_of(20), 8 * 10, 8), group_of(window_of(9, 2), 8 * 40),
                            group_of(chunks_of(16), 8 * 40, 2)},
                           16);
  options.max_append = token_count{30};
  auto cache = kv_cache<TestType>{options};
  auto const scope = cache.open_scope(compute_identity{some_fields()}, domain_of("tenant"));
  using sequence = typename kv_cache<TestType>::sequence;
  auto sequences = std::vector<sequence>{};
  auto prompts = std::vector<text>{};
  for (token_id i = 0; i < 8; ++i) { prompts.push_back(ascending(30, 1000 * i)); }
  for (auto const& prompt : prompts) {
    auto wanted = admit_request{};
    wanted.scope = scope;
    wanted.prompt = prompt;
    wanted.max_output = token_count{300};
    auto got = cache.admit(wanted);
    REQUIRE(got.has_value());
    sequences.push_back(std::move(*got));
  }
  auto next = std::vector<token_id>(8);
  auto items = std::vector<typename kv_cache<TestType>::step_item>{};
  items.reserve(8);
  auto failures = 0;
  auto const step = [&](bool prefill) {
    items.clear();
    for (std::size_t i = 0; i < 8; ++i) {
      next[i] += 7;
      items.emplace_back(sequences[i],
                         prefill ? std::span<token_id const>{prompts[i]} : std::span<token_id const>{&next[i], 1});
    }
    auto planned = cache.plan_step(items);
    if (!planned || !planned->complete()) {
      ++failures;
      return;
    }
    static_cast<void>(planned->launch());
    auto const until = cache.fence().issue(timeline_id{0});
    failures += cache.commit(std::move(*planned), until) ? 0 : 1;
    if constexpr (std::is_same_v<TestType, ticketed>) {
      if (until.value() > 1) { cache.fence().complete(timeline_id{0}, ticket{until.value() - 1}); }
    }
  };
  step(true);
  for (auto i = 0; i < 66; ++i) { step(false); } // every buffer has seen new blocks and windows that moved on
  CHECK(quire_test::allocations_of([&] {
          for (auto i = 0; i < 200; ++i) { step(false); }
        }) == 0);
  CHECK(failures == 0);
  check(cache);
  CHECK(sequences[0].length() == token_count{30 + 66 + 200});
}

TEST_CASE("S18: window blocks that begin to wait for a ticket take no host memory") {
  auto cache = kv_cache<ticketed>{groups_of(32, {group_of({}), group_of(window_of(1), 32, 1)})};
  auto const scope = cache.open_scope(compute_identity{some_fields()}, domain_of("tenant"));
  auto const prompt = ascending(20);
  auto s = cache.admit({.scope = scope, .prompt = prompt, .max_output = token_count{1}}).value();
  auto const items = std::array{kv_cache<ticketed>::step_item{s, prompt}};
  auto plan = cache.plan_step(items).value();
  static_cast<void>(plan.launch());
  auto const until = cache.fence().issue(timeline_id{0});
  CHECK(quire_test::allocations_of([&] { static_cast<void>(cache.commit(std::move(plan), until)); }) == 0);
  CHECK(cache.figures(group(1)).free == block_count{12}); // all twenty wait
  check(cache);
}

namespace {
// A cache in the middle of its life: an idle prefix, a decoding sequence, two forks of another one, and window pools so tight
// that plans evict.
template <class P>
struct scene {
  using cache_type = kv_cache<P>;
  using sequence = typename cache_type::sequence;
  using item = typename cache_type::step_item;

  cache_type cache{[] {
    auto options = groups_of(10, {group_of({}), group_of(window_of(5), 10, 2), group_of(window_of(3, 1), 18, 1)}, 2);
    options.max_append = token_count{4};
    options.batch_buffers = 3;
    return options;
  }()};
  scope_number scope = cache.open_scope(compute_identity{some_fields()}, domain_of("tenant"));
  std::vector<sequence> seqs;
  std::vector<sequence> made;
  std::vector<typename cache_type::step_plan> plans;
  quire_test::toy_snapshot before;
  std::vector<std::vector<std::uint32_t>> groups_before;
  text more = {21, 22, 23, 24};

  scene() {
    seqs.reserve(8);
    made.reserve(4);
    plans.reserve(4);
    {
      auto idle = admit(ascending(7), 1);
      step(idle, ascending(4));
      step(idle, ascending(3, 5));
      quiet();
    }
    quiet();
    seqs.push_back(admit({3, 3, 3}, 5));
    step(seqs[0], text{3, 3, 3});
    seqs.push_back(admit({4, 4, 4}, 4));
    step(seqs[1], text{4, 4, 4});
    seqs.push_back(cache.fork(seqs[1]).value());
    quiet();
    note();
  }
  scene(scene const&) = delete;
  auto operator=(scene const&) -> scene& = delete;

  auto ask(text const& prompt, std::uint32_t output) -> expected<sequence, refusal> {
    return cache.admit({.scope = scope, .prompt = prompt, .max_output = token_count{output}});
  }
  auto admit(text const& prompt, std::uint32_t output) -> sequence { return ask(prompt, output).value(); }
  void step(sequence const& s, std::span<token_id const> ids) {
    auto const items = std::array{item{s, ids}};
    auto plan = cache.plan_step(items).value();
    static_cast<void>(plan.launch());
    static_cast<void>(cache.commit(std::move(plan), cache.fence().issue(timeline_id{0})));
  }
  void quiet() {
    if constexpr (P::fence::timelines > 1) {
      for (std::uint32_t t = 0; t < P::fence::timelines; ++t) {
        cache.fence().complete(timeline_id{t}, cache.fence().issued(timeline_id{t}));
      }
    }
    cache.reclaim();
  }
  auto look() -> quire_test::toy_snapshot {
    auto s = quire_test::look_at(cache);
    for (auto const& q : seqs) { s.tables.push_back(quire_test::look_at(q)); }
    return s;
  }
  auto look_at_groups() -> std::vector<std::vector<std::uint32_t>> {
    auto out = std::vector<std::vector<std::uint32_t>>{};
    for (std::uint32_t g = 1; g < 3; ++g) {
      auto const f = cache.figures(group(g));
      out.push_back({f.free.value(), f.evictable.value(), f.promised.value()});
      for (auto const& q : seqs) { out.push_back(quire_test::numbers(q.blocks(group(g)))); }
    }
    return out;
  }
  void note() {
    before = look();
    groups_before = look_at_groups();
  }
};

template <class P, class Prepare, class Act>
auto strong(Prepare prepare, Act act) -> std::size_t {
  return quire_test::fail_each_allocation(
      [&] {
        auto made = std::make_unique<scene<P>>();
        prepare(*made);
        made->note();
        return made;
      },
      [&](std::unique_ptr<scene<P>>& s) { act(*s); },
      [](std::unique_ptr<scene<P>>& s) {
        check(s->cache);
        REQUIRE(s->look() == s->before);
        REQUIRE(s->look_at_groups() == s->groups_before);
      });
}
auto nothing = [](auto&) {};
auto open_plan = [](auto& s) {
  using item = typename std::remove_reference_t<decltype(s)>::item;
  auto const ids = std::span<token_id const>{s.more};
  auto const items = std::array{item{s.seqs[0], ids}, item{s.seqs[2], ids.first(3)}, item{s.seqs[1], token_count{2}}};
  auto plan = s.cache.plan_step(items);
  if (plan) { s.plans.push_back(std::move(*plan)); }
};
} // namespace

TEMPLATE_TEST_CASE(
    "S26: with layer groups an admission, a fork, a plan or a cut that runs out of host memory changes nothing", "",
    eager, flat_late) {
  CHECK(strong<TestType>(nothing, [](auto& s) {
          auto got = s.ask(ascending(7), 1);
          if (got) { s.made.push_back(std::move(*got)); }
        }) > 0);
  CHECK(strong<TestType>(nothing, [](auto& s) {
          auto got = s.cache.fork(s.seqs[0], tokens(3));
          if (got) { s.made.push_back(std::move(*got)); }
        }) > 0);
  CHECK(strong<TestType>(nothing, open_plan) > 0);
  strong<TestType>(nothing, [](auto& s) { static_cast<void>(s.cache.truncate(s.seqs[0], tokens(3))); });
  auto const in_flight = [](auto& s) { s.step(s.seqs[0], std::span<token_id const>{s.more}.first(2)); };
  strong<TestType>(in_flight, [](auto& s) { static_cast<void>(s.cache.truncate(s.seqs[0], tokens(4))); });
  strong<TestType>(in_flight, [](auto& s) { s.cache.reclaim(); });
}

TEMPLATE_TEST_CASE("S26: with layer groups what must not fail allocates nothing", "", eager, flat_late) {
  auto const planned = [](auto& s) {
    open_plan(s);
    REQUIRE(s.plans.size() == 1);
    REQUIRE(s.plans[0].complete());
  };
  auto const launched = [=](auto& s) {
    planned(s);
    static_cast<void>(s.plans[0].launch());
  };
  {
    auto evicting = scene<TestType>{};
    auto const idle = [&](std::uint32_t g) { return evicting.cache.figures(group(g)).evictable; };
    auto const before = std::array{idle(0), idle(1), idle(2)};
    launched(evicting); // takes victims in every group, and copies
    for (std::uint32_t g = 0; g < 3; ++g) { CHECK(idle(g) < before[g]); }
  }
  CHECK(strong<TestType>(planned, [](auto& s) { static_cast<void>(s.plans[0].launch()); }) == 0);
  CHECK(strong<TestType>(planned, [](auto& s) { s.plans.clear(); }) == 0);
  CHECK(strong<TestType>(launched, [](auto& s) { s.plans.clear(); }) == 0);
  CHECK(strong<TestType>(launched, [](auto& s) {
          static_cast<void>(s.cache.commit(std::move(s.plans[0]), s.cache.fence().issue(timeline_id{0})));
        }) == 0);
  CHECK(strong<TestType>(launched, [](auto& s) { // one ends under the plan
          s.cache.cancel(std::move(s.seqs[2]));
          static_cast<void>(s.cache.commit(std::move(s.plans[0]), s.cache.fence().issue(timeline_id{0})));
        }) == 0);
  CHECK(strong<TestType>(nothing, [](auto& s) { s.seqs.clear(); }) == 0);
}

namespace {
// A cache of 64 KiB tokens' worth for a preset: what its groups are, and that a long context really runs in it.
void serves(model_spec const& model, std::uint32_t length, byte_count bytes) {
  CAPTURE(model.name());
  auto options = cache_options{};
  options.bytes = bytes;
  options.max_append = token_count{2048};
  options.max_context = token_count{length};
  auto cache = kv_cache<>{model, options};
  auto const scope = cache.open_scope(compute_identity{some_fields()}, domain_of("tenant"));
  auto bytes_taken = std::uint64_t{0};
  for (std::uint32_t g = 0; g < model.groups().size(); ++g) {
    bytes_taken +=
        cache.figures(group(g)).capacity.value() * block_bytes(model.groups()[g], options.block_tokens).value();
  }
  CHECK(bytes_taken <= bytes.value());
  CHECK(bytes_taken > bytes.value() - (bytes.value() >> 3U)); // and not much is left over
  auto const prompt = ascending(length - 4);
  auto got = cache.admit({.scope = scope, .prompt = prompt, .max_output = token_count{4}});
  REQUIRE(got.has_value());
  auto most = std::vector<std::uint32_t>(model.groups().size());
  while (got->length().value() < prompt.size()) {
    auto const ids = got->remaining(prompt);
    auto const items = std::array{kv_cache<>::step_item{*got, ids.first(std::min<std::size_t>(ids.size(), 2048))}};
    auto plan = cache.plan_step(items);
    REQUIRE((plan && plan->complete()));
    for (std::uint32_t g = 0; g < most.size(); ++g) {
      auto const table = got->blocks(group(g));
      auto const held = std::count_if(table.begin(), table.end(), [](block_id b) { return static_cast<bool>(b); });
      most[g] = std::max(most[g], static_cast<std::uint32_t>(held));
    }
    static_cast<void>(plan->launch());
    REQUIRE(cache.commit(std::move(*plan)).has_value());
  }
  for (std::uint32_t g = 0; g < most.size(); ++g) {
    auto const keeps = model.groups()[g].keeps;
    CAPTURE(g);
    CHECK(most[g] <=
          peak_blocks(keeps, tokens(length), {.block_tokens = token_count{16}, .step = token_count{2048}}).value());
    auto const table = got->blocks(group(g));
    auto const held = std::count_if(table.begin(), table.end(), [](block_id b) { return static_cast<bool>(b); });
    auto const seen = quire_test::blocks_seen(keeps, length - 4, length - 4, 16);
    CHECK(held == std::count(seen.begin(), seen.end(), true));
  }
  check(cache);
}
} // namespace

TEST_CASE("S29: caches for mixed models have their groups, split their bytes and run their longest context") {
  serves(presets::gemma3_1b(), 32'768, byte_count{512ULL << 20U});
  serves(presets::gemma3_27b(), 32'768, byte_count{8ULL << 30U});
  serves(*presets::find("gpt-oss-20b"), 65'536, byte_count{4ULL << 30U});
  serves(*presets::find("gpt-oss-120b"), 32'768, byte_count{4ULL << 30U});
  serves(presets::llama4_scout(), 65'536, byte_count{12ULL << 30U});
  serves(presets::find("mistral-7b-v0.1").value(), 16'384, byte_count{2ULL << 30U});
}

namespace {
// Decodes a whole context of 128 Ki positions in the memory of one flat pool for it, divided by less.
void decodes_in_a_fraction(char const* preset, double full_gib, double less) {
  CAPTURE(preset);
  auto const model = presets::find(preset).value();
  constexpr auto length = std::uint32_t{128 * 1024};
  auto const flat = full_gib * 1024 * 1024 * 1024;
  CHECK(static_cast<double>(length) * static_cast<double>(bytes_per_token(model).value()) == flat);
  auto options = cache_options{};
  options.max_append = token_count{1};
  options.max_context = token_count{length};
  options.bytes = byte_count{static_cast<std::uint64_t>(flat / less)};
  auto cache = kv_cache<>{model, options};
  auto const scope = cache.open_scope(compute_identity{some_fields()}, domain_of("tenant"));
  auto const first = std::array{token_id{7}};
  auto got = cache.admit({.scope = scope, .prompt = first, .max_output = token_count{length - 1}});
  INFO((got ? std::string{} : got.error().message()));
  REQUIRE(got.has_value());
  for (std::uint32_t p = 0; p < length; ++p) {
    auto const ids = std::array{static_cast<token_id>(7 + p % 1000)};
    auto plan = cache.plan_step({{*got, ids}});
    if (!plan || !plan->complete()) { FAIL("no room at position " << p); }
    static_cast<void>(plan->launch());
    if (!cache.commit(std::move(*plan))) { FAIL("no commit at position " << p); }
  }
  CHECK(got->length() == token_count{length});
  check(cache);
}
} // namespace

TEST_CASE("B3: caches of mixed stacks decode 128 K tokens in a fraction of one flat pool") {
  decodes_in_a_fraction("gemma3-27b", 62.0, 5.9);
  decodes_in_a_fraction("llama4-scout", 24.0, 3.3);
  decodes_in_a_fraction("gpt-oss-120b", 9.0, 1.99);
}

TEST_CASE("S29: bytes that hold no sequence over all groups are refused with what one takes") {
  auto options = cache_options{};
  options.bytes = byte_count{1000};
  auto const made = kv_cache<>::create(presets::gemma3_27b(), options);
  REQUIRE_FALSE(made.has_value());
  CHECK_THAT(made.error().what(), quire_test::ContainsSubstring("over all layer groups"));
}

TEST_CASE("S29: groups that keep everything may have blocks of different sizes") {
  auto const cache = kv_cache<>{groups_of(8, {group_of({}, 8, 8), group_of({}, 8, 2)})};
  CHECK(cache.reuse_alignment() == token_count{8});
  CHECK(cache.block_tokens(group(0)) == token_count{8});
  CHECK(cache.block_tokens(group(1)) == token_count{2});
}
