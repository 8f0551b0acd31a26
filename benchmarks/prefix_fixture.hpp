// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A prefix index with its pool, driven the way the cache drives them, for benchmarks below `kv_cache`.

#include "support.hpp"

#include <quire/block/block_pool.hpp>
#include <quire/core/types.hpp>
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/prefix_pin.hpp>
#include <quire/prefix/run_tree.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace quire_bench {

/// [tokens] per block.
inline constexpr std::uint32_t block_tokens = 16;
/// [blocks] of the prompt that the goals speak of: 8192 tokens.
inline constexpr std::uint32_t prompt_blocks = 512;

/// In which order a fresh pool hands out its blocks.
enum class block_order : std::uint8_t { consecutive, scattered };

/// Index and pool.
template <class Index = quire::run_tree<>>
class prefix_fixture {
public:
  using event = quire::block_event;

  explicit prefix_fixture(std::uint32_t blocks, block_order order = block_order::consecutive)
      : index{quire::block_count{blocks}, quire::token_count{block_tokens}}, pool{quire::block_count{blocks}},
        root{index.open_root({})} {
    if (order == block_order::scattered) { scatter(); }
  }

  /// Makes the free blocks come in random order.
  auto scatter() -> void {
    std::vector<quire::block_id> all(pool.free_blocks().value());
    pool.try_allocate(all);
    std::mt19937_64 random{7};
    std::shuffle(all.begin(), all.end(), random);
    for (auto const block : all) { give_back(block); }
  }
  /// Blocks for \p out, evicting where none is free.
  auto allocate(std::span<quire::block_id> out) -> void {
    auto const free = std::min<std::size_t>(out.size(), pool.free_blocks().value());
    pool.try_allocate(out.first(free));
    if (free < out.size()) { evict(out.subspan(free)); }
  }
  /// The least recently used blocks, as the cache takes them: claimed by a plan, made final by its launch.
  auto evict(std::span<quire::block_id> out) -> void {
    index.reserve_claims(quire::block_count{static_cast<std::uint32_t>(out.size())});
    expect(index.claim(out).value() == out.size(), "nothing left to evict");
    for (auto const block : out) { pool.apply(block, event::claim); }
    index.confirm();
    for (auto const block : out) { pool.reuse(block); }
  }
  /// Returns a block that only the caller holds.
  auto give_back(quire::block_id block) -> void {
    expect(pool.release(block), "a block is held by others");
    pool.retire_and_reclaim(block);
  }
  /// Turns every idle cached block into a free one.
  auto flush() -> void {
    std::vector<quire::block_id> all(index.evictable().value());
    evict(all);
    for (auto i = all.size(); i-- > 0;) { give_back(all[i]); }
  }
  /// Copies the tokens of full blocks to where they are compared.
  auto write(std::span<quire::token_id const> tokens, std::span<quire::block_id const> blocks) -> void {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      auto const from = tokens.subspan(i * block_tokens, block_tokens);
      std::copy(from.begin(), from.end(), index.tokens(blocks[i]).begin());
    }
  }
  /// Makes blocks matchable. \pre their tokens are written and they are new to the index
  auto publish(quire::prefix_pin& pin, std::span<quire::block_id const> blocks) -> void {
    auto const done = index.publish(pin, blocks);
    expect(done.published.value() == blocks.size() && !done.duplicate, "a block exists already");
    for (auto const block : blocks) {
      pool.apply(block, event::commit);
      pool.apply(block, event::publish);
      static_cast<void>(pool.release(block));
    }
  }
  /// Attaches what is there of \p tokens and publishes the rest. \returns the pin of all of it
  auto admit(std::span<quire::token_id const> tokens) -> quire::prefix_pin {
    ids.resize(tokens.size() / block_tokens);
    auto const found = index.match(root, tokens, ids);
    auto pin = index.pin(found);
    auto const rest = std::span{ids}.subspan(found.blocks.value());
    if (rest.empty()) { return pin; }
    allocate(rest);
    write(tokens.subspan(std::size_t{found.blocks.value()} * block_tokens), rest);
    publish(pin, rest);
    return pin;
  }
  /// Attaches, publishes and lets go: the blocks are cached.
  auto cache(std::span<quire::token_id const> tokens) -> void { index.release(admit(tokens)); }

  Index index;
  quire::block_pool<> pool;
  quire::node_id root;
  std::vector<quire::block_id> ids; ///< Of the prompt admitted last.
};

} // namespace quire_bench
