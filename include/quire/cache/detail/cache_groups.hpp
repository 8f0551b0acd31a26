// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The part of a cache that concerns layer groups which do not keep everything.

#include <quire/cache/cache_options.hpp>
#include <quire/cache/detail/cache_core.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/types.hpp>
#include <quire/model/retention.hpp>
#include <quire/view/action.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric> // std::lcm
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace quire::detail {

/// \cond INTERNAL
template <class Policies>
auto cache_core<Policies>::add_groups(block_count lead) -> void {
  if (options_.groups.empty()) { // one, which keeps what the residency policy says
    auto keeps = retention::full();
    if constexpr (requires { Policies::residency::keeps; }) { keeps = Policies::residency::keeps; }
    options_.groups.push_back({.keeps = keeps, .blocks = {}, .block_tokens = {}});
  }
  for (std::size_t i = 0; i < options_.groups.size(); ++i) {
    auto spec = options_.groups[i];
    auto const id = group_id{static_cast<std::uint32_t>(i)};
    if (spec.block_tokens == token_count{}) { spec.block_tokens = options_.block_tokens; }
    if (spec.blocks == block_count{}) { spec.blocks = lead; }
    if (spec.keeps.keeps_all()) {
      if (spec.block_tokens != options_.block_tokens) {
        throw config_error{"kv_cache: group " + std::to_string(i) + " keeps everything in blocks of " +
                           std::to_string(spec.block_tokens.value()) + " tokens: use cache_options::block_tokens (" +
                           std::to_string(options_.block_tokens.value()) + ") for all such groups, they share a table"};
      }
      lead_groups_.push_back(id);
      window_of_.push_back(no_window);
      continue;
    }
    window_of_.push_back(static_cast<std::uint32_t>(windows_.size()));
    windows_.emplace_back(id, spec, lead, options_.block_tokens,
                          memory_.template pool<pool_type>(windows_.size() + 1, spec.blocks));
  }
  auto unit = std::uint64_t{options_.block_tokens.value()};
  for (auto const& window : windows_) {
    unit = std::lcm(unit, std::uint64_t{window.geometry().block_tokens()});
    if (unit > max_positions) {
      throw config_error{
          "kv_cache: blocks of all groups end together only beyond the longest sequence: choose block sizes with "
          "a smaller common multiple"};
    }
  }
  alignment_ = static_cast<std::uint32_t>(unit);
  group_columns_.resize(windows_.size());
  if (options_.max_context != token_count{}) {
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      auto const most = options_.max_context.value();
      auto const draft = 4 * windows_[g].geometry().block_tokens();
      group_columns_[g] = windows_[g].columns(most, windows_[g].budget(most, append_limit(), draft));
    }
  }
}

/// Notes the free blocks that running sequences will take, part by part: what is promised and not idle.
template <class Policies>
auto cache_core<Policies>::count_needs() -> void {
  if constexpr (shares_memory) {
    need_beside(0, promised_, evictable().value());
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      need_beside(g + 1, windows_[g].promised(), windows_[g].idle().value());
    }
  }
}
template <class Policies>
auto cache_core<Policies>::need_beside(std::size_t part, std::uint32_t promised, std::uint32_t idle) -> void {
  if constexpr (shares_memory) { memory_.need(part) = block_count{promised - std::min(promised, idle)}; }
}
/// [blocks] that \p part can have: \p own free ones, or as many as the needs of the others leave, and \p idle ones.
template <class Policies>
auto cache_core<Policies>::room(std::size_t part, block_count own, std::uint32_t idle) -> block_count {
  if constexpr (shares_memory) { own = memory_.beside(part); }
  return own + block_count{idle};
}
/// Frees idle blocks of the part that has most of them, so that whole pages can go to others. False if there are none.
template <class Policies>
auto cache_core<Policies>::evict_for_others() -> bool {
  if constexpr (shares_memory) {
    if (open_ != nullptr) { return false; } // its victims and these would mix
    std::size_t from = 0;
    auto most = evictable().value() * memory_.block_bytes(0);
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      auto const bytes = windows_[g].idle().value() * memory_.block_bytes(g + 1);
      if (bytes > most) {
        most = bytes;
        from = g + 1;
      }
    }
    if (most == 0) { return false; }
    constexpr std::uint32_t batch = 32;
    if (from > 0) {
      evicted(windows_[from - 1].id(), windows_[from - 1].evict(batch));
      return true;
    }
    std::array<block_id, batch> victims;
    index_.reserve_claims(block_count{batch});
    auto const n = index_.claim(std::span{victims}.first(std::min(batch, evictable().value())));
    index_.confirm();
    for (auto const block : std::span{victims}.first(n.value())) {
      unhang(block);
      pool_.apply(block, block_event_type::claim);
      pool_.apply(block, block_event_type::evict);
      pool_.reclaim(block);
    }
    for (auto const group : lead_groups_) { evicted(group, n); }
    return true;
  }
  return false;
}
/// Whether a step takes idle blocks before free ones, so that what is promised to others stays within reach.
/// \param lead [blocks] that the lead needs \param why tells if the blocks of all parts cannot be had together
template <class Policies>
auto cache_core<Policies>::idle_goes_first(record_type const& record, std::uint32_t q, std::uint32_t lead, errc& why)
    -> bool {
  if constexpr (shares_memory) {
    auto const& s = record.state;
    auto const each = [&](auto visit) { // visit(part, need, promised, idle)
      visit(std::size_t{0}, lead, promised_, evictable().value());
      for (std::size_t g = 0; g < windows_.size(); ++g) {
        auto const need = windows_[g].blocks_for(record.groups[g], s.committed, q, s.writer, group_skips(record, g));
        visit(g + 1, need, windows_[g].promised(), windows_[g].idle().value());
      }
    };
    each([&](std::size_t part, std::uint32_t need, std::uint32_t promised, std::uint32_t idle) {
      auto const others = promised - std::min(promised, need + idle);
      memory_.need(part) = block_count{others + need};
    });
    if (memory_.fits()) { return false; }
    each([&](std::size_t part, std::uint32_t need, std::uint32_t, std::uint32_t idle) {
      memory_.need(part) = block_count{need - std::min(need, idle)};
    });
    if (!memory_.fits()) { why = errc::no_blocks; }
    return true;
  }
  static_cast<void>(record), static_cast<void>(q), static_cast<void>(lead), static_cast<void>(why);
  return false;
}

template <class Policies>
auto cache_core<Policies>::usable(std::span<block_id const> lead, std::uint32_t prompt) const -> reuse {
  auto const found = static_cast<std::uint32_t>(lead.size()) * geometry_.block_tokens();
  auto const whole = longest_hit(lead, prompt, found);
  auto const lost =
      std::any_of(windows_.begin(), windows_.end(), [](auto const& window) { return window.has_sinks(); });
  if (options_.rebuild == token_count{} || !options_.skip_writes || lost) { return {whole, false}; }
  // Exact again where new positions begin; of a hit of the whole prompt the last position's output is one of them.
  auto const exact = exact_end(found, prompt);
  auto const back = exact - std::min(exact, options_.rebuild.value());
  auto const start = back - back % alignment_;
  return start > whole ? reuse{start, true} : reuse{whole, false};
}

template <class Policies>
auto cache_core<Policies>::longest_hit(std::span<block_id const> lead, std::uint32_t prompt, std::uint32_t hit) const
    -> std::uint32_t {
  for (auto again = hit > 0; std::exchange(again, false);) {
    for (auto const& window : windows_) {
      auto const whole = window.longest_hit(lead, prompt, hit);
      if (whole == hit) { continue; }
      hit = whole - geometry_.offset(whole);
      again = hit > 0;
    }
  }
  return hit;
}

/// Positions that the index had already, while windows had given them up, are computed again: their window blocks hang on
/// the same blocks of the index again. Not so if they were computed without what the window shows: then they are not exact.
template <class Policies>
auto cache_core<Policies>::hang_again(record_type& record, std::uint32_t before) -> void {
  auto const& s = record.state;
  if (record.rebuilds || !s.publishes) { return; }
  auto const end = geometry_.index(std::min({s.committed, s.known, s.stored}));
  for (auto u = geometry_.index(before); u < std::min(end, s.pinned); ++u) {
    if (pool_.state(s.table[u]) == pool_type::state_type::published) { hanger{this, &record}.published(u, s.table[u]); }
  }
}

template <class Policies>
auto cache_core<Policies>::needs_of_groups(record_type const& record, std::uint32_t q, errc& why) const
    -> std::uint32_t {
  auto const& s = record.state;
  std::uint32_t all = 0;
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    auto const& table = record.groups[g];
    auto const need = windows_[g].blocks_for(table, s.committed, q, s.writer, group_skips(record, g));
    if (!Policies::copy::allowed && windows_[g].must_copy(table, s.committed, s.writer, group_skips(record, g))) {
      why = errc::not_supported;
    } else if (need > windows_[g].available().value()) {
      why = errc::no_blocks;
    }
    all += need;
  }
  return all;
}

/// True if every group has room for the next position of a decoding sequence. \throws std::bad_alloc; nothing has changed then.
template <class Policies>
auto cache_core<Policies>::groups_have_next(record_type& record) -> bool {
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    if (!windows_[g].has_next(record.groups[g], record.state.committed)) { return false; }
    windows_[g].reserve_claims(1);
  }
  reserve_late_holds(static_cast<std::uint32_t>(windows_.size()));
  return true;
}

template <class Policies>
auto cache_core<Policies>::reserve_in_groups(slot_type& slot, record_type& record, std::uint32_t q, bool idle_first)
    -> void {
  auto const& s = record.state;
  for (std::size_t g = 0; g < windows_.size(); ++g) { // first what may throw
    auto const need = windows_[g].blocks_for(record.groups[g], s.committed, q, s.writer, group_skips(record, g));
    windows_[g].reserve_claims(need);
  }
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    auto& window = windows_[g];
    auto& table = record.groups[g];
    window.reserve(table, s.committed, q, s.writer, group_skips(record, g), idle_first);
    auto const at = window.geometry().index(s.committed);
    if (options_.scrub == scrub_rule::on_reuse) {
      if (table.copy_source) { slot.actions.push_back(action::scrub_block(window.id(), table.blocks[at])); }
      for (auto j = table.before; j < table.size(); ++j) {
        slot.actions.push_back(action::scrub_block(window.id(), table.blocks[j]));
      }
    }
    if (auto const offset = window.geometry().offset(s.committed); table.copy_source && offset > 0) {
      slot.actions.push_back(Policies::copy::copy(window.id(), table.copy_source, table.blocks[at], token_count{offset},
                                                  token_count{window.geometry().block_tokens()}));
    }
    slot.groups[g].rows.add(shown(table), s.committed, q, group_skips(record, g));
  }
}

template <class Policies>
auto cache_core<Policies>::groups_show(slot_type& slot, record_type const& record, std::size_t k) const noexcept
    -> bool {
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    auto const& table = record.groups[g];
    if (!slot.groups[g].rows.appender().shows(k, table.stamp, table.size() - table.base, table.gone)) { return false; }
  }
  return true;
}

template <class Policies>
auto cache_core<Policies>::give_up(record_type& record, retirement const& retire) -> void {
  auto const oldest = record.state.committed - std::min(record.rewind, record.state.committed);
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    windows_[g].give_up(record.groups[g], oldest, retire.of_group(g));
  }
}

template <class Policies>
auto cache_core<Policies>::resumable(record_type const& record, std::uint32_t target) const
    -> std::optional<std::uint32_t> {
  if (target > 0 && target < exact_from(record)) { target = exact_from(record); }
  if (target > record.state.committed) { return std::nullopt; }
  for (auto again = true; std::exchange(again, false);) {
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      auto const from = windows_[g].resumable(record.groups[g], target, record.state.committed);
      if (!from) { return std::nullopt; }
      again = again || from->value() != target;
      target = from->value();
    }
  }
  return target;
}

template <class Policies>
auto cache_core<Policies>::goes_on(record_type const& record, std::size_t g, std::uint32_t length) const -> bool {
  if (length > 0 && length < exact_from(record)) { return false; }
  auto const from = windows_[g].resumable(record.groups[g], length, record.state.committed);
  return from && from->value() == length;
}
/// \endcond

} // namespace quire::detail
