// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Tokens and chained digests of every block of a pool, dense by block id, and the roots of the scopes.

#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/prefix/detail/aligned_vector.hpp>
#include <quire/prefix/node_id.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// Dense by block id: decode writes a token in place, publishing copies none, and evicting, splitting and merging move
/// none. A block of 16 tokens is one cache line.
template <class Digest>
class token_store {
public:
  using digest_type = typename Digest::digest_type;

  token_store(block_count blocks, token_count block_tokens, Digest digest)
      : policy_{digest}, block_tokens_{checked(block_tokens)}, tokens_(std::size_t{blocks.value()} * block_tokens_),
        digests_(blocks.value()) {}

  [[nodiscard]] auto policy() const noexcept -> Digest const& { return policy_; }
  [[nodiscard]] auto block_tokens() const noexcept -> std::uint32_t { return block_tokens_; }
  [[nodiscard]] auto all() const noexcept -> token_id const* { return tokens_.data(); }
  [[nodiscard]] auto of(std::uint32_t block) noexcept -> std::span<token_id> {
    return {&tokens_[std::size_t{block} * block_tokens_], block_tokens_};
  }
  [[nodiscard]] auto of(std::uint32_t block) const noexcept -> std::span<token_id const> {
    return {&tokens_[std::size_t{block} * block_tokens_], block_tokens_};
  }
  [[nodiscard]] auto at(std::int64_t slot) noexcept -> token_id& { return tokens_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] auto digest(std::uint32_t block) const noexcept -> digest_type const& { return digests_[block]; }

  /// Digest of \p block behind \p parent, kept.
  auto chain(digest_type const& parent, std::uint32_t block) noexcept -> digest_type {
    return digests_[block] = policy_.chain(parent, of(block));
  }
  /// Block \p from becomes block \p to.
  auto move(std::uint32_t from, std::uint32_t to) noexcept -> void {
    auto const source = of(from);
    std::copy(source.begin(), source.end(), of(to).begin());
    digests_[to] = digests_[from];
  }
  /// A new empty prefix. Roots are never reused: an old epoch can only become unreachable.
  auto open_root(std::span<std::byte const> scope) -> node_id {
    roots_.push_back(policy_.root(scope));
    return node_id{root_bit | static_cast<std::uint32_t>(roots_.size() - 1)};
  }
  [[nodiscard]] auto root_digest(node_id root) const noexcept -> digest_type const& {
    return roots_[root.value() & ~root_bit];
  }
  [[nodiscard]] auto digests() const noexcept -> std::size_t { return digests_.size(); }
  /// Where the first block of a child of \p parent is looked for.
  [[nodiscard]] auto locate(std::uint32_t parent, token_id const* block) const noexcept -> std::uint32_t {
    return policy_.locate(parent * 0x9E37'79B9'7F4A'7C15ULL, {block, block_tokens_});
  }

private:
  static auto checked(token_count block_tokens) -> std::uint32_t {
    if (block_tokens.value() == 0) { throw config_error{"block_tokens is 0: a block holds at least 1 token"}; }
    return block_tokens.value();
  }

  [[no_unique_address]] Digest policy_;
  std::uint32_t block_tokens_;
  aligned_vector<token_id> tokens_;
  std::vector<digest_type> digests_;
  std::vector<digest_type> roots_;
};
/// \endcond

} // namespace quire::detail
