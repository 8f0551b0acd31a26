// SPDX-License-Identifier: Apache-2.0

/// \file
/// A small trained model writes through the cache, one core: greedy, 64 outputs per prompt of about 16 tokens, the library's
/// CPU backend. The floor writes the same text without a cache: a forward pass of everything for each output, as one
/// step. Times are per output; the counts of both stand beside them, and are no times (S8, S42).
///
/// The checkpoint stories260K.bin is read from the folder in the environment variable QUIRE_SHARED_DATA, or from
/// ../shared/data beside the source; without it the same network runs with random weights.

#include "cache_fixture.hpp"
#include "support.hpp"

#include "generate/checkpoint.hpp"
#include "generate/cpu_attention.hpp"
#include "generate/network.hpp"
#include "generate/network_shape.hpp"
#include "generate/paged_memory.hpp"

#include <quire/attention/cpu_backend.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/generate/generator.hpp>
#include <quire/generate/no_clock.hpp>
#include <quire/generate/random_state.hpp>
#include <quire/model/work.hpp>

#include <algorithm> // std::equal
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace quire_bench;
using network_type = llama2::network<quire::cpu_backend>;

constexpr auto block_tokens = quire::token_count{16};
constexpr auto blocks = quire::block_count{128};
constexpr std::uint32_t outputs = 64;

auto stories_file() -> std::string {
  auto const* const folder = std::getenv("QUIRE_SHARED_DATA");
  return std::string{folder != nullptr ? folder : QUIRE_BENCH_DATA} + "/models/stories260K.bin";
}
auto stories() -> llama2::checkpoint {
  if (std::filesystem::exists(stories_file())) { return llama2::checkpoint::read(stories_file()); }
  auto const shape = llama2::network_shape{
      .dim = 64, .hidden = 172, .layers = 5, .heads = 8, .kv_heads = 4, .vocabulary = 512, .positions = 512};
  auto values = std::vector<float>(llama2::checkpoint::parts{shape, true}.size);
  auto random = quire::random_state{1};
  for (auto& v : values) { v = static_cast<float>(0.2 * random.uniform() - 0.1); }
  return {shape, true, std::move(values)};
}

/// A network with a cache of its own.
class teller {
public:
  using generator_type = quire::generator<quire::kv_cache<>, network_type, quire::no_clock>;

  explicit teller(llama2::checkpoint const& file)
      : cache_{quire::cache_options{.blocks = blocks, .block_tokens = block_tokens}},
        scope_{cache_.open_scope(some_identity(), some_domain())}, memory_{file.shape(), blocks, block_tokens},
        attention_{llama2::cpu_attention(file.shape(), memory_, blocks)}, network_{file, attention_},
        generator_{cache_, network_} {}
  teller(teller const&) = delete;

  auto submit(std::vector<quire::token_id> prompt, std::uint32_t count) -> quire::generation_id {
    auto const id =
        generator_.submit({.scope = scope_,
                           .state = {.prompt = std::move(prompt), .stop = {.limit = quire::token_count{count}}},
                           .reuse = quire::reuse_rule::none});
    expect(id.has_value(), "a prompt is refused");
    return *id;
  }
  /// Runs until everybody is over.
  auto run() -> void { expect(generator_.run().has_value(), "a step is refused"); }
  [[nodiscard]] auto generator() -> generator_type& { return generator_; }

private:
  quire::kv_cache<> cache_;
  quire::scope_number scope_;
  llama2::paged_memory memory_;
  quire::cpu_backend attention_;
  network_type network_;
  generator_type generator_;
};

/// Prompts of 12 to 17 tokens of the vocabulary, none an end token, no two alike.
auto prompts(std::size_t count) -> std::vector<std::vector<quire::token_id>> {
  auto out = std::vector<std::vector<quire::token_id>>(count);
  for (std::size_t i = 0; i < count; ++i) {
    out[i].push_back(1);
    for (std::size_t k = 0; k < 11 + i % 6; ++k) {
      out[i].push_back(static_cast<quire::token_id>(260 + (37 * k + 11 * i) % 240));
    }
  }
  return out;
}

auto generate(std::size_t batch) {
  return [=](benchmark::State& state) {
    auto const trained = std::filesystem::exists(stories_file());
    auto const file = stories();
    auto const asked = prompts(batch);
    auto cached = teller{file};
    auto plain = teller{file};
    auto texts = std::vector<std::vector<quire::token_id>>(batch); // outputs of the cached run
    auto const with_cache = [&] {
      auto ids = std::vector<quire::generation_id>{};
      for (auto const& prompt : asked) { ids.push_back(cached.submit(prompt, outputs)); }
      auto const time = nanoseconds([&] { cached.run(); });
      for (std::size_t i = 0; i < batch; ++i) { texts[i] = cached.generator().take(ids[i]).state.output; }
      return time;
    };
    auto const without = [&] {
      auto whole = asked;
      auto time = 0.0;
      for (std::uint32_t g = 0; g < outputs; ++g) {
        auto ids = std::vector<quire::generation_id>{};
        for (auto const& text : whole) { ids.push_back(plain.submit(text, 1)); }
        time += nanoseconds([&] { plain.run(); });
        for (std::size_t i = 0; i < batch; ++i) {
          whole[i].push_back(plain.generator().take(ids[i]).state.output.front());
        }
      }
      for (std::size_t i = 0; i < batch; ++i) {
        expect(std::equal(texts[i].begin(), texts[i].end(), whole[i].end() - outputs),
               "the two runs say different things");
      }
      return time;
    };
    auto const r = alternate(state, static_cast<double>(batch) * outputs, with_cache, without);
    report(state, r, "");
    auto const rounds = static_cast<double>(state.iterations());
    auto const done = cached.generator().computed();
    auto const again = plain.generator().computed();
    auto const per_round = [rounds](std::uint64_t count) { return static_cast<double>(count) / rounds; };
    state.counters["tokens_per_s"] = 1e9 / r.ns;
    state.counters["recompute_tokens_per_s"] = 1e9 / r.floor_ns;
    state.counters["positions"] = per_round(done.positions);
    state.counters["pairs"] = per_round(done.pairs);
    state.counters["recompute_positions"] = per_round(again.positions);
    state.counters["recompute_pairs"] = per_round(again.pairs);
    char text[200];
    std::snprintf(text, sizeof text, "%.0f tokens/s beside %.0f; counts: %.0f of %.0f positions, %.0f of %.0f pairs%s",
                  1e9 / r.ns, 1e9 / r.floor_ns, per_round(done.positions), per_round(again.positions),
                  per_round(done.pairs), per_round(again.pairs), trained ? "" : "; random weights");
    state.SetLabel(text);
  };
}

[[maybe_unused]] auto const registered =
    add("attention/generate_stories260K_1_prompt/cached_beside_recomputed", 8, generate(1)) &&
    add("attention/generate_stories260K_6_prompts/cached_beside_recomputed", 4, generate(6));

} // namespace
