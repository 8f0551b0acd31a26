// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Which physical block holds which position (S14).

#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/sequence/block_geometry.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire {

/// A request's table T: logical block j lies in physical block T[j]. Logical positions never derive from block numbers.
class page_table {
public:
  /// Makes room for \p blocks entries, so that appending up to there allocates nothing. \throws std::bad_alloc
  auto reserve(std::uint32_t blocks) -> void { blocks_.reserve(blocks); }
  /// Entries without a new allocation.
  [[nodiscard]] auto capacity() const noexcept -> std::size_t { return blocks_.capacity(); }
  /// Logical blocks that are mapped.
  [[nodiscard]] auto size() const noexcept -> std::uint32_t { return static_cast<std::uint32_t>(blocks_.size()); }
  /// T[j]. \pre `j < size()`
  [[nodiscard]] auto operator[](std::uint32_t j) const noexcept -> block_id { return blocks_[j]; }
  /// Maps logical block \p j elsewhere. \pre `j < size()`
  auto remap(std::uint32_t j, block_id block) noexcept -> void { blocks_[j] = block; }
  /// Maps the next logical block. Allocates nothing below `capacity()`.
  auto push_back(block_id block) -> void { blocks_.push_back(block); }
  /// Unmaps all logical blocks from \p size on. \pre `size <= size()`
  auto shrink(std::uint32_t size) noexcept -> void { blocks_.resize(size); }
  /// Replaces the whole table.
  auto assign(std::span<block_id const> blocks) -> void { blocks_.assign(blocks.begin(), blocks.end()); }
  /// Becomes \p size unmapped entries, for a look-up to fill; returns them all.
  auto open(std::uint32_t size) -> std::span<block_id> {
    blocks_.assign(size, block_id::none()); // filled many at a time, which `resize` is not
    return blocks_;
  }
  /// All entries in logical order.
  [[nodiscard]] auto blocks() const noexcept -> std::span<block_id const> { return blocks_; }
  /// Where position \p t lies: its block and the slot block · p_b + offset.
  /// \pre the table covers `t`. \source S14
  [[nodiscard]] auto slot(block_geometry const& geometry, token_pos t) const -> std::int64_t {
    auto const j = geometry.index(t.value());
    QUIRE_EXPECTS(j < blocks_.size());
    return std::int64_t{blocks_[j].value()} * geometry.block_tokens() + geometry.offset(t.value());
  }

private:
  std::vector<block_id> blocks_;
};

} // namespace quire
