// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The key of one block: the only way into tiers, events and files.
///
///     scope key --root--> parent of block 0
///                           |  tokens of block 0
///                           +--chain--> digest of block 0 = parent of block 1
///                                         |  tokens of block 1
///                                         +--chain--> digest of block 1 = ...
///
/// The digest of a block stands for its scope and for all tokens up to its end. It finds entries; it does not prove
/// them: an entry is used after its scope, depth, parent and tokens were compared.

#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/concepts.hpp>
#include <quire/identity/detail/canonical_encoder.hpp>
#include <quire/identity/digest_scheme.hpp>
#include <quire/identity/scope_key.hpp>

#include <algorithm> // std::equal
#include <cstddef>   // std::byte
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility> // std::move
#include <vector>

namespace quire {

/// Names one full block: scope, depth, digest of what lies before it, and its tokens.
///
/// A key is a view: it refers to the scope and the tokens, which must outlive it; `encode()` gives bytes to keep.
/// Nothing is defaulted, so there is no key made of tokens only, and none of another scheme (cases 4, 13, 14).
/// \tparam Policy how blocks are digested.
template <digest_policy Policy>
class block_key {
public:
  /// Digest of the policy.
  using digest_type = typename Policy::digest_type;

  /// Version of the encoding; the first field of every encoded key.
  static constexpr std::string_view encoding = "quire/block/1";

  /// Names a block, and digests it.
  /// \param policy computes the digest. \param scope under which conditions and for whom.
  /// \param depth [blocks] before this one. \param parent digest of the block before, `policy.root` of the scope at
  /// depth 0. \param tokens of the block, exactly `scope.block_tokens()` of them.
  /// \pre (1) `scope.scheme()` is that of \p policy. (2) \p tokens are one full block. (3) At depth 0, \p parent is the
  /// root of \p scope.
  /// \complexity O(block); at depth 0 also O(scope). Allocates nothing.
  /// \source S21; cases 13, 14, 118
  block_key(Policy const& policy, scope_key const& scope, block_depth depth, digest_type parent,
            std::span<token_id const> tokens)
      : scope_{&scope}, tokens_{tokens}, depth_{depth}, parent_{parent}, digest_{policy.chain(parent, tokens)} {
    QUIRE_EXPECTS(scope.scheme() == digest_scheme::of<Policy>());
    QUIRE_EXPECTS(tokens.size() == scope.block_tokens().value());
    QUIRE_EXPECTS(depth.value() > 0 || parent == policy.root(scope.bytes()));
  }
  block_key(Policy const&, scope_key const&&, block_depth, digest_type, std::span<token_id const>) = delete;

  /// The scope that the block was computed in.
  [[nodiscard]] auto scope() const noexcept -> scope_key const& { return *scope_; }
  /// Blocks before this one [blocks].
  [[nodiscard]] auto depth() const noexcept -> block_depth { return depth_; }
  /// Digest of everything before this block.
  [[nodiscard]] auto parent() const noexcept -> digest_type { return parent_; }
  /// Tokens of this block.
  [[nodiscard]] auto tokens() const noexcept -> std::span<token_id const> { return tokens_; }
  /// Digest of this block and everything before it: where to look, and what events carry.
  [[nodiscard]] auto digest() const noexcept -> digest_type { return digest_; }

  /// Everything that the key says, as bytes: what a tier or a file stores beside an entry and compares on a hit. They
  /// contain the domain's salt (see `scope_key`). Two keys have one encoding only if they are equal.
  /// \complexity O(scope + block), one allocation or a few.
  [[nodiscard]] auto encode() const -> std::vector<std::byte> {
    static_assert(std::has_unique_object_representations_v<digest_type>,
                  "encoded keys contain the bytes of digests: give the digest type no padding and no floating point");
    auto block = detail::canonical_encoder{};
    for (auto const token : tokens_) { block.number32(static_cast<std::uint32_t>(token)); }
    auto out = detail::canonical_encoder{};
    out.field(1, encoding)
        .field(2, scope_->bytes())
        .field(3, std::uint64_t{depth_.value()})
        .field(4, std::as_bytes(std::span{&parent_, 1}))
        .field(5, block.bytes());
    return std::move(out).take();
  }

  /// True if scope, depth, parent digest and tokens are equal, by value. That the tokens before the block are equal too
  /// is as sure as the digest: whoever has them compares them, block by block from the root.
  friend auto operator==(block_key const& a, block_key const& b) noexcept -> bool {
    return a.depth_ == b.depth_ && a.parent_ == b.parent_ &&
           std::equal(a.tokens_.begin(), a.tokens_.end(), b.tokens_.begin(), b.tokens_.end()) && *a.scope_ == *b.scope_;
  }

private:
  scope_key const* scope_;
  std::span<token_id const> tokens_;
  block_depth depth_;
  digest_type parent_;
  digest_type digest_;
};

} // namespace quire
