// SPDX-License-Identifier: Apache-2.0
// A cache that another one is moved into while handles of it live is caught.
// aborts: kv_cache.hpp:[0-9]+: quire precondition violated: state_->core.registry.live\(\).empty\(\)
#include <quire/cache/kv_cache.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {
using namespace quire;
auto identity() -> compute_identity {
  auto const digest = [](char c) { return content_digest::from_hex(std::string(64, c)).value(); };
  return compute_identity{{.weights = weights_digest{digest('1')},
                           .structure = structure_digest{digest('2')},
                           .tokenizer = tokenizer_digest{digest('3')},
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
  auto options = cache_options{};
  options.blocks = block_count{8};
  auto cache = std::optional<kv_cache<>>{options};
  auto const scope = cache->open_scope(identity(), sharing_domain::public_grant(grant_id{"everybody"}));
  auto const prompt = std::vector<token_id>(20, 42);
  auto s = cache->admit({.scope = scope, .prompt = prompt, .max_output = token_count{4}}).value();
  *cache = kv_cache<>{options};
  return static_cast<bool>(s) ? 1 : 0;
}
