// SPDX-License-Identifier: Apache-2.0
// Any schedule of requests, cancellations, forks, guesses, permutations, failures and new weights, over any size of pool,
// block and chunk, gives each request the tokens of a full recompute: of a network that hashes all it reads, and of
// random transformers, whose logits must agree to the last bit.
#include "generate/checkpoint.hpp"
#include "generate/float_attention.hpp"
#include "generate/network.hpp"
#include "generate/paged_memory.hpp"
#include "generate/toy_model.hpp"

#include <quire/cache/kv_cache.hpp>
#include <quire/generate/generator.hpp>
#include <quire/generate/lookup_drafter.hpp>
#include <quire/generate/no_clock.hpp>

#include "support/rc_prop.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace quire {
inline auto operator<<(std::ostream& to, errc e) -> std::ostream& { return to << message(e); }
} // namespace quire

namespace {
using namespace quire;
using quire_test::prop;
using text = quire_test::token_list;

struct optimistic_policies : default_policies {
  using admission = optimistic;
};

/// In [0, below), whatever the size of the case.
auto one_of(int below) -> unsigned { return static_cast<unsigned>(*rc::gen::resize(100, rc::gen::inRange(0, below))); }

/// A prompt that begins like others: two symbols, mostly the first.
auto any_prompt() -> text {
  auto out = text(1 + one_of(14));
  for (auto& token : out) { token = one_of(5) == 0 ? 2 : 1; }
  return out;
}
auto any_state() -> generation_state {
  auto out = generation_state{.prompt = any_prompt(), .stop = {.limit = token_count{1 + one_of(9)}}};
  if (one_of(2) == 0) { out.sampling = {.temperature = 1.0, .top_k = one_of(4), .top_p = one_of(2) == 0 ? 1.0 : 0.8}; }
  out.random = random_state{one_of(1000)};
  if (one_of(3) == 0) { out.stop.end_tokens = {static_cast<token_id>(one_of(3))}; }
  if (one_of(3) == 0) { out.stop.sequences = {{static_cast<token_id>(one_of(3)), static_cast<token_id>(one_of(3))}}; }
  return out;
}
auto any_options() -> generator_options {
  return {.chunk = token_count{one_of(6)},
          .max_members = 1 + one_of(6),
          .draft = token_count{one_of(4)},
          .kept_outputs = one_of(3)};
}

/// Three tokens only, so that guesses are often right and prompts often shared.
constexpr auto small_network = quire_test::toy_network{.vocabulary = 3};

template <class Policies>
void any_schedule() {
  auto const unit = 1 + one_of(5);
  auto options = quire_test::toy_service<>::small(24 / unit + one_of(60), unit);
  options.skip_writes = one_of(3) > 0;
  options.scrub = one_of(2) == 0 ? scrub_rule::never : scrub_rule::on_reuse;
  auto cache = kv_cache<Policies>{options};
  scope_number const scopes[] = {
      cache.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("a")),
      cache.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("b"))};
  auto model = quire_test::toy_model{options.blocks, options.block_tokens, small_network};
  auto time = manual_clock{};
  auto const how = any_options();
  RC_LOG() << "blocks " << options.blocks.value() << " of " << unit << " chunk " << how.chunk.value() << " members "
           << how.max_members << " draft " << how.draft.value() << " kept " << how.kept_outputs << " skip "
           << options.skip_writes << '\n';
  auto g = generator<kv_cache<Policies>, quire_test::toy_model, quire_test::shared_clock, lookup_drafter>{
      cache, model, how, quire_test::shared_clock{&time}, lookup_drafter{token_count{1}}};
  auto asked = std::map<generation_id, generation_state>{}; // how each began
  auto const any_id = [&] {
    auto at = asked.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(one_of(static_cast<int>(asked.size()))));
    return at->first;
  };
  auto const commands = 5 + one_of(40);
  for (unsigned i = 0; i < commands; ++i) {
    switch (one_of(12)) {
    case 0:
    case 1: {
      auto const state = any_state();
      auto request = generation_request{.scope = scopes[one_of(2)], .state = state};
      request.last_output = one_of(2) == 0 ? last_output_rule::leave : last_output_rule::forward;
      request.reuse = one_of(5) == 0 ? reuse_rule::none : reuse_rule::read_and_write;
      if (one_of(4) == 0) { request.time_limit = nanosecond_count{one_of(12)}; }
      if (auto const id = g.submit(request)) { asked[*id] = state; }
      break;
    }
    case 2: {
      auto const state = any_state();
      auto const ids = g.submit_samples({.scope = scopes[one_of(2)], .state = state}, 1 + one_of(4));
      for (std::size_t k = 0; ids && k < ids->size(); ++k) {
        asked[(*ids)[k]] = state;
        asked[(*ids)[k]].random = state.random.sibling(k);
      }
      break;
    }
    case 3:
      if (!asked.empty()) { one_of(2) == 0 ? g.cancel(any_id()) : g.time_out(any_id()); }
      break;
    case 4:
      if (!asked.empty()) {
        auto const parent = any_id();
        auto state = g.result(parent).state;
        state.random = random_state{one_of(1000)};
        if (auto const id = g.fork(parent, state.random)) { asked[*id] = state; }
      }
      break;
    case 5: {
      auto order = g.running();
      for (std::size_t k = 1; k < order.size(); ++k) { std::swap(order[k], order[one_of(static_cast<int>(k + 1))]); }
      g.reorder(order);
      break;
    }
    case 6: model.fails_left = one_of(2); break;
    case 7:
      if (one_of(6) == 0) {
        g.advance_epoch(one_of(2) == 0 ? running_requests::must_restart : running_requests::finish_privately);
      }
      break;
    case 8:
      if (auto const moves = cache.compact()) { RC_ASSERT(model.run(*moves).has_value()); }
      break;
    default:
      time.advance(nanosecond_count{1});
      static_cast<void>(g.step());
      break;
    }
    auto const proven = cache.audit();
    RC_ASSERT((proven ? std::string{} : proven.error()) == std::string{});
  }
  model.fails_left = 0;
  auto const finished = g.run(); // nobody waits for ever
  RC_ASSERT((finished ? errc::ok : finished.error()) == errc::ok);
  auto positions = std::uint64_t{0};
  for (auto const& [id, start] : asked) {
    auto const& r = g.result(id);
    auto whole = start;
    auto const reason = small_network.recompute(whole);
    RC_ASSERT(r.over());
    RC_ASSERT(r.state.output.size() <= whole.output.size());
    auto const said =
        text(whole.output.begin(), whole.output.begin() + static_cast<std::ptrdiff_t>(r.state.output.size()));
    RC_ASSERT(r.state.output == said);
    if (r.reason != stop_reason::cancelled && r.reason != stop_reason::timed_out) {
      RC_ASSERT(r.reason == reason);
      RC_ASSERT(r.state == whole);
      auto const covers = r.state.prompt.size() + r.state.output.size() - 1;
      auto const covered = std::size_t{r.covered.value()};
      RC_ASSERT(covered >= covers);
      RC_ASSERT(covered <= covers + 1);
    }
    positions += r.computed.positions;
  }
  RC_ASSERT(positions == g.computed().positions);
  RC_ASSERT(positions == model.positions_computed);
  RC_ASSERT(cache.live_sequences() == sequence_count{0});
  RC_ASSERT(cache.figures(quire::group_id{0}).promised == block_count{0});
}

/// A transformer of random size with random weights.
auto any_checkpoint() -> llama2::checkpoint {
  auto const heads = std::uint32_t{1} << one_of(3);
  auto const shape = llama2::network_shape{.dim = heads * 2 * (1 + one_of(3)),
                                           .hidden = 1 + one_of(20),
                                           .layers = 1 + one_of(3),
                                           .heads = heads,
                                           .kv_heads = std::max(heads >> one_of(3), 1U), // MHA, GQA, MQA
                                           .vocabulary = 4,
                                           .positions = 40};
  auto values = std::vector<float>(llama2::checkpoint::parts{shape, true}.size);
  auto random = random_state{one_of(10000)};
  for (auto& v : values) { v = static_cast<float>(4.0 * random.uniform() - 2.0); }
  return {shape, true, std::move(values)};
}

void any_transformer() {
  using network_type = llama2::network<llama2::float_attention>;
  auto const file = any_checkpoint();
  auto const unit = token_count{1 + one_of(6)};
  auto const blocks = block_count{40 / unit.value() + 1 + one_of(20)};
  auto cache = kv_cache<optimistic_policies>{cache_options{.blocks = blocks, .block_tokens = unit}};
  auto const scope = cache.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("a"));
  auto memory = llama2::paged_memory{file.shape(), blocks, unit};
  auto attention = llama2::float_attention{file.shape(), memory};
  auto network = network_type{file, attention};
  auto g =
      generator<kv_cache<optimistic_policies>, network_type, no_clock, lookup_drafter>{cache, network, any_options()};
  auto asked = std::map<generation_id, generation_state>{};
  auto rows = std::map<generation_id, std::vector<std::vector<float>>>{};
  for (auto left = 2 + one_of(5); left > 0 || !g.idle();) {
    if (left > 0 && one_of(2) == 0) {
      --left;
      auto const state = any_state();
      if (auto const id = g.submit({.scope = scope, .state = state})) { asked[*id] = state; }
    }
    if (!asked.empty() && one_of(6) == 0) { // a copy somewhere in the middle
      auto const parent = asked.begin()->first;
      auto state = g.result(parent).state;
      if (auto const id = g.fork(parent, state.random)) {
        asked[*id] = state;
        rows[*id] = rows[parent];
      }
    }
    auto const out = g.step();
    RC_ASSERT(out.has_value());
    for (auto const& e : *out) { rows[e.of].emplace_back(e.logits.begin(), e.logits.end()); }
  }
  // Alone, nothing cached, one output per pass.
  auto plain = kv_cache<>{cache_options{.blocks = block_count{1}, .block_tokens = token_count{64}}};
  auto const plain_scope = plain.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("a"));
  auto plain_memory = llama2::paged_memory{file.shape(), block_count{1}, token_count{64}};
  auto plain_attention = llama2::float_attention{file.shape(), plain_memory};
  auto plain_network = network_type{file, plain_attention};
  auto alone = generator<kv_cache<>, network_type, no_clock>{plain, plain_network};
  for (auto const& [id, start] : asked) {
    auto const& r = g.result(id);
    auto whole = start.prompt;
    for (std::size_t i = 0; i < r.state.output.size(); ++i) {
      auto const once = alone.submit({.scope = plain_scope,
                                      .state = {.prompt = whole, .stop = {.limit = token_count{1}}},
                                      .reuse = reuse_rule::none});
      auto const out = alone.step();
      auto const logits = std::vector<float>(out->front().logits.begin(), out->front().logits.end());
      RC_ASSERT(rows[id][i] == logits);
      static_cast<void>(alone.take(*once));
      whole.push_back(r.state.output[i]);
    }
    RC_ASSERT(rows[id].size() == r.state.output.size());
  }
}

} // namespace

TEST_CASE("generate: any schedule gives the tokens of a full recompute", "[generate]") {
  prop("any schedule, everything reserved", [] { any_schedule<default_policies>(); });
}
TEST_CASE("generate: any schedule with preemption gives the tokens of a full recompute", "[generate]") {
  prop("any schedule, preempted", [] { any_schedule<optimistic_policies>(); });
}
TEST_CASE("S4: random transformers through any schedule equal a full recompute bit by bit", "[generate]") {
  prop("any transformer", [] { any_transformer(); });
}
