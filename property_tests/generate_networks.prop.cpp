// SPDX-License-Identifier: Apache-2.0
// Random small networks (1 to 3 layers; MHA, GQA, MQA or latent; both rotary layouts, ALiBi or neither; windows, chunks,
// sinks, soft-caps) through random schedules of append, fork, truncate, share, preempt and move: every row of logits is
// that of a full recompute without a cache, within the bound of the precision.
#include "generate/any_network.hpp"

#include <quire/attention/equivalence_checker.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/generate/generator.hpp>
#include <quire/generate/lookup_drafter.hpp>
#include <quire/generate/no_clock.hpp>

#include "isolation/identity_fixtures.hpp"
#include "support/rc_prop.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::any_network;
using quire_test::paged_network;
using quire_test::prop;

struct optimistic_policies : default_policies {
  using admission = optimistic;
};

/// In [0, below), whatever the size of the case.
auto one_of(unsigned below) -> unsigned {
  return static_cast<unsigned>(*rc::gen::resize(100, rc::gen::inRange(0, static_cast<int>(below))));
}

auto any_rule() -> attention_rule {
  auto out = attention_rule::causal();
  switch (one_of(5)) {
  case 0:
  case 1: break;
  case 2: out = attention_rule::sliding_window(token_count{1 + one_of(9)}); break;
  case 3:
    out = attention_rule::sink_window({.sinks = token_count{1 + one_of(3)}, .window = token_count{1 + one_of(7)}});
    break;
  default: out = attention_rule::chunked(token_count{1 + one_of(9)}); break;
  }
  if (one_of(5) == 0) { out.soft_cap = 3.0F; }
  return out;
}

auto any_sizes() -> quire_test::network_sizes {
  auto const kv = 1 + one_of(2);
  auto out = quire_test::network_sizes{.layers = 1 + one_of(3),
                                       .hidden = 4 + one_of(9),
                                       .query_heads = kv * (1 + one_of(3)), // MHA, GQA; MQA where kv is 1
                                       .kv_heads = kv,
                                       .key_width = 2 * (1 + one_of(4)),
                                       .value_width = 1 + one_of(8),
                                       .rank = one_of(3) == 0 ? 1 + one_of(6) : 0,
                                       .rules = {any_rule(), any_rule()},
                                       .mixed = one_of(2) == 0,
                                       .seed = one_of(100'000)};
  auto const layout = one_of(2) == 0 ? rope_layout::interleaved : rope_layout::half_split;
  switch (one_of(3)) {
  case 0: break; // no positions but those of the rule
  case 1:
    if (!out.latent()) { // slopes are per head, latents are shared
      for (auto& rule : out.rules) { rule.alibi = true; }
      break;
    }
    [[fallthrough]];
  default:
    out.rope = {.width =
                    out.latent() ? 2 * (1 + one_of(2)) : out.key_width - (one_of(3) == 0 && out.key_width > 2 ? 2 : 0),
                .layout = layout,
                .base = 30.0};
    break;
  }
  return out;
}

auto text_of(quire_test::network_sizes const& s) -> std::string {
  auto out = std::to_string(s.layers) + " layers, " + std::to_string(s.query_heads) + "/" + std::to_string(s.kv_heads) +
             " heads of " + std::to_string(s.key_width) + " and " + std::to_string(s.value_width) + ", hidden " +
             std::to_string(s.hidden) + ", rank " + std::to_string(s.rank) + ", rope " + std::to_string(s.rope.width) +
             " " + std::string{name_of(s.rope.layout)} + ", seed " + std::to_string(s.seed);
  out += s.mixed ? ", mixed" : "";
  for (auto const& rule : s.rules) {
    out += ", " + std::string{name_of(rule.pattern)} + " " + std::to_string(rule.extent.value()) + "+" +
           std::to_string(rule.sinks.value()) + (rule.alibi ? " alibi" : "") + (rule.soft_cap > 0 ? " capped" : "");
  }
  return out;
}

/// A prompt that begins like others: two symbols, mostly the first.
auto any_prompt() -> std::vector<token_id> {
  auto out = std::vector<token_id>(1 + one_of(16));
  for (auto& token : out) { token = one_of(6) == 0 ? 2 : 1; }
  return out;
}

/// \tparam Backend where attention is computed \param stored how keys and values are kept
template <class Backend>
void any_schedule(dtype stored) {
  auto const network = any_network{any_sizes()};
  auto const unit = token_count{1 + one_of(6)};
  auto const blocks = block_count{30 / unit.value() + 1 + one_of(20)};
  auto const how = generator_options{.chunk = token_count{one_of(6)},
                                     .max_members = 1 + one_of(6),
                                     .draft = token_count{one_of(4)},
                                     .kept_outputs = one_of(3)};
  RC_LOG() << text_of(network.sizes()) << "; " << blocks.value() << " blocks of " << unit.value() << ", chunk "
           << how.chunk.value() << ", members " << how.max_members << ", draft " << how.draft.value() << '\n';
  auto cache =
      kv_cache<optimistic_policies>{cache_options{.blocks = blocks,
                                                  .block_tokens = unit,
                                                  .rebuild = one_of(2) == 0 ? network.sizes().rebuild() : token_count{},
                                                  .groups = network.sizes().groups()}};
  auto const scope = cache.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("a"));
  auto model = paged_network<Backend>{network, blocks, unit, stored};
  auto g = generator<kv_cache<optimistic_policies>, paged_network<Backend>, no_clock, lookup_drafter>{
      cache, model, how, {}, lookup_drafter{token_count{1}}};
  auto rows = std::map<generation_id, std::vector<std::vector<float>>>{};
  auto ids = std::vector<generation_id>{};
  auto const any_id = [&] { return ids[one_of(static_cast<unsigned>(ids.size()))]; };
  for (auto left = 3 + one_of(6); left > 0 || !g.idle();) {
    if (left > 0 && one_of(2) == 0) {
      --left;
      auto const state = generation_state{.prompt = any_prompt(), .stop = {.limit = token_count{1 + one_of(10)}}};
      auto const samples = g.submit_samples({.scope = scope, .state = state}, 1 + one_of(2));
      for (std::size_t k = 0; samples && k < samples->size(); ++k) { ids.push_back((*samples)[k]); }
    }
    if (!ids.empty()) {
      switch (one_of(8)) {
      case 0: {
        auto const parent = any_id();
        if (auto const id = g.fork(parent, random_state{})) {
          ids.push_back(*id);
          rows[*id] = rows[parent];
        }
        break;
      }
      case 1:
        if (one_of(3) == 0) { g.cancel(any_id()); }
        break;
      case 2: {
        auto order = g.running();
        for (std::size_t k = 1; k < order.size(); ++k) {
          std::swap(order[k], order[one_of(static_cast<unsigned>(k + 1))]);
        }
        g.reorder(order);
        break;
      }
      case 3:
        if (auto const moves = cache.compact()) { RC_ASSERT(model.run(*moves).has_value()); }
        break;
      default: break;
      }
    }
    auto const out = g.step();
    RC_ASSERT(out.has_value());
    for (auto const& e : *out) { rows[e.of].emplace_back(e.logits.begin(), e.logits.end()); }
    for (auto const id : ids) { // a wrong guess that stays would stand beyond the text
      auto const& result = g.result(id);
      RC_ASSERT(result.covered.value() <= result.state.prompt.size() + result.state.output.size());
    }
  }
  for (auto const id : ids) {
    auto const& state = g.result(id).state;
    RC_ASSERT(rows[id].size() == state.output.size());
    if (state.output.empty()) { continue; }
    auto text = state.prompt;
    text.insert(text.end(), state.output.begin(), state.output.end() - 1);
    auto const exact = network.recompute(text);
    auto flat = std::vector<double>{};
    auto flat_stored = std::vector<double>{};
    for (auto const& row : exact) { flat.insert(flat.end(), row.begin(), row.end()); }
    for (auto const& row : network.recompute(text, stored)) {
      flat_stored.insert(flat_stored.end(), row.begin(), row.end());
    }
    auto const arithmetic = stored == dtype::f64 ? dtype::f64 : dtype::f32;
    auto bound = equivalence_bound::of(flat, flat_stored, network.sums(arithmetic, text.size()));
    for (auto const logit : flat) {
      bound.accumulation = std::max(bound.accumulation, std::fabs(logit) * 0x1p-23);
    } // rows are floats
    auto checker = equivalence_checker{bound};
    for (std::size_t i = 0; i < rows[id].size(); ++i) {
      checker.compare(exact[state.prompt.size() - 1 + i], std::vector<double>(rows[id][i].begin(), rows[id][i].end()));
    }
    auto const report = checker.report();
    RC_LOG() << "difference " << report.max_abs << " of " << bound.total() << '\n';
    RC_ASSERT(report.verdict == equivalence_verdict::numeric);
  }
  RC_ASSERT(cache.live_sequences() == sequence_count{0});
}

} // namespace

TEST_CASE("S4: any network through any schedule equals a full recompute, in double", "[generate]") {
  prop("oracle backend", [] { any_schedule<oracle_backend>(dtype::f64); });
}
TEST_CASE("S4: any network through any schedule equals a full recompute, in single precision and bf16", "[generate]") {
  prop("CPU backend", [] { any_schedule<cpu_backend>(dtype::f32); });
  prop("CPU backend, stored as bf16", [] { any_schedule<cpu_backend>(dtype::bf16); });
}
