// SPDX-License-Identifier: Apache-2.0
// Keeping a few positions of a full-attention layer: what it costs in accuracy, and why it never meets an exact cache.
#include <quire/attention.hpp>
#include <quire/quire.hpp>

#include "heavy_hitters/heavy_hitters.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <utility> // std::move
#include <vector>

using namespace quire;
using heavy_hitters_example::heavy_hitters;

namespace {

// Keys and values of one head; some keys are much louder than others, as in trained models.
struct layer_data {
  static constexpr std::uint32_t width = 8;
  std::vector<double> key, value, query;

  explicit layer_data(std::uint32_t length) {
    auto state = std::uint64_t{1};
    auto const draw = [&] {
      state = state * 6364136223846793005U + 1442695040888963407U;
      return static_cast<double>(state >> 11U) * 0x1.0p-52 - 1.0;
    };
    for (std::uint32_t at = 0; at < length; ++at) {
      auto const loud = at % 17 == 3 ? 4.0 : 0.5;
      for (std::uint32_t d = 0; d < width; ++d) {
        key.push_back((d == 0 ? 1.0 : 0.3 * draw()) * loud);
        value.push_back(draw());
        query.push_back(d == 0 ? 1.0 : 0.3 * draw());
      }
    }
  }
};

// The identity of a cache that keeps its bytes in this format.
auto identity(cache_format format) -> compute_identity {
  auto const sha256 = [](char c) { return content_digest::from_hex(std::string(64, c)).value(); };
  return compute_identity{{.weights = weights_digest{sha256('1')},
                           .structure = structure_digest{sha256('2')},
                           .tokenizer = tokenizer_digest{sha256('3')},
                           .prompt_template = prompt_template_digest::none(),
                           .adapters = adapter_list::none(),
                           .precision = compute_precision{"f64"},
                           .format = std::move(format),
                           .positions = position_config{"none"},
                           .attention = visibility_rule{"causal"},
                           .conditions = external_conditions::none()}};
}

// Positions that a second request with the same prompt finds in another scope, and in the same one.
struct found {
  std::uint32_t elsewhere = 0;
  std::uint32_t same = 0;
};
auto hits(std::string const& mode) -> found {
  auto options = cache_options{};
  options.blocks = block_count{32};
  options.block_tokens = token_count{4};
  auto cache = kv_cache<>{options};
  auto const domain = sharing_domain::public_grant(grant_id{"everybody"});
  auto const exact = cache.open_scope(identity(cache_format::exact("f64")), domain);
  auto const lossy = cache.open_scope(identity(cache_format::approximate(mode)), domain);
  auto const prompt = std::vector<token_id>(17, 42);
  auto first = cache.admit({.scope = exact, .prompt = prompt, .max_output = token_count{1}}).value();
  kv_cache<>::step_item const items[] = {{first, prompt}};
  auto plan = cache.plan_step(items).value();
  static_cast<void>(plan.launch());
  static_cast<void>(cache.commit(std::move(plan)));
  auto const other = cache.admit({.scope = lossy, .prompt = prompt, .max_output = token_count{1}}).value();
  auto const again = cache.admit({.scope = exact, .prompt = prompt, .max_output = token_count{1}}).value();
  return {.elsewhere = other.cached().value(), .same = again.cached().value()};
}

} // namespace

auto main() -> int {
  constexpr std::uint32_t length = 200;
  auto const data = layer_data{length};
  auto const params = attention_params{.query_heads = 1, .kv_heads = 1, .key_width = 8, .value_width = 8, .scale = 0.5};
  auto policy = heavy_hitters{{.budget = token_count{40}, .recent = token_count{16}}};

  auto worst = 0.0;
  for (std::uint32_t at = 0; at < length; ++at) {
    policy.append(token_pos{at});
    auto const query = [&](tensor_place const& x) { return data.query[at * 8 + x.dim]; };
    // The layer that keeps everything, and the one that keeps some: the latter reads kept positions only.
    auto const step = [&](std::vector<std::uint32_t> const& positions) {
      auto const n = static_cast<std::uint32_t>(positions.size());
      auto const extent = attention_extent{
          .first_query = token_pos{n - 1}, .queries = token_count{1}, .keys = {token_pos{0}, token_pos{n}}};
      auto const key = [&](tensor_place const& x) { return data.key[positions[x.token] * 8 + x.dim]; };
      auto const value = [&](tensor_place const& x) { return data.value[positions[x.token] * 8 + x.dim]; };
      return std::pair{oracle_attention(params, extent, query, key, value),
                       oracle_weights(params, extent, {}, query, key)};
    };
    auto everything = std::vector<std::uint32_t>{};
    for (std::uint32_t p = 0; p <= at; ++p) { everything.push_back(p); }
    auto some = std::vector<std::uint32_t>{};
    for (auto const& one : policy.kept()) { some.push_back(one.position.value()); }
    auto const full = step(everything).first;
    auto const [kept, weights] = step(some);
    for (std::uint32_t d = 0; d < 8; ++d) { worst = std::fmax(worst, std::fabs(full.output[d] - kept.output[d])); }
    policy.observe(weights);
    static_cast<void>(policy.evict());
  }
  auto const found = hits(policy.mode_name());
  std::printf("mode \"%s\": %zu of %u positions kept, largest error %.3f\n", policy.mode_name().c_str(),
              policy.kept().size(), length, worst);
  std::printf("a prompt cached exactly: %u tokens found by an exact request, %u by one in this mode\n", found.same,
              found.elsewhere);
  return worst > 0.0 && found.elsewhere == 0 && found.same == 16 ? 0 : 1;
}
