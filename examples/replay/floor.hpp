// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a replay costs at least: making the tokens of every prompt, one comparison per block that hits, one copy and one
/// digest per block that does not. Blocks lie where the cache had put them, which an untimed replay writes down first.

#include "replay/engine.hpp"
#include "replay/future.hpp"
#include "replay/run_result.hpp"
#include "replay/tokens.hpp"
#include "replay/trace.hpp"

#include <quire/core/types.hpp>
#include <quire/identity/xxh3_128_digest.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility> // std::move
#include <vector>

namespace replay {

/// The floor of replaying one trace of whole blocks, one request at a time.
class replay_floor {
public:
  /// Notes what a cache with \p Eviction does with \p t. \pre \p t has no outputs
  template <class Eviction>
  [[nodiscard]] static auto of(trace const& t, future& f, run_options const& options) -> replay_floor {
    engine<Eviction> e{t, f, options};
    auto out = replay_floor{t, options};
    for (std::size_t i = 0; i < t.requests.size(); ++i) {
      auto s = e.admit(i);
      if (!s) { continue; }
      auto const hits = s->shared_blocks().value();
      e.prefill(*s);
      auto const full = t.requests[i].prompt / options.block_tokens;
      out.served_.push_back({i, out.blocks_.size(), hits, full});
      for (auto const block : s->blocks().first(full)) { out.blocks_.push_back(block.value()); }
      e.release(std::move(*s), i, 0, i + 1);
    }
    return out;
  }

  /// Does the work once. \returns [s] it took
  [[nodiscard]] auto measure() -> double {
    auto const bytes = options_.block_tokens * sizeof(quire::token_id);
    auto const digest = quire::xxh3_128_digest{};
    std::uint32_t longest = 0;
    for (auto const& s : served_) { longest = std::max(longest, trace_->requests[s.request].prompt); }
    auto prompt = std::vector<quire::token_id>(longest);
    auto store = std::vector<quire::token_id>(std::size_t{options_.pool()} * options_.block_tokens);
    auto digests = std::vector<quire::xxh3_128_digest::digest_type>(options_.pool());
    auto equal = true;
    auto const start = std::chrono::steady_clock::now();
    for (auto const& s : served_) {
      write_prompt(*trace_, trace_->requests[s.request], prompt);
      auto const* tokens = prompt.data();
      auto const* block = blocks_.data() + s.first;
      auto last = quire::xxh3_128_digest::digest_type{};
      for (std::uint32_t j = 0; j < s.full; ++j, tokens += options_.block_tokens) {
        auto* const stored = store.data() + std::size_t{block[j]} * options_.block_tokens;
        if (j < s.hits) {
          equal = std::memcmp(stored, tokens, bytes) == 0 && equal;
          last = digests[block[j]];
        } else {
          std::memcpy(stored, tokens, bytes);
          last = digests[block[j]] = digest.chain(last, {stored, options_.block_tokens});
        }
      }
    }
    auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!equal) { throw std::logic_error{"replay: a hit that the cache reported was none"}; }
    return seconds;
  }

private:
  struct served {
    std::size_t request;
    std::size_t first; // in blocks_
    std::uint32_t hits;
    std::uint32_t full;
  };

  replay_floor(trace const& t, run_options const& options) : trace_{&t}, options_{options} {}

  trace const* trace_;
  run_options options_;
  std::vector<served> served_;
  std::vector<std::uint32_t> blocks_;
};

} // namespace replay
