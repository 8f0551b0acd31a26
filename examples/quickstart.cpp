// SPDX-License-Identifier: Apache-2.0
// Two requests that share a prompt, a decode step, a fork: the life of a KV cache on one page.
#include <quire/quire.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility> // std::move
#include <vector>

using namespace quire;

namespace {

// Everything that cached bytes depend on: what is left out would be shared by mistake, so nothing has a default.
auto identity() -> compute_identity {
  auto const sha256 = [](char c) { return content_digest::from_hex(std::string(64, c)).value(); }; // of the real files
  return compute_identity{{.weights = weights_digest{sha256('1')},
                           .structure = structure_digest{sha256('2')},
                           .tokenizer = tokenizer_digest{sha256('3')},
                           .prompt_template = prompt_template_digest::none(),
                           .adapters = adapter_list::none(),
                           .precision = compute_precision{"bf16"},
                           .format = cache_format::exact("bf16"),
                           .positions = position_config{"rope base=500000"},
                           .attention = visibility_rule{"causal"},
                           .conditions = external_conditions::none()}};
}

} // namespace

auto main() -> int {
  auto const model = presets::llama3_8b();
  auto cache = kv_cache<>{model, {.bytes = 64_MiB}}; // 32 blocks of 16 tokens
  auto const scope = cache.open_scope(identity(), sharing_domain::public_grant(grant_id{"everybody"}));

  // The bytes live outside. Here: one stretch of host memory, block after block.
  auto const block = kv_cache<>::block_bytes_of(model, cache.block_tokens());
  auto const blocks = cache.figures(group_id{0}).capacity;
  auto memory = std::vector<std::byte>(blocks.value() * block.value());
  host_plane const planes[] = {{.bytes = memory, .block_stride = block}};
  host_group const groups[] = {{.blocks = blocks, .block_tokens = cache.block_tokens(), .planes = planes}};
  auto executor = host_executor<>{groups};

  auto const step = [&](std::initializer_list<kv_cache<>::step_item> items) {
    auto plan = cache.plan_step(items).value(); // reserves; dropping it gives that back
    auto const copies = plan.launch();          // takes blocks; copies are to be made before the forward pass
    if (!executor.run(copies)) { std::abort(); }
    auto const& view = plan.view(); // backend.forward(view): slots to write, tables and lengths to read
    std::printf("  %d rows, %zu new positions, blocks to copy: %zu\n", view.rows, view.slot.size(), copies.size());
    if (!cache.commit(std::move(plan))) { std::abort(); } // lengths advance, full blocks can be found
  };

  auto const prompt = std::vector<token_id>(100, 42);
  token_id const y[] = {7}, z[] = {8}; // what a sampler chose

  auto anna = cache.admit({.scope = scope, .prompt = prompt, .max_output = token_count{32}}).value();
  step({{anna, prompt}});
  auto ben = cache.admit({.scope = scope, .prompt = prompt, .max_output = token_count{32}}).value();
  std::printf("ben finds %u of 100 positions\n", ben.cached().value());
  step({{anna, y}, {ben, ben.remaining(prompt)}}); // decode and prefill in one batch
  auto twin = cache.fork(ben).value();
  std::printf("a twin of ben shares %zu blocks\n", twin.blocks().size());
  step({{ben, y}, {twin, z}}); // the twin copies the half-filled block before it writes
  auto const healthy = cache.audit();
  std::printf("audit: %s\n", healthy ? "every invariant holds" : healthy.error().c_str());
  return healthy ? 0 : 1;
}
