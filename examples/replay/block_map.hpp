// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A map from 64-bit path hashes to numbers, for traces of many million blocks: open addressing, 12 bytes a slot.

#include <cstddef>
#include <cstdint>
#include <utility> // std::move, std::swap
#include <vector>

namespace replay {

/// Maps non-zero keys to numbers.
class block_map {
public:
  /// The number of \p key; \p missing on first sight, which is stored then.
  [[nodiscard]] auto operator()(std::uint64_t key, std::uint32_t missing) -> std::uint32_t& {
    if (2 * (size_ + 1) > keys_.size()) { grow(); }
    auto const i = place(key);
    if (keys_[i] == 0) {
      keys_[i] = key;
      values_[i] = missing;
      ++size_;
    }
    return values_[i];
  }
  /// Keys seen.
  [[nodiscard]] auto size() const noexcept -> std::size_t { return size_; }

private:
  [[nodiscard]] auto place(std::uint64_t key) const noexcept -> std::size_t {
    auto const mask = keys_.size() - 1;
    auto i = static_cast<std::size_t>(key) & mask;
    while (keys_[i] != 0 && keys_[i] != key) { i = (i + 1) & mask; }
    return i;
  }
  auto grow() -> void {
    auto keys = std::vector<std::uint64_t>(keys_.empty() ? 1024 : 2 * keys_.size());
    auto values = std::vector<std::uint32_t>(keys.size());
    keys_.swap(keys);
    values_.swap(values);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] == 0) { continue; }
      auto const to = place(keys[i]);
      keys_[to] = keys[i];
      values_[to] = values[i];
    }
  }

  std::vector<std::uint64_t> keys_; // 0 = unused
  std::vector<std::uint32_t> values_;
  std::size_t size_ = 0;
};

} // namespace replay
