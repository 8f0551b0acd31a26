// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Scopes that were opened, and the root of each in the prefix index.
///
/// ```text
///   slots    place of the key, hash, number │ - │ …     open addressing, at most half of them used
///              │
///   opened     │   [number] ──▶ place of the key │ root │ its epoch
///              ▼                     ▼
///   chunks   length key │ length key │ …    end to end; they never move, so that no growth copies them
/// ```
///
/// A slot knows where its key lies: a look-up that misses every cache waits for memory twice, not three times.
/// A hash says where to look; the bytes alone say whether it is the same scope. Keys of which all hashes are equal make
/// opening a walk over them and nothing worse.

#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/detail/xxhash.hpp>
#include <quire/identity/scope_key.hpp>
#include <quire/prefix/node_id.hpp>

#include <algorithm> // std::clamp, std::max
#include <cstddef>
#include <cstdint>
#include <cstring> // std::memcmp, std::memcpy
#include <limits>
#include <memory> // std::unique_ptr
#include <span>
#include <type_traits> // std::is_nothrow_invocable_r_v
#include <vector>

namespace quire {

/// Hash of a scope key in this process: XXH3 of its bytes.
struct scope_hash {
  /// The hash of \p key. \complexity O(key)
  [[nodiscard]] auto operator()(std::span<std::byte const> key) const noexcept -> std::uint64_t {
    return detail::xxh3_64(key);
  }
};

/// Maps scope keys to the numbers 0, 1, 2, … by their bytes.
/// \tparam Hash says where a key is looked for. Any function of the bytes is correct, one that never differs as well.
template <class Hash>
class basic_scope_table {
  static_assert(std::is_nothrow_invocable_r_v<std::uint64_t, Hash const&, std::span<std::byte const>>,
                "a hash of scope keys takes std::span<std::byte const>, gives a number and never throws: mark it "
                "noexcept");

public:
  basic_scope_table() = default;
  basic_scope_table(basic_scope_table const&) = delete; // what is kept points into its chunks
  auto operator=(basic_scope_table const&) -> basic_scope_table& = delete;

  /// The number of \p key, new if it was never opened. \complexity O(key) on average
  /// \pre \p key has less than 4 GiB. \throws std::bad_alloc; then nothing was opened, and nothing is lost by trying again.
  [[nodiscard]] auto open(scope_key const& key) -> scope_number {
    auto const bytes = key.bytes();
    QUIRE_EXPECTS(bytes.size() <= std::numeric_limits<length>::max());
    auto const hash = static_cast<std::uint32_t>(hash_(bytes));
    if (!slots_.empty()) {
      auto const last = slots_.size() - 1;
      for (auto i = hash & last; slots_[i].number; i = (i + 1) & last) {
        if (slots_[i].hash == hash && slots_[i].key.equals(bytes)) { return slots_[i].number; }
      }
    }
    return add(hash, bytes);
  }

  /// Root of \p scope in \p epoch; a new epoch gets a new root, so that everything older is unreachable.
  /// \pre \p scope was opened here.
  template <class Index>
  [[nodiscard]] auto root(scope_number scope, std::uint32_t epoch, Index& index) -> node_id {
    QUIRE_EXPECTS(scope.value() < opened_.size());
    auto& entry = opened_[scope.value()];
    if (!entry.root || entry.epoch != epoch) {
      entry.root = index.open_root(entry.key.bytes());
      entry.epoch = epoch;
    }
    return entry.root;
  }

  /// Bytes that the table holds, those of the keys among them.
  [[nodiscard]] auto metadata_bytes() const noexcept -> byte_count {
    return byte_count{slots_.capacity() * sizeof(slot) + opened_.capacity() * sizeof(opened) +
                      chunks_.capacity() * sizeof(chunks_[0]) + chunk_bytes_};
  }

private:
  using length = std::uint32_t;

  /// A key in a chunk.
  class kept_key {
  public:
    kept_key() noexcept = default;
    /// \param at where the length and then the bytes are.
    explicit kept_key(std::byte const* at) noexcept : at_{at} {}
    [[nodiscard]] auto bytes() const noexcept -> std::span<std::byte const> {
      length size = 0;
      std::memcpy(&size, at_, sizeof(size));
      return {at_ + sizeof(size), size};
    }
    [[nodiscard]] auto equals(std::span<std::byte const> other) const noexcept -> bool {
      auto const own = bytes();
      return own.size() == other.size() && std::memcmp(own.data(), other.data(), own.size()) == 0;
    }

  private:
    std::byte const* at_ = nullptr;
  };
  struct slot {
    kept_key key;
    std::uint32_t hash = 0;
    scope_number number; ///< none(): the slot is free.
  };
  struct opened {
    kept_key key;
    node_id root;
    std::uint32_t epoch;
  };
  static constexpr std::size_t first_slots = 16;                     ///< A power of two.
  static constexpr std::size_t first_chunk = 1024;                   ///< [bytes]
  static constexpr std::size_t largest_chunk = std::size_t{1} << 18; ///< [bytes]

  static auto put(std::vector<slot>& slots, slot const& which) noexcept -> void {
    auto const last = slots.size() - 1;
    auto i = which.hash & last;
    while (slots[i].number) { i = (i + 1) & last; }
    slots[i] = which;
  }

  /// What may throw comes first, and each step of it leaves a table that says the same as before.
  auto add(std::uint32_t hash, std::span<std::byte const> bytes) -> scope_number {
    if (2 * (opened_.size() + 1) > slots_.size()) { grow(); }
    if (opened_.size() == opened_.capacity()) { opened_.reserve(std::max(first_slots / 2, 2 * opened_.size())); }
    auto const key = keep(bytes);

    auto const number = scope_number{static_cast<std::uint32_t>(opened_.size())};
    opened_.push_back({key, node_id::none(), 0});
    put(slots_, {key, hash, number});
    return number;
  }

  auto grow() -> void {
    auto larger = std::vector<slot>(std::max(first_slots, 2 * slots_.size()));
    for (auto const& each : slots_) {
      if (each.number) { put(larger, each); }
    }
    slots_.swap(larger);
  }

  /// A copy of \p bytes that stays where it is.
  auto keep(std::span<std::byte const> bytes) -> kept_key {
    auto const size = static_cast<length>(bytes.size());
    auto const needed = sizeof(size) + bytes.size();
    if (needed > free_.size()) {
      auto const chunk = std::max(needed, std::clamp(chunk_bytes_, first_chunk, largest_chunk));
      chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(chunk));
      free_ = {chunks_.back().get(), chunk};
      chunk_bytes_ += chunk;
    }
    auto* const at = free_.data();
    std::memcpy(at, &size, sizeof(size));
    std::memcpy(at + sizeof(size), bytes.data(), bytes.size());
    free_ = free_.subspan(needed);
    return kept_key{at};
  }

  std::vector<slot> slots_; ///< A power of two of them, or none.
  std::vector<opened> opened_;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::span<std::byte> free_;   ///< What is left of the last chunk.
  std::size_t chunk_bytes_ = 0; ///< Of all chunks.
  [[no_unique_address]] Hash hash_;
};

/// The table of a cache.
class scope_table : public basic_scope_table<scope_hash> {};

} // namespace quire
