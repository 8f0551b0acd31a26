// SPDX-License-Identifier: Apache-2.0

/// \file
/// Prefix hits over several layer groups: admission of a fully cached prompt of 8192 tokens, of which a window
/// and a chunk hold their share, beside the same prompt in a cache with the full group alone.

#include "cache_fixture.hpp"
#include "support.hpp"

#include <quire/cache/cache_group.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/core/types.hpp>
#include <quire/model/retention.hpp>

#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

namespace {

using namespace quire_bench;

constexpr std::uint32_t prompt_tokens = 8192;

/// A cache in which one prompt lies.
class cached_prompt {
public:
  explicit cached_prompt(std::vector<quire::cache_group> groups)
      : fixture_{{.blocks = quire::block_count{4096}, .max_append = {}, .groups = std::move(groups)}},
        prompt_{random_tokens(random_, prompt_tokens + 1)} {
    fixture_.prefill(fixture_.admit(prompt_, 1), prompt_);
  }
  /// Admission: match, attach, promise. \returns [ns]
  auto hit() -> double {
    cache_fixture<>::sequence s;
    auto const time = nanoseconds([&] { s = fixture_.admit(prompt_, 1); });
    expect(s.cached().value() == prompt_tokens, "the prompt is not found");
    return time; // its release is not timed
  }

private:
  std::mt19937_64 random_{5};
  cache_fixture<> fixture_;
  std::vector<quire::token_id> prompt_;
};

auto hit(benchmark::State& state) {
  using quire::retention;
  using quire::token_count;
  cached_prompt three{{{},
                       {.keeps = retention::sliding_window(token_count{1024}), .blocks = {}, .block_tokens = {}},
                       {.keeps = retention::chunked(token_count{2048}), .blocks = {}, .block_tokens = {}}}};
  cached_prompt one{{}};
  report(state, alternate(state, 1, [&] { return three.hit(); }, [&] { return one.hit(); }), "ratio<=1.5");
}

/// One group, beside memcmp of the same tokens.
auto hit_beside_memcmp(benchmark::State& state) {
  cached_prompt one{{}};
  std::mt19937_64 random{6};
  auto const prompt = random_tokens(random, prompt_tokens);
  auto const copy = prompt;
  auto const compare = [&] {
    return nanoseconds([&] {
      keep(std::memcmp(prompt.data(), copy.data(), prompt_tokens * sizeof(quire::token_id)));
      benchmark::ClobberMemory();
    });
  };
  report(state, alternate(state, 1, [&] { return one.hit(); }, compare), "ratio<=1.5");
}

[[maybe_unused]] auto const registered = add("groups/hit_of_three_groups_beside_one", 200, hit) &&
                                         add("groups/hit_of_one_group_beside_memcmp", 400, hit_beside_memcmp);

} // namespace
