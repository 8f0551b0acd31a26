// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The executor for plain memory: every action moves real bytes.
///
/// A copy of n tokens touches exactly the bytes of the first n tokens, in every plane order; the rest of the target
/// stays as it was. Copying the whole block would be exact as well, since the length bounds every read, but then a
/// test that fills free blocks with NaN could not tell whether a backend reads beyond the length (cases 125, 126).
/// Only planes without a place per token (side state, scales per block, packed elements that share a byte) are
/// copied whole.

#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/view/action.hpp>
#include <quire/view/concepts.hpp>
#include <quire/view/fwd.hpp>
#include <quire/view/host_plane.hpp>
#include <quire/view/no_wait.hpp> // IWYU pragma: keep, the default of Wait

#include <cstddef>
#include <cstdint>
#include <cstring> // std::memcpy, std::memset
#include <span>
#include <string>
#include <utility>

namespace quire {

/// Performs actions on blocks in host memory. Owns no bytes: groups, planes and their memory must outlive it.
/// Store and load are refused: they need a tier.
/// \tparam Wait what to do at a `wait`; by default nothing, which is right when all work is done by the caller itself.
template <ticket_waiter Wait>
class host_executor {
public:
  /// Works on \p groups, indexed by `group_id`, and scrubs with \p scrub: 0, or `nan_poison` to make every read of a
  /// scrubbed slot show.
  /// \throws config_error if a plane is shorter than its blocks, or its blocks overlap
  explicit host_executor(std::span<host_group const> groups, std::byte scrub = std::byte{0}, Wait wait = {})
      : groups_{groups}, scrub_{scrub}, wait_{std::move(wait)} {
    for (auto const& group : groups) { check(group); }
  }

  /// Performs \p actions in order.
  /// \pre every group and block exists, source and target of a copy or move differ, `tokens <= p_b`
  /// \post (1) after a copy the first `tokens` tokens of all planes of the target equal the source's, and no other byte
  ///   has changed; (2) after a move the whole blocks are equal; (3) after a scrub every byte of the target's tokens is
  ///   the scrub byte; (4) on refusal nothing has been done, not even a wait
  /// \errors errc::not_supported if there is a store or a load
  [[nodiscard]] auto run(std::span<action const> actions) -> expected<void> {
    for (auto const& act : actions) {
      if (act.kind == action_kind::store || act.kind == action_kind::load) { return refuse(errc::not_supported); }
      check(act);
    }
    for (auto const& act : actions) {
      switch (act.kind) {
      case action_kind::wait: wait_(act.timeline, act.until); break;
      case action_kind::copy: copy(group(act), act.source.block, act.target.block, act.tokens); break;
      case action_kind::move: copy(group(act), act.source.block, act.target.block, group(act).block_tokens); break;
      case action_kind::scrub: fill(group(act), act.target.block); break;
      case action_kind::store:
      case action_kind::load: break; // refused above
      }
    }
    return {};
  }

private:
  static void check(host_group const& group) {
    if (group.blocks.value() == 0 || group.block_tokens.value() == 0) {
      throw config_error{"host group: blocks and block_tokens must be at least 1"};
    }
    for (auto const& plane : group.planes) {
      auto const extent = plane.block_extent(group.block_tokens);
      auto const stride = plane.block_stride.value();
      if (plane.segments == 0 || extent == 0) { throw config_error{"host plane: a block has no bytes"}; }
      if (group.blocks.value() > 1 && extent > stride) {
        throw config_error{"host plane: a block spans " + std::to_string(extent) + " bytes and the next begins after " +
                           std::to_string(stride) + ": check block_stride and block_tokens"};
      }
      auto const needed = (group.blocks.value() - std::uint64_t{1}) * stride + extent;
      if (plane.bytes.size() < needed) {
        throw config_error{"host plane: " + std::to_string(plane.bytes.size()) + " bytes given, " +
                           std::to_string(needed) + " needed"};
      }
    }
  }
  void check(action const& act) const {
    if (act.kind == action_kind::wait) { return; }
    QUIRE_EXPECTS(act.group.value() < groups_.size());
    auto const& where = group(act);
    QUIRE_EXPECTS(act.target.tier == device_tier && act.target.block.value() < where.blocks.value());
    if (act.kind == action_kind::scrub) { return; }
    QUIRE_EXPECTS(act.source.tier == device_tier && act.source.block.value() < where.blocks.value());
    QUIRE_EXPECTS(act.source != act.target);
    QUIRE_EXPECTS(act.tokens <= where.block_tokens);
  }
  [[nodiscard]] auto group(action const& act) const noexcept -> host_group const& { return groups_[act.group.value()]; }

  static void copy(host_group const& group, block_id source, block_id target, token_count tokens) noexcept {
    for (auto const& plane : group.planes) { // copy: every plane
      auto const stride = plane.block_stride.value();
      auto* const base = plane.bytes.data();
      plane.for_each_run(source, tokens, [&](std::uint64_t at, std::uint64_t bytes) noexcept {
        auto const inside = at - source.value() * stride;
        std::memcpy(base + target.value() * stride + inside, base + at, bytes);
      });
    }
  }
  void fill(host_group const& group, block_id target) const noexcept {
    for (auto const& plane : group.planes) {
      auto* const base = plane.bytes.data();
      plane.for_each_run(target, group.block_tokens, [&](std::uint64_t at, std::uint64_t bytes) noexcept {
        std::memset(base + at, std::to_integer<int>(scrub_), bytes);
      });
    }
  }

  std::span<host_group const> groups_;
  std::byte scrub_;
  [[no_unique_address]] Wait wait_;
};

/// Byte that reads as NaN in every floating-point format of a cache when it fills an element (fp64, fp32, bf16, fp16,
/// fp8 e4m3 and e5m2 alike), and as -1 in integer formats.
inline constexpr auto nan_poison = std::byte{0xFF};

static_assert(executor<host_executor<>>);

} // namespace quire
