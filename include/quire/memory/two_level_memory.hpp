// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Large pages that any group can get, cut into blocks of the group that has them.
///
/// ```text
///   arena    │ page 0        │ page 1        │ page 2        │ page 3        │
///            │ A: 0 1 2      │ free          │ B: 4 5        │ A: 9 10 11    │     block id = page · blocks per page + slot
///
///   group A  fuller: page 3 ── page 7      emptier: page 0                        partly taken pages: at least half, less
///   free     page 1 ── page 5 ── …                                                whole, for any group
/// ```
///
/// A block comes from the page that its owner opened last, else from the most recent of the fuller pages, else of the emptier
/// ones, else from a fresh page: so that pages with few blocks get none added, and empty. The last block that is given back
/// returns the page whole. A page sinks to the emptier ones when a block comes back, and does not rise before it is full. A fresh page is opened only when a group has no other free block, because then `fits` is exact: what was promised
/// to several groups together can be taken in any order.

#include <quire/core/checked.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/memory/concepts.hpp>
#include <quire/memory/detail/memory_sizes.hpp>
#include <quire/memory/memory_usage.hpp>
#include <quire/memory/owner_hint.hpp>
#include <quire/memory/page_plan.hpp>

#include <algorithm> // std::max, std::min
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace quire {

/// Pages of the least common multiple of the groups' blocks, cut per group. Memory moves between groups page by page; what is
/// lost is the free rest of partly taken pages. The right choice where block sizes differ and so do sequences.
class two_level_memory {
public:
  /// [bytes] default limit of a page.
  static constexpr byte_count default_page_limit = byte_count{64ULL << 20U};

  /// As many pages as fit \p budget. \param block_bytes one size per group \param page_limit [bytes] above which blocks are padded
  ///   instead, see `plan_pages`; ask `plan()` what was done
  /// \throws config_error as `plan_pages`, or unless at least 1 page fits and no group has more than 2^31 - 1 blocks
  two_level_memory(std::span<byte_count const> block_bytes, byte_count budget,
                   byte_count page_limit = default_page_limit)
      : plan_{plan_pages(block_bytes, page_limit)}, budget_{budget} {
    auto const pages = budget.value() / plan_.page.value();
    if (pages == 0) {
      throw config_error{"two_level_memory: " + std::to_string(budget.value()) + " bytes hold no page of " +
                         std::to_string(plan_.page.value()) + ": use a larger budget or a lower page limit"};
    }
    groups_.reserve(plan_.groups.size());
    for (auto const& cut : plan_.groups) {
      if (checked_mul(pages, cut.blocks, "blocks of a group") >
          0x7fff'ffffU) { // the views carry block numbers as int32
        throw config_error{"two_level_memory: more than 2^31 - 1 blocks: use larger blocks or several memories"};
      }
      widest_ = std::max(widest_, cut.blocks);
      groups_.emplace_back(cut.blocks);
    }
    pages_.resize(static_cast<std::size_t>(pages));
    owners_.resize(pages_.size());
    for (auto p = static_cast<std::uint32_t>(pages); p-- > 0;) { push_free(p); }
    if (widest_ > 64) { chain_.resize(checked_mul(pages, widest_, "slots of all pages")); }
    recent_.resize(std::bit_ceil(std::min<std::size_t>(pages_.size(), most_recent)), none);
  }

  /// The page, and how groups cut it.
  [[nodiscard]] auto plan() const noexcept -> page_plan const& { return plan_; }
  /// Pages that no group has.
  [[nodiscard]] auto free_pages() const noexcept -> std::uint32_t { return free_pages_; }
  /// Pages that \p group has. \pre the group exists
  [[nodiscard]] auto pages(group_id group) const noexcept -> std::uint32_t { return groups_[group.value()].pages; }

  /// Number of groups.
  [[nodiscard]] auto groups() const noexcept -> std::size_t { return groups_.size(); }
  /// [bytes] that were asked for.
  [[nodiscard]] auto budget() const noexcept -> byte_count { return budget_; }
  /// [bytes] from the first page to the end of the last.
  [[nodiscard]] auto arena() const noexcept -> byte_count { return byte_count{plan_.page.value() * pages_.size()}; }
  /// [bytes] from the start of the arena to block 0 of a group: 0.
  [[nodiscard]] auto base(group_id /*group*/) const noexcept -> byte_count { return {}; }
  /// [bytes] from one block of \p group to the next, also across pages. \pre the group exists
  [[nodiscard]] auto stride(group_id group) const noexcept -> byte_count { return plan_.groups[group.value()].stride; }
  /// Blocks of \p group lie in [0, capacity): as many as if it had every page. \pre the group exists
  [[nodiscard]] auto capacity(group_id group) const noexcept -> block_count {
    return block_count{static_cast<std::uint32_t>(pages_.size()) * groups_[group.value()].per_page};
  }
  /// Blocks that this group could take if no other group did. \pre the group exists
  [[nodiscard]] auto available(group_id group) const noexcept -> block_count {
    auto const& own = groups_[group.value()];
    return block_count{own.free_blocks() + free_pages_ * own.per_page};
  }
  /// True if the groups could take \p needs, one count per group, all together, in any order. It stays true while they
  /// take parts of \p needs and give back whatever. \pre one per group \complexity O(groups)
  [[nodiscard]] auto fits(std::span<block_count const> needs) const -> bool {
    QUIRE_EXPECTS(needs.size() == groups_.size());
    std::uint64_t pages = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      auto const own = groups_[g].free_blocks();
      if (needs[g].value() > own) { pages += ceil_div(needs[g].value() - own, groups_[g].per_page); }
    }
    return pages <= free_pages_;
  }

  /// Takes one block; `none()` if there is none. \pre the group exists \complexity O(1)
  [[nodiscard]] auto take(group_id group, owner_hint hint = owner_hint::none()) noexcept -> block_id {
    auto& own = groups_[group.value()];
    auto const p = page_for(own, group, hint);
    if (p == none) { return block_id::none(); }
    auto& page = pages_[p];
    auto const slot = pop_slot(own, page, p);
    ++own.taken;
    ++page.taken;
    if (page.taken == own.per_page) [[unlikely]] { fill(own, p); }
    return block_id{p * own.per_page + slot};
  }
  /// Fills \p out from the front as far as blocks go; returns how many. Blocks of one call share pages where they can.
  /// \pre the group exists \complexity O(out)
  auto take(group_id group, std::span<block_id> out, owner_hint hint = owner_hint::none()) noexcept -> block_count {
    auto& own = groups_[group.value()];
    std::size_t done = 0;
    while (done < out.size()) {
      auto const p = page_for(own, group, hint);
      if (p == none) { break; }
      auto& page = pages_[p];
      auto const n = std::min<std::size_t>(out.size() - done, own.per_page - page.taken);
      auto const first = p * own.per_page;
      for (std::size_t i = 0; i < n; ++i) { out[done++] = block_id{first + pop_slot(own, page, p)}; }
      own.taken += static_cast<std::uint32_t>(n);
      page.taken += static_cast<std::uint32_t>(n);
      if (page.taken == own.per_page) [[unlikely]] { fill(own, p); }
    }
    return block_count{static_cast<std::uint32_t>(done)};
  }
  /// Returns a block; with the last one of its page, the page. \pre this group took it and did not give it back
  /// \complexity O(1)
  auto give(group_id group, block_id block) noexcept -> void {
    auto& own = groups_[group.value()];
    auto const p = own.page_of(block.value());
    auto& page = pages_[p];
    auto const slot = block.value() - p * own.per_page;
    push_slot(own, page, p, slot);
    --own.taken;
    --page.taken;
    if (page.taken < page.least) [[unlikely]] { sink(own, p); }
  }
  /// Returns many blocks. \pre as for one \complexity O(blocks)
  auto give(group_id group, std::span<block_id const> blocks) noexcept -> void {
    for (auto const block : blocks) { give(group, block); }
  }

  /// Where the bytes of one group are. \pre the group exists \complexity O(1)
  [[nodiscard]] auto usage(group_id group) const -> memory_usage {
    QUIRE_EXPECTS(group.value() < groups_.size());
    auto const& own = groups_[group.value()];
    auto const& cut = plan_.groups[group.value()];
    return {.held = byte_count{own.pages * plan_.page.value()},
            .used = byte_count{own.taken * cut.block.value()},
            .padding = byte_count{own.taken * cut.padding().value()},
            .external = byte_count{own.free_blocks() * cut.stride.value()}};
  }
  /// Where the bytes of all groups are. \complexity O(groups)
  [[nodiscard]] auto usage() const -> memory_usage { return detail::usage_of_groups(*this); }

private:
  static constexpr std::uint32_t none = 0xffff'ffffU;
  static constexpr std::size_t most_recent = 4096; // a forgotten owner costs locality only

  // What taking and giving look at: half a cache line.
  struct alignas(32) page_record {
    std::uint32_t taken = 0;       // blocks
    std::uint32_t least = 0;       // with fewer blocks it belongs elsewhere
    bool shelved = false;          // partly taken, so that its group finds it
    std::uint32_t previous = none; // there
    std::uint32_t next = none;     // there, or among the free pages
    std::uint64_t slots = 0;       // narrow groups: bit i, slot i is free; wide ones: see below
  };
  struct page_owner {
    std::uint32_t group = none;
    std::uint32_t hint = none; // of who opened it
  };
  struct alignas(64) group_record {
    explicit group_record(std::uint32_t blocks) noexcept
        : per_page{blocks}, shift{31U + static_cast<std::uint32_t>(std::bit_width(blocks - 1))},
          multiplier{(std::uint64_t{1} << shift) / blocks + 1}, half{ceil_div(blocks, 2U)} {}
    [[nodiscard]] auto free_blocks() const noexcept -> std::uint32_t { return pages * per_page - taken; }
    /// block / per_page by multiplication, exact below 2^31. Granlund and Montgomery 1994, theorem 4.2.
    [[nodiscard]] auto page_of(std::uint32_t block) const noexcept -> std::uint32_t {
      return static_cast<std::uint32_t>((block * multiplier) >> shift);
    }
    std::uint32_t per_page;
    std::uint32_t shift;
    std::uint64_t multiplier;
    std::uint32_t pages = 0;
    std::uint32_t taken = 0;
    std::uint32_t half;           // blocks that make a page one of the fuller ones
    std::uint32_t fuller = none;  // most recent page of those with at least half their blocks taken
    std::uint32_t emptier = none; // of the others
  };

  [[nodiscard]] auto recent_of(group_id group, owner_hint hint) const noexcept -> std::size_t {
    return (hint.value() * 0x9e37'79b1U + group.value() * 0x85eb'ca6bU) & (recent_.size() - 1);
  }
  /// A page of the group with a free slot, or a fresh one; `none` if there is neither.
  [[nodiscard]] auto page_for(group_record& own, group_id group, owner_hint hint) noexcept -> std::uint32_t {
    auto* recent = static_cast<std::uint32_t*>(nullptr);
    if (hint) {
      recent = &recent_[recent_of(group, hint)];
      auto const p = *recent;
      if (p != none && owners_[p].group == group.value() && owners_[p].hint == hint.value() &&
          pages_[p].taken < own.per_page) {
        return p;
      }
    }
    auto p = own.fuller != none ? own.fuller : own.emptier;
    if (p == none) { p = fresh_page(own, group, hint); }
    if (recent != nullptr) { *recent = p; }
    return p;
  }
  [[nodiscard, gnu::noinline]] auto fresh_page(group_record& own, group_id group, owner_hint hint) noexcept
      -> std::uint32_t {
    if (free_pages_ == 0) { return none; }
    auto const p = first_free_;
    first_free_ = pages_[p].next;
    --free_pages_;
    ++own.pages;
    pages_[p] = page_record{.slots = all_slots(own)};
    owners_[p] = {.group = group.value(), .hint = hint.value()};
    put(own, p);
    return p;
  }
  // Free slots of a page. Up to 64 are bits of one word. Of a wider page, the low half of the word counts the slots that were
  // ever taken, and the high half starts a chain of those that were given back.
  [[nodiscard]] auto all_slots(group_record const& own) const noexcept -> std::uint64_t {
    if (own.per_page > 64) { return std::uint64_t{none} << 32U; }
    return ~std::uint64_t{0} >> (64 - own.per_page);
  }
  [[nodiscard]] auto pop_slot(group_record const& own, page_record& page, std::uint32_t p) noexcept -> std::uint32_t {
    auto const slots = page.slots;
    if (own.per_page <= 64) {
      page.slots = slots & (slots - 1);
      return static_cast<std::uint32_t>(std::countr_zero(slots));
    }
    auto const given_back = static_cast<std::uint32_t>(slots >> 32U);
    if (given_back == none) {
      ++page.slots;
      return static_cast<std::uint32_t>(slots);
    }
    page.slots = (slots & none) | (std::uint64_t{chain_[chain_of(p) + given_back]} << 32U);
    return given_back;
  }
  void push_slot(group_record const& own, page_record& page, std::uint32_t p, std::uint32_t slot) noexcept {
    if (own.per_page <= 64) {
      page.slots |= std::uint64_t{1} << slot;
      return;
    }
    chain_[chain_of(p) + slot] = static_cast<std::uint32_t>(page.slots >> 32U);
    page.slots = (page.slots & none) | (std::uint64_t{slot} << 32U);
  }
  [[nodiscard]] auto chain_of(std::uint32_t p) const noexcept -> std::size_t { return std::size_t{p} * widest_; }
  /// After a block was given back: puts the page on the shelf that it fits now, or back if it is empty.
  [[gnu::noinline]] void sink(group_record& own, std::uint32_t p) noexcept {
    auto& page = pages_[p];
    if (page.shelved) { unlink(own, p); }
    if (page.taken == 0) {
      --own.pages;
      push_free(p);
    } else {
      put(own, p);
    }
  }
  /// After the last slot was taken: on no shelf.
  [[gnu::noinline]] void fill(group_record& own, std::uint32_t p) noexcept {
    unlink(own, p);
    pages_[p].shelved = false;
    pages_[p].least = own.per_page;
  }
  void put(group_record& own, std::uint32_t p) noexcept {
    auto& page = pages_[p];
    auto const full = page.taken >= own.half;
    auto& head = full ? own.fuller : own.emptier;
    page.shelved = true;
    page.least = full ? own.half : 1;
    page.previous = none;
    page.next = head;
    if (head != none) { pages_[head].previous = p; }
    head = p;
  }
  void unlink(group_record& own, std::uint32_t p) noexcept {
    auto const& page = pages_[p];
    if (page.next != none) { pages_[page.next].previous = page.previous; }
    if (page.previous != none) {
      pages_[page.previous].next = page.next;
    } else {
      (own.fuller == p ? own.fuller : own.emptier) = page.next;
    }
  }
  void push_free(std::uint32_t p) noexcept {
    pages_[p] = page_record{.next = first_free_};
    owners_[p] = {};
    first_free_ = p;
    ++free_pages_;
  }

  page_plan plan_;
  byte_count budget_;
  std::uint32_t widest_ = 0; // slots of the group that cuts a page into most
  std::uint32_t first_free_ = none;
  std::uint32_t free_pages_ = 0;
  std::vector<group_record> groups_;
  std::vector<page_record> pages_;
  std::vector<page_owner> owners_;    // [page]
  std::vector<std::uint32_t> chain_;  // [page, widest] the slot that was given back before; wide pages only
  std::vector<std::uint32_t> recent_; // [hash of group and owner] the page it took from last
};
static_assert(group_memory<two_level_memory>);

} // namespace quire
