// SPDX-License-Identifier: Apache-2.0
#include <quire/quire.hpp>

#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace quire;

auto main() -> int {
  auto const sha = [](char c) { return content_digest::from_hex(std::string(64, c)).value(); }; // of the real files
  auto const identity = compute_identity{
      {weights_digest{sha('1')}, structure_digest{sha('2')}, tokenizer_digest{sha('3')}, prompt_template_digest::none(),
       adapter_list::none(), compute_precision{"bf16"}, cache_format::exact("bf16"),
       position_config{"rope base=500000"}, visibility_rule{"causal"}, external_conditions::none()}};
  auto cache = kv_cache<>{presets::llama3_8b(), {.bytes = 1_GiB}};
  auto const scope = cache.open_scope(identity, sharing_domain::public_grant(grant_id{"everybody"}));

  auto const step = [&](kv_cache<>::sequence const& s, std::span<token_id const> ids) {
    auto plan = cache.plan_step({{s, ids}}).value(); // reserves; dropping it undoes everything
    auto const actions = plan.launch();              // executor.run(actions): copies, in order
    auto const& view = plan.view();                  // backend.forward(view): slots to write, tables to read
    std::printf("compute %zu positions, copy %zu blocks\n", view.position.size(), actions.size());
    return cache.commit(std::move(plan)).has_value(); // full blocks can be found from now on
  };

  auto const prompt = std::vector<token_id>(100, 42);
  token_id const sampled[] = {7};
  auto anna = cache.admit({.scope = scope, .prompt = prompt, .max_output = token_count{32}}).value();
  auto done = step(anna, anna.remaining(prompt));
  auto ben = cache.admit({.scope = scope, .prompt = prompt, .max_output = token_count{32}}).value();
  done = done && step(ben, ben.remaining(prompt)); // 96 of 100 positions are there
  auto twin = cache.fork(ben).value();             // shares everything …
  done = done && step(twin, sampled);              // … and copies the half-filled block before it writes
  return done && cache.audit() ? 0 : 1;
}
