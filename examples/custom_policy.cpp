// SPDX-License-Identifier: Apache-2.0
// An engine's own eviction policy and its own observer, without touching the library: a burst of prompts that nobody
// sends twice must not flush the prompts that everybody shares.
#include <quire/quire.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric> // std::iota
#include <span>
#include <string>
#include <utility> // std::move
#include <vector>

namespace {

// Two segments: what one request used, and what two or more did; least recently used first in each. The counts of
// `lfu_eviction` with a ceiling of 2 are exactly that. A parent keeps at least its child's count, so the victim stays a
// leaf: the one rule an order of all idle nodes must not break (docs/concepts/eviction_policy.md).
struct segmented_eviction : quire::lfu_eviction {
  using quire::lfu_eviction::lfu_eviction;
  auto use(quire::node_id node) noexcept -> void {
    if (uses(node) < 2) { quire::lfu_eviction::use(node); }
  }
};
static_assert(quire::eviction_policy<segmented_eviction>);

// Looks at two of the six events; the others are ignored by the base.
struct hit_meter : quire::null_observer {
  std::uint64_t hit = 0;      // [tokens]
  std::uint64_t computed = 0; // [tokens]
  std::uint64_t evicted = 0;  // [blocks]
  auto on_commit(quire::commit_event const& e) noexcept -> void {
    hit += e.hit.value();
    computed += e.computed_prompt.value();
  }
  auto on_evict(quire::evict_event const& e) noexcept -> void { evicted += e.blocks.value(); }
};
static_assert(quire::observer<hit_meter>);

// The same cache twice, but for the order of eviction.
struct plain : quire::default_policies {
  using observer = hit_meter;
};
struct segmented : plain {
  using eviction = segmented_eviction;
};

auto identity() -> quire::compute_identity {
  auto const digest = quire::content_digest::from_hex(std::string(64, '1')).value();
  return quire::compute_identity{{.weights = quire::weights_digest{digest},
                                  .structure = quire::structure_digest{digest},
                                  .tokenizer = quire::tokenizer_digest{digest},
                                  .prompt_template = quire::prompt_template_digest::none(),
                                  .adapters = quire::adapter_list::none(),
                                  .precision = quire::compute_precision{"bf16"},
                                  .format = quire::cache_format::exact("bf16"),
                                  .positions = quire::position_config{"rope base=10000"},
                                  .attention = quire::visibility_rule{"causal"},
                                  .conditions = quire::external_conditions::none()}};
}

// Rounds of one shared prompt, used twice, and a burst of prompts used once.
template <class Policies>
auto run(char const* name) -> std::uint64_t {
  using cache_type = quire::kv_cache<Policies>;
  auto cache = cache_type{quire::cache_options{.blocks = quire::block_count{64}}};
  auto const scope = cache.open_scope(identity(), quire::sharing_domain::public_grant(quire::grant_id{"demo"}));

  auto const serve = [&](quire::token_id first_token) {
    auto prompt = std::vector<quire::token_id>(256); // 16 blocks
    std::iota(prompt.begin(), prompt.end(), first_token);
    auto s = cache.admit({.scope = scope, .prompt = prompt, .max_output = quire::token_count{1}}).value();
    auto const rest = std::span{prompt}.subspan(s.length().value());
    typename cache_type::step_item const items[] = {{s, rest}};
    auto plan = cache.plan_step(items).value();
    static_cast<void>(plan.launch()); // no bytes in this demo: nothing to copy
    if (!cache.commit(std::move(plan))) { std::abort(); }
  }; // the handle releases the request; its full blocks stay, as long as there is room

  auto burst = 1'000'000;
  for (auto round = 0; round < 20; ++round) {
    serve(0);
    serve(0);
    for (auto i = 0; i < 5; ++i) { serve(burst += 1000); }
  }
  auto const& seen = cache.observing();
  std::printf("%-10s %6llu tokens found, %6llu computed, %5llu blocks evicted\n", name,
              static_cast<unsigned long long>(seen.hit), static_cast<unsigned long long>(seen.computed),
              static_cast<unsigned long long>(seen.evicted));
  if (!cache.audit()) { std::abort(); }
  return seen.hit;
}

} // namespace

auto main() -> int {
  auto const lru = run<plain>("lru");
  auto const own = run<segmented>("segmented");
  return own > lru ? 0 : 1;
}
