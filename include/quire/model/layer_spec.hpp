// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What one layer caches and sees.

#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/dtype.hpp>
#include <quire/model/element_format.hpp>
#include <quire/model/plane_spec.hpp>
#include <quire/model/retention.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quire {

/// What kind of cache a layer has.
enum class layer_kind : std::uint8_t {
  attention, ///< Keys and values per KV head (MHA, GQA, MQA).
  latent,    ///< One latent row per token for keys and values together (MLA).
  cross,     ///< Keys and values of a source, computed once per source (S5).
  state,     ///< Recurrent state; refused until it is built.
};

/// The name of the kind.
[[nodiscard]] constexpr auto name_of(layer_kind kind) noexcept -> std::string_view {
  switch (kind) {
  case layer_kind::attention: return "attention";
  case layer_kind::latent: return "latent";
  case layer_kind::cross: return "cross";
  case layer_kind::state: return "state";
  }
  return "unknown";
}

/// How query heads share KV heads (S10).
enum class head_sharing : std::uint8_t {
  mha, ///< Each query head has its own KV head.
  gqa, ///< Several query heads share one.
  mqa, ///< All share one.
};

/// One layer: heads, widths, formats, visibility, and whose cache it reads. A plain description; `model_spec`
/// validates it.
///
/// ```cpp
/// layer_spec{.query_heads = 32, .kv_heads = 8, .key_width = 128, .value_width = 128,
///            .rule = attention_rule::sliding_window(token_count{4096})}
/// layer_spec{.kind = layer_kind::latent, .query_heads = 128, .key_width = 128 + 64, .value_width = 128,
///            .latent_rank = 512, .rotary_width = 64}
/// ```
struct layer_spec {
  layer_kind kind = layer_kind::attention; ///< What kind of cache it has.
  std::uint32_t query_heads = 0;           ///< h_q.
  std::uint32_t kv_heads = 0;              ///< h_kv; 0 for latent layers, which have no head axis.
  std::uint32_t key_width = 0;             ///< [elements] d_k; for latent layers d_C + d_R, from which the scale comes.
  std::uint32_t value_width = 0;           ///< [elements] d_v; for latent layers of the expanded values.
  element_format key_format{};             ///< How keys, or the latent, are stored.
  element_format value_format{};           ///< How values are stored; unused by latent layers.
  std::uint32_t latent_rank = 0;           ///< [elements] r_c, latent layers only.
  std::uint32_t rotary_width = 0;          ///< [elements] d_R, the decoupled rotary key; latent layers only.
  dtype rotary_type = dtype::bf16;         ///< Type of the decoupled rotary key.
  std::vector<plane_spec> side{};    ///< Side caches, added explicitly: indexer keys, compressor state (case 100).
  attention_rule rule{};             ///< What a query may see.
  std::optional<retention> keeps{};  ///< Overrides what `rule` implies: a ring, or more than needed.
  std::optional<layer_id> borrows{}; ///< Reads this layer's cache and stores nothing (cases 143, 144).

  /// MHA, GQA or MQA. \source S10
  [[nodiscard]] constexpr auto sharing() const noexcept -> head_sharing {
    if (kv_heads == query_heads) { return head_sharing::mha; }
    return kv_heads == 1 ? head_sharing::mqa : head_sharing::gqa;
  }
  /// The KV head that query head \p query_head reads: ⌊i · h_kv / h_q⌋; 0 for latent layers.
  /// \pre `query_head < query_heads`. \source spec, g(i)
  [[nodiscard]] constexpr auto kv_head_of(std::uint32_t query_head) const -> std::uint32_t {
    QUIRE_EXPECTS(query_head < query_heads);
    auto const scaled = static_cast<std::uint64_t>(query_head) * kv_heads;
    return static_cast<std::uint32_t>(scaled / query_heads);
  }
  /// True if it stores keys and values of its own.
  [[nodiscard]] constexpr auto owns_cache() const noexcept -> bool { return !borrows.has_value(); }

  /// The planes it stores, or reads from its owner. \complexity O(planes) \source S10, S13; case 100
  [[nodiscard]] auto planes() const -> std::vector<plane_spec> {
    std::vector<plane_spec> out;
    if (kind == layer_kind::latent) {
      out.push_back({.kind = plane_kind::latent,
                     .heads = 1,
                     .width = latent_rank,
                     .format = key_format,
                     .tail_width = rotary_width,
                     .tail_type = rotary_type});
    } else {
      out.push_back({.kind = plane_kind::key, .heads = kv_heads, .width = key_width, .format = key_format});
      out.push_back({.kind = plane_kind::value, .heads = kv_heads, .width = value_width, .format = value_format});
    }
    out.insert(out.end(), side.begin(), side.end());
    return out;
  }
  /// What it retains: the override, or the least under which its rule is exact.
  /// \throws config_error for a bidirectional rule. \source S5, S27
  [[nodiscard]] constexpr auto retains() const -> retention { return keeps.value_or(retention::of(rule)); }

  /// Checks one layer alone. \param name how texts call it
  /// \throws config_error naming what was wrong and what would work. \source S5, S10, S13
  void validate(std::string const& name) const {
    if (kind == layer_kind::state) {
      throw config_error{name + ": recurrent state layers are not built yet: describe the attention layers only and "
                                "give the state's size as unmanaged_state"};
    }
    if (rule.pattern == attention_pattern::bidirectional) {
      throw config_error{name + ": a bidirectional layer has no append-only cache, each new token changes what all "
                                "earlier ones computed: run it without a cache, or use a causal rule"};
    }
    try {
      rule.validate();
    } catch (config_error const& error) { throw config_error{name + ": " + error.what()}; }
    if ((kind == layer_kind::cross) != (rule.pattern == attention_pattern::cross)) {
      throw config_error{name + ": cross layers and the cross rule go together: set both or neither"};
    }
    require(query_heads > 0, name, "query_heads is 0: use the number of query heads, at least 1");
    require(key_width > 0, name, "key_width is 0: use the width of one key head, e.g. 64 or 128");
    require(value_width > 0, name, "value_width is 0: use the width of one value head, e.g. 64 or 128");
    if (kind == layer_kind::latent) {
      require(kv_heads == 0, name, "a latent layer has no KV heads: leave kv_heads 0");
      require(latent_rank > 0, name, "latent_rank is 0: use the width of the latent, e.g. 512");
      require(rotary_width < key_width, name,
              "rotary_width must be less than key_width, which is the content width plus the rotary width");
    } else {
      require(latent_rank == 0 && rotary_width == 0, name,
              "latent_rank and rotary_width belong to latent layers: leave them 0, or use layer_kind::latent");
      require(kv_heads > 0, name, "kv_heads is 0: use a divisor of query_heads, 1 for MQA");
      if (query_heads % kv_heads != 0) {
        throw config_error{name + ": " + std::to_string(query_heads) + " query heads cannot share " +
                           std::to_string(kv_heads) + " KV heads evenly: use kv_heads out of " + divisors(query_heads)};
      }
    }
    for (auto const& plane : planes()) { validate_plane(plane, name); }
    if (keeps && kind == layer_kind::cross) {
      require(keeps->keeps_all(), name, "a cross cache is read as a whole: it can only be retained in full");
    }
  }

  /// Same description.
  friend auto operator==(layer_spec const&, layer_spec const&) -> bool = default;

private:
  static void require(bool holds, std::string const& name, char const* text) {
    if (!holds) { throw config_error{name + ": " + text}; }
  }
  static auto divisors(std::uint32_t n) -> std::string {
    std::string out;
    for (std::uint32_t d = 1; d <= n; ++d) {
      if (n % d == 0) { out += (out.empty() ? "" : ", ") + std::to_string(d); }
    }
    return out;
  }
  static void validate_plane(plane_spec const& plane, std::string const& name) {
    auto const where = name + ": the " + std::string{name_of(plane.kind)} + " plane";
    require(plane.heads > 0, where, "has 0 heads: use at least 1");
    require(plane.width > 0, where, "has width 0: use at least 1 element");
    require((plane.format.scales.granularity == scale_granularity::group) == (plane.format.scales.group > 0), where,
            "has a scale group size without group scales, or the reverse: use scale_spec::per_group(n)");
    require(plane.format.scales.placement == scale_placement::own_plane ||
                plane.format.scales.granularity == scale_granularity::group ||
                plane.format.scales.granularity == scale_granularity::token_head,
            where, "keeps scales in its rows that are not per row: use scale_placement::own_plane");
    require(bits_of(plane.format.scales.type) >= 8, where, "has scales below 8 bits: use an 8-bit type or wider");
  }
};

} // namespace quire
