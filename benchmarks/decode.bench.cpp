// SPDX-License-Identifier: Apache-2.0

/// \file
/// Decoding: 256 requests, 64 steps, one token each. Timed are plan, launch and commit with persistent table rows, blocks
/// allocated and published as they fill. The floor writes the same rows, slots, positions and tokens in a bare loop.
///
/// The step before the 64 is not among them: it writes the rows of requests that have just joined the batch, 128 blocks
/// each, which is part of their admission. It has a line of its own.
///
/// This file counts heap allocations for the whole program: decoding must make none.

#include "cache_fixture.hpp"
#include "support.hpp"

#include <quire/cache/kv_cache.hpp>
#include <quire/core/types.hpp>
#include <quire/model/retention.hpp>
#include <quire/view/csr.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

// Not inlined: where the compiler sees malloc on one side only it warns of a mismatched pair.
[[gnu::noinline]] auto operator new(std::size_t size) -> void* {
  ++quire_bench::allocations;
  quire_bench::allocated_bytes += size;
  if (auto* const p = std::malloc(size); p != nullptr) { return p; }
  throw std::bad_alloc{};
}
[[gnu::noinline]] auto operator new(std::size_t size, std::align_val_t alignment) -> void* {
  ++quire_bench::allocations;
  quire_bench::allocated_bytes += size;
  auto const line = static_cast<std::size_t>(alignment);
  if (auto* const p = std::aligned_alloc(line, (size + line - 1) / line * line); p != nullptr) { return p; }
  throw std::bad_alloc{};
}
[[gnu::noinline]] auto operator delete(void* p) noexcept -> void { std::free(p); }
[[gnu::noinline]] auto operator delete(void* p, std::size_t) noexcept -> void { std::free(p); }
[[gnu::noinline]] auto operator delete(void* p, std::align_val_t) noexcept -> void { std::free(p); }
[[gnu::noinline]] auto operator delete(void* p, std::size_t, std::align_val_t) noexcept -> void { std::free(p); }

namespace {

using namespace quire_bench;

constexpr std::uint32_t requests = 256;
constexpr std::uint32_t steps = 64;
constexpr std::uint32_t pool_blocks = 65'536;
constexpr std::uint32_t block_tokens = 16;

/// Where the decoded blocks come from, and when they fill.
struct situation {
  std::uint32_t cached_run =
      0;                      ///< [blocks] of the prefixes that fill the pool beforehand; 0 = the pool has free blocks
  bool staggered = false;     ///< prompts of 16·128 … 16·128 + 15 tokens, so that some blocks fill in every step
  bool shared_prompt = false; ///< all requests have one prompt, and part at its end
  std::uint32_t window = 0;   ///< [tokens] a second layer group keeps a sliding window of that many; 0 = there is none
};

class decoding {
public:
  explicit decoding(situation what)
      : what_{what}, fixture_{options(what)}, tokens_(requests), made_(std::size_t{requests} * steps) {}

  /// Admits and prefills all requests. \returns [ns] of the first step, in which they join the batch
  auto start() -> double {
    empty_pool();
    if (what_.cached_run > 0) { fill_pool(); }
    auto const common = random_tokens(random_, prompt_blocks * block_tokens);
    for (std::uint32_t r = 0; r < requests; ++r) {
      auto const length = std::size_t{prompt_blocks} * block_tokens + (what_.staggered ? r % block_tokens : 0);
      auto prompt = random_tokens(random_, length);
      if (what_.shared_prompt) { std::copy(common.begin(), common.end(), prompt.begin()); }
      sequences_.push_back(fixture_.admit(prompt, 1 + steps));
      fixture_.prefill(sequences_.back(), prompt);
    }
    for (std::uint32_t r = 0; r < requests; ++r) { items_.emplace_back(sequences_[r], std::span{&tokens_[r], 1}); }
    for (auto& token : made_) { token = static_cast<quire::token_id>(random_() & 0x1'ffffU); }
    return nanoseconds([&] { fixture_.step(items_); });
  }
  /// All steps. \returns [ns];
  auto decode() -> double {
    auto const before = allocations;
    auto const time = nanoseconds([&] {
      for (std::uint32_t s = 0; s < steps; ++s) {
        std::copy_n(&made_[std::size_t{s} * requests], requests, tokens_.begin()); // the sampler wrote them
        fixture_.step(items_);
      }
    });
    allocated_ += allocations - before;
    return time;
  }
  /// All steps of the first \p few requests, planned one by one or at once. \returns [ns]
  auto decode_some(std::size_t few, bool one_by_one) -> double {
    auto const items = std::span{items_}.first(few);
    return nanoseconds([&] {
      for (std::uint32_t s = 0; s < steps; ++s) {
        std::copy_n(&made_[std::size_t{s} * requests], few, tokens_.begin());
        if (one_by_one) {
          fixture_.step_one_by_one(items);
        } else {
          fixture_.step(items);
        }
      }
    });
  }
  /// The same with the view exported to compressed rows after each launch. \returns [ns] of the exports
  auto export_rows() -> double {
    std::vector<std::int32_t> indptr(requests + 1);
    std::vector<std::int32_t> indices(std::size_t{requests} * (prompt_blocks + steps));
    std::vector<std::int32_t> last(requests);
    auto time = 0.0;
    for (std::uint32_t s = 0; s < steps; ++s) {
      auto plan = fixture_.cache.plan_step(items_);
      plan->launch();
      time += nanoseconds([&] {
        keep(quire::export_csr(plan->view(), {.indptr = indptr, .indices = indices, .last_block_length = last})
                 .indices.size());
      });
      expect(fixture_.cache.commit(std::move(*plan)).has_value(), "a commit fails");
    }
    return time;
  }
  auto stop() -> void {
    items_.clear();
    sequences_.clear();
  }
  /// What a backend reads of the same steps, written in a bare loop by somebody who knows it all. \returns [ns]
  auto floor() -> double {
    constexpr auto columns = std::size_t{prompt_blocks} + steps / block_tokens + 1;
    std::vector<std::int32_t> table(requests * columns);
    std::vector<std::int32_t> length(requests, static_cast<std::int32_t>(prompt_blocks * block_tokens));
    std::vector<std::int32_t> query_start(requests + 1);
    std::vector<std::int64_t> slot(requests);
    std::vector<std::int32_t> position(requests);
    std::vector<std::int32_t> at_hand(requests);
    std::vector<quire::token_id> store(std::size_t{requests} * block_tokens * (steps / block_tokens));
    std::int32_t next_block = 0;
    return nanoseconds([&] {
      for (std::uint32_t s = 0; s < steps; ++s) {
        for (std::uint32_t r = 0; r < requests; ++r) {
          auto const at = length[r]++;
          auto const offset = at % static_cast<std::int32_t>(block_tokens);
          if (offset == 0) {
            at_hand[r] = next_block++;
            table[r * columns + static_cast<std::uint32_t>(at) / block_tokens] = at_hand[r];
          }
          query_start[r + 1] = static_cast<std::int32_t>(r) + 1;
          position[r] = at;
          slot[r] = std::int64_t{at_hand[r]} * block_tokens + offset;
          store[static_cast<std::size_t>(slot[r])] = made_[std::size_t{s} * requests + r];
        }
        benchmark::ClobberMemory();
      }
      keep(table.back());
    });
  }
  [[nodiscard]] auto allocated() const -> std::uint64_t { return allocated_; }

private:
  static constexpr std::uint32_t prompt_blocks = 128;

  static auto options(situation what) -> quire::cache_options {
    auto out = quire::cache_options{.blocks = quire::block_count{pool_blocks}, .max_rows = quire::row_count{requests}};
    if (what.window > 0) {
      out.groups = {{},
                    {.keeps = quire::retention::sliding_window(quire::token_count{what.window}),
                     .blocks = quire::block_count{2 * pool_blocks},
                     .block_tokens = {}}};
    }
    return out;
  }

  /// Frees every block: requests that share nothing take them all and end. They are no longer than those that decode, so
  /// that the rows of the views stay as wide as decoding needs.
  auto empty_pool() -> void {
    std::vector<quire::token_id> const prompt(std::size_t{prompt_blocks} * block_tokens - 1);
    std::vector<cache_fixture<>::sequence> takers;
    for (std::uint32_t taken = 0; taken < pool_blocks; taken += prompt_blocks) {
      takers.push_back(fixture_.admit(prompt, 1, quire::reuse_rule::none));
      auto const item = cache_fixture<>::step_item{takers.back(), quire::token_count{prompt_blocks * block_tokens}};
      fixture_.step({&item, 1});
    }
  }
  /// Caches prefixes until no block is free.
  auto fill_pool() -> void {
    auto const free = [&] { return fixture_.cache.figures(quire::group_id{0}).free.value(); };
    while (free() > 0) {
      auto const run = std::min(what_.cached_run, free());
      auto const prompt = random_tokens(random_, std::size_t{run} * block_tokens);
      fixture_.prefill(fixture_.admit(prompt, 1), prompt); // its output is promised and never made
    }
  }

  situation what_;
  std::mt19937_64 random_{3};
  cache_fixture<> fixture_;
  std::vector<cache_fixture<>::sequence> sequences_;
  std::vector<cache_fixture<>::step_item> items_;
  std::vector<quire::token_id> tokens_; // of the step at hand
  std::vector<quire::token_id> made_;   // of all steps
  std::uint64_t allocated_ = 0;
};

auto decode(situation what, std::string goal) {
  return [=](benchmark::State& state) {
    decoding run{what};
    auto const work = [&] {
      keep(run.start());
      auto const time = run.decode();
      run.stop();
      return time;
    };
    auto const r = alternate(state, requests * steps, work, [&] { return run.floor(); });
    state.counters["allocations"] = static_cast<double>(run.allocated());
    report(state, r, goal);
  };
}

/// A full group and a window of 1024, beside the full group alone.
auto two_groups(benchmark::State& state) {
  auto const one = situation{};
  decoding both{situation{.window = 1024}};
  decoding alone{one};
  auto const time = [](decoding& run) {
    keep(run.start());
    auto const t = run.decode();
    run.stop();
    return t;
  };
  auto const r = alternate(state, requests * steps, [&] { return time(both); }, [&] { return time(alone); });
  state.counters["allocations"] = static_cast<double>(both.allocated());
  report(state, r, "ratio<=1.5");
}

/// Steps of 64 requests that are planned item by item, beside the same planned as a batch.
auto one_by_one(benchmark::State& state) {
  constexpr std::size_t few = 64;
  decoding batch{situation{}};
  decoding grown{situation{}};
  auto const time = [](decoding& run, bool items) {
    keep(run.start());
    auto const t = run.decode_some(few, items);
    run.stop();
    return t;
  };
  report(state,
         alternate(
             state, few * steps, [&] { return time(grown, true); }, [&] { return time(batch, false); }),
         "ratio<=1.1 of a batch");
}

/// The first step alone, per request, beside the copy of as many block numbers.
auto join(benchmark::State& state) {
  decoding run{situation{}};
  std::vector<std::int32_t> from(std::size_t{requests} * 129, 1);
  std::vector<std::int32_t> to(from.size());
  auto const work = [&] {
    auto const time = run.start();
    run.stop();
    return time;
  };
  auto const floor = [&] {
    return nanoseconds([&] {
      std::copy(from.begin(), from.end(), to.begin());
      benchmark::ClobberMemory();
    });
  };
  report(state, alternate(state, requests, work, floor), "");
}

/// The same as a row whose goal is on heap allocations: all situations, after the first round has warmed the buffers up.
auto heap(benchmark::State& state) {
  std::uint64_t allocated = 0;
  for (auto _ : state) {
    auto time = 0.0;
    for (auto const what : {situation{}, situation{.cached_run = 128}, situation{.cached_run = 1},
                            situation{.staggered = true, .shared_prompt = true}}) {
      decoding run{what};
      keep(run.start());
      time += run.decode();
      allocated += run.allocated();
      run.stop();
    }
    state.SetIterationTime(time * 1e-9);
  }
  state.counters["allocations"] = static_cast<double>(allocated);
  set_goal(state, "allocations<=0");
}

/// Export of all rows to compressed form, beside the copy of as many block numbers.
auto csr(benchmark::State& state) {
  decoding run{situation{}};
  std::vector<std::int32_t> from(std::size_t{requests} * 130, 1);
  std::vector<std::int32_t> to(from.size());
  auto const work = [&] {
    keep(run.start());
    auto const time = run.export_rows();
    run.stop();
    return time;
  };
  auto const floor = [&] {
    return nanoseconds([&] {
      for (std::uint32_t s = 0; s < steps; ++s) {
        std::copy(from.begin(), from.end(), to.begin());
        benchmark::ClobberMemory();
      }
    });
  };
  report(state, alternate(state, requests * steps, work, floor), "");
}

[[maybe_unused]] auto const registered =
    add("decode/free_pool", 25, decode({}, "ratio<=3.5")) &&
    add("decode/full_pool_runs_of_128", 15, decode({.cached_run = 128}, "ratio<=3.5")) &&
    add("decode/full_pool_one_block_leaves", 15, decode({.cached_run = 1}, "ratio<=3.5")) &&
    add("decode/staggered_shared_prompt", 25, decode({.staggered = true, .shared_prompt = true}, "ratio<=3.5")) &&
    add("decode/two_groups_beside_one", 15, two_groups) && add("decode/item_by_item_beside_a_batch", 25, one_by_one) &&
    add("decode/heap_allocations", 1, heap) && add("decode/joining_the_batch_per_request", 15, join) &&
    add("decode/csr_export_per_row", 15, csr);

} // namespace
