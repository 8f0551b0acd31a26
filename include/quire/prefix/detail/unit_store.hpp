// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The units of an index: their numbers, tokens, labels and holders, and the roots of the scopes.
///
/// ```text
///   word[unit]    0          published: it stands in the index, and pins hold it
///                 h          private: h sequences hold it through their paths
///                 free | n   the number is free; n is the next free one, taken after it
/// ```

#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/prefix/detail/aligned_vector.hpp>
#include <quire/prefix/node_id.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// Dense by unit: decode writes a token where it will stay, publishing copies none, and evicting, splitting and merging
/// move none. A unit of 16 tokens is one cache line.
template <class Digest>
class unit_store {
public:
  using digest_type = typename Digest::digest_type;

  /// \throws config_error if either is 0, or the numbers do not fit
  unit_store(unit_count units, token_count unit_tokens, Digest digest)
      : policy_{digest}, unit_tokens_{checked(unit_tokens)},
        tokens_(std::size_t{checked(units).value()} * unit_tokens_), words_(units.value()), free_count_{units.value()} {
    for (std::uint32_t i = 0; i < free_count_; ++i) { words_[i] = free_bit | (i + 1); }
  }

  [[nodiscard]] auto policy() const noexcept -> Digest const& { return policy_; }
  [[nodiscard]] auto unit_tokens() const noexcept -> std::uint32_t { return unit_tokens_; }
  [[nodiscard]] auto units() const noexcept -> std::size_t { return words_.size(); }

  // --- numbers ------------------------------------------------------------------------------------------------------
  [[nodiscard]] auto free() const noexcept -> unit_count { return unit_count{free_count_}; }
  /// A private unit with one holder; none if every number is in use.
  [[nodiscard]] auto take() noexcept -> unit_id {
    if (free_count_ == 0) { return unit_id::none(); }
    --free_count_;
    auto const unit = free_;
    free_ = words_[unit] & ~free_bit;
    words_[unit] = 1;
    return unit_id{unit};
  }
  /// One more sequence holds a private \p unit.
  auto share(unit_id unit) -> void {
    QUIRE_EXPECTS(holders(unit) > 0);
    ++words_[unit.value()];
  }
  /// One sequence less holds a private \p unit; without holders its number is free.
  auto drop(unit_id unit) -> void {
    QUIRE_EXPECTS(holders(unit) > 0);
    if (--words_[unit.value()] == 0) { give(unit.value()); }
  }
  /// The same for several, each with another holder.
  auto drop(std::span<unit_id const> units) -> void {
    auto* const words = words_.data();
    auto first = free_; // in a register: a chain through memory takes three times as long
    std::uint32_t freed = 0;
    for (auto const unit : units) {
      QUIRE_EXPECTS(holders(unit) > 0);
      auto& word = words[unit.value()];
      if (--word > 0) { continue; }
      word = free_bit | first;
      first = unit.value();
      ++freed;
    }
    free_ = first;
    free_count_ += freed;
  }
  /// Sequences that hold \p unit through their paths; 0 if it is published or free.
  [[nodiscard]] auto holders(unit_id unit) const -> std::uint32_t {
    QUIRE_EXPECTS(unit.value() < words_.size());
    auto const word = words_[unit.value()];
    return word < free_bit ? word : 0;
  }
  [[nodiscard]] auto published(unit_id unit) const noexcept -> bool { return words_[unit.value()] == 0; }
  /// \p unit enters the index. \returns how many held it
  auto publish(std::uint32_t unit) noexcept -> std::uint32_t { return std::exchange(words_[unit], 0U); }
  /// Nobody uses \p unit any more: its number is free.
  auto give(std::uint32_t unit) noexcept -> void {
    words_[unit] = free_bit | free_;
    free_ = unit;
    ++free_count_;
  }
  /// The last \p n units before \p end leave the index, from the last one on; \p out tells which.
  auto give_back(std::uint32_t const* end, std::uint32_t n, unit_id* out) noexcept -> void {
    auto* const words = words_.data();
    auto first = free_; // in a register: a chain through memory takes three times as long
    for (std::uint32_t i = 0; i < n; ++i) {
      auto const unit = *--end;
      out[i] = unit_id{unit};
      words[unit] = free_bit | first;
      first = unit;
    }
    free_ = first;
    free_count_ += n;
  }

  // --- tokens and labels --------------------------------------------------------------------------------------------
  [[nodiscard]] auto all() const noexcept -> token_id const* { return tokens_.data(); }
  [[nodiscard]] auto of(std::uint32_t unit) noexcept -> std::span<token_id> {
    return {&tokens_[std::size_t{unit} * unit_tokens_], unit_tokens_};
  }
  [[nodiscard]] auto of(std::uint32_t unit) const noexcept -> std::span<token_id const> {
    return {&tokens_[std::size_t{unit} * unit_tokens_], unit_tokens_};
  }
  /// The token at `place` = unit · unit_tokens + offset.
  [[nodiscard]] auto at(std::int64_t place) noexcept -> token_id& { return tokens_[static_cast<std::size_t>(place)]; }
  /// What begins at \p unit: a child is found by parent, label and first tokens. 0 = as the parent, which all are until
  /// conditions that begin at a position are built.
  [[nodiscard]] auto label(std::uint32_t unit) const noexcept -> std::uint32_t {
    return labels_.empty() ? 0 : labels_[unit];
  }

  // --- digests ------------------------------------------------------------------------------------------------------
  /// Digest of \p unit behind \p parent.
  [[nodiscard]] auto chain(digest_type const& parent, std::uint32_t unit) const noexcept -> digest_type {
    return policy_.chain(parent, of(unit));
  }
  /// Where the first unit of a child of \p parent is looked for.
  [[nodiscard]] auto locate(std::uint32_t parent, std::uint32_t label, token_id const* first) const noexcept
      -> std::uint32_t {
    auto const seed = (parent ^ (std::uint64_t{label} << 32)) * 0x9E37'79B9'7F4A'7C15ULL;
    return policy_.locate(seed, {first, unit_tokens_});
  }

  // --- roots --------------------------------------------------------------------------------------------------------
  /// A new empty prefix. Roots are never reused: an old one can only become unreachable. \throws std::bad_alloc
  auto open_root(std::span<std::byte const> scope) -> node_id {
    roots_.push_back({policy_.root(scope), false});
    return node_id{root_bit | static_cast<std::uint32_t>(roots_.size() - 1)};
  }
  /// Nobody looks below \p root any more.
  auto close_root(node_id root) noexcept -> void { roots_[root.value() & ~root_bit].closed = true; }
  /// Nobody looks below any root that was opened until now.
  auto close_roots() noexcept -> void { closed_before_ = roots_.size(); }
  [[nodiscard]] auto closed(node_id root) const noexcept -> bool {
    auto const i = root.value() & ~root_bit;
    return i < closed_before_ || roots_[i].closed;
  }
  [[nodiscard]] auto root_digest(node_id root) const noexcept -> digest_type const& {
    return roots_[root.value() & ~root_bit].digest;
  }

  [[nodiscard]] auto metadata_bytes() const noexcept -> std::size_t {
    return (words_.size() + labels_.size()) * sizeof(std::uint32_t);
  }
  /// First broken invariant, empty if all hold.
  [[nodiscard]] auto audit() const -> char const* {
    auto at = free_;
    for (std::uint32_t i = 0; i < free_count_; ++i) {
      if (at >= words_.size() || words_[at] < free_bit) { return "prefix units: a free number is in use"; }
      at = words_[at] & ~free_bit;
    }
    std::size_t in_use = 0;
    for (auto const word : words_) { in_use += word < free_bit ? 1U : 0U; }
    return in_use + free_count_ == words_.size() ? "" : "prefix units: numbers are lost";
  }

private:
  static constexpr std::uint32_t free_bit = 0x8000'0000U;

  struct root_entry {
    digest_type digest;
    bool closed;
  };

  static auto checked(token_count unit_tokens) -> std::uint32_t {
    if (unit_tokens.value() == 0) { throw config_error{"block_tokens is 0: a block holds at least 1 token"}; }
    return unit_tokens.value();
  }
  static auto checked(unit_count units) -> unit_count {
    if (units.value() == 0) { throw config_error{"prefix index: 0 units, it needs at least 1"}; }
    if (units.value() >= root_bit - 1) {
      throw config_error{"prefix index: more than 2^31 - 2 units: use larger blocks"};
    }
    return units;
  }

  [[no_unique_address]] Digest policy_;
  std::uint32_t unit_tokens_;
  aligned_vector<token_id> tokens_;
  std::vector<std::uint32_t> words_;
  std::uint32_t free_ = 0; // the number that is taken next
  std::uint32_t free_count_;
  std::vector<std::uint32_t> labels_; // empty while all are 0
  std::vector<root_entry> roots_;
  std::size_t closed_before_ = 0;
};
/// \endcond

} // namespace quire::detail
