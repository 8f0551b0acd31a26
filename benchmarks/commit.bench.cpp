// SPDX-License-Identifier: Apache-2.0

/// \file
/// Committing a step that computed a new prompt of 512 full blocks: they are published, and their states change. Nobody
/// reads digests. The floor copies the same tokens and numbers into place and does nothing else.

#include "cache_fixture.hpp"
#include "support.hpp"

#include <quire/cache/kv_cache.hpp>
#include <quire/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace quire_bench;

constexpr std::uint32_t prompts = 100;
constexpr std::uint32_t pool_blocks = 65'536;
constexpr std::uint32_t prompt_blocks = 512;
constexpr std::uint32_t block_tokens = 16;
constexpr std::size_t prompt_tokens = std::size_t{prompt_blocks} * block_tokens;

using token_span = std::span<quire::token_id const>;

/// 100 prompts, new in every round.
class new_prompts {
public:
  auto renew() -> void { tokens_ = random_tokens(random_, prompts * prompt_tokens); }
  [[nodiscard]] auto at(std::uint32_t p) const -> token_span {
    return token_span{tokens_}.subspan(p * prompt_tokens, prompt_tokens);
  }
  /// [ns] that it takes to copy all tokens and the numbers of their blocks into place.
  [[nodiscard]] auto copy() -> double {
    auto time = 0.0;
    for (std::uint32_t p = 0; p < prompts; ++p) {
      time += nanoseconds([&] {
        for (std::uint32_t i = 0; i < prompt_blocks; ++i) {
          auto const from = at(p).subspan(std::size_t{i} * block_tokens, block_tokens);
          std::copy(from.begin(), from.end(), store_.begin() + std::ptrdiff_t{i} * block_tokens);
          numbers_[i] = p + i;
        }
        benchmark::ClobberMemory();
      });
    }
    return time;
  }

private:
  std::mt19937_64 random_{5};
  std::vector<quire::token_id> tokens_;
  std::vector<quire::token_id> store_ = std::vector<quire::token_id>(prompt_tokens);
  std::vector<std::uint32_t> numbers_ = std::vector<std::uint32_t>(prompt_blocks);
};

/// 1.2 × the copies + 6 ns: a goal that depends on the floor of the same run.
auto goal(result const& r) -> std::string {
  std::ostringstream text;
  text << "ns<=" << std::fixed << std::setprecision(1) << 1.2 * r.floor_ns + 6 << " = 1.2 copies + 6";
  return text.str();
}

/// Commit of a step that computed the whole prompt.
auto at_the_cache(benchmark::State& state) {
  cache_fixture<> fixture{{.blocks = quire::block_count{pool_blocks}}};
  new_prompts source;
  auto const work = [&] {
    source.renew();
    auto time = 0.0;
    for (std::uint32_t p = 0; p < prompts; ++p) {
      auto const sequence = fixture.admit(source.at(p), 1);
      auto const item = cache_fixture<>::step_item{sequence, source.at(p)};
      auto plan = fixture.cache.plan_step({&item, 1});
      plan->launch();
      time += nanoseconds([&] { keep(fixture.cache.commit(std::move(*plan)).has_value()); });
      expect(sequence.shared_blocks().value() == prompt_blocks, "not everything was published");
    }
    return time;
  };
  auto const r = alternate(state, prompts * prompt_blocks, work, [&] { return source.copy(); });
  report(state, r, goal(r));
}

[[maybe_unused]] auto const registered = add("publish/commit_of_a_prefill_step", 21, at_the_cache);

} // namespace
