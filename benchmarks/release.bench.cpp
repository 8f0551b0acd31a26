// SPDX-License-Identifier: Apache-2.0

/// \file
/// Ending a request of 512 blocks. Published blocks stay cached: only the pin goes. Private ones return to the pool one by
/// one. The floor pushes as many numbers onto a stack.

#include "cache_fixture.hpp"
#include "support.hpp"

#include <quire/cache/kv_cache.hpp>
#include <quire/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace quire_bench;

constexpr std::uint32_t requests = 100;
constexpr std::uint32_t request_blocks = 512;
constexpr std::size_t request_tokens = std::size_t{request_blocks} * 16;

auto releasing(quire::reuse_rule reuse, std::string goal) {
  return [=](benchmark::State& state) {
    cache_fixture<> fixture{{.blocks = quire::block_count{65'536}}};
    std::mt19937_64 random{13};
    std::vector<std::uint32_t> stack(std::size_t{requests} * request_blocks);
    auto const work = [&] {
      auto const tokens = random_tokens(random, requests * request_tokens);
      std::vector<cache_fixture<>::sequence> sequences;
      for (std::uint32_t r = 0; r < requests; ++r) {
        auto const prompt = std::span{tokens}.subspan(r * request_tokens, request_tokens);
        sequences.push_back(fixture.admit(prompt, 1, reuse));
        fixture.prefill(sequences.back(), prompt);
        expect(sequences.back().shared_blocks().value() == (reuse == quire::reuse_rule::none ? 0 : request_blocks),
               "blocks are in the wrong state");
      }
      return nanoseconds([&] {
        for (auto& sequence : sequences) { fixture.cache.release(std::move(sequence)); }
      });
    };
    auto const floor = [&] {
      return nanoseconds([&] {
        std::uint32_t size = 0;
        for (auto& slot : stack) {
          slot = size++;
          benchmark::ClobberMemory();
        }
      });
    };
    report(state, alternate(state, requests * request_blocks, work, floor), goal);
  };
}

[[maybe_unused]] auto const registered =
    add("release/published_block", 31, releasing(quire::reuse_rule::read_and_write, "ns<=1")) &&
    add("release/private_block", 31, releasing(quire::reuse_rule::none, "ns<=2"));

} // namespace
