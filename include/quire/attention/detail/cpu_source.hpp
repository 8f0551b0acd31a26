// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A plane while attention reads it, and the tiles of consecutive positions in which it does.

#include <quire/attention/cpu_plane.hpp>
#include <quire/attention/detail/cpu_codec.hpp>
#include <quire/attention/detail/cpu_kernels.hpp>
#include <quire/attention/detail/cpu_simd.hpp>
#include <quire/core/contract.hpp>
#include <quire/model/dtype.hpp>
#include <quire/view/batch_view.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

/// \cond INTERNAL
namespace quire::detail {

/// Keys of a tile.
inline constexpr std::size_t cpu_tile_keys = 96;

/// \p n rounded up to whole chunks.
[[nodiscard]] constexpr auto cpu_padded(std::size_t n) noexcept -> std::size_t {
  return (n + cpu_chunk - 1) / cpu_chunk * cpu_chunk;
}

/// Keys ahead of the one at work that are asked for.
inline constexpr std::size_t cpu_tile_ahead = 16;

/// Consecutive logical positions, with their physical places, and those of some that come after.
struct cpu_tile {
  std::uint32_t first = 0; ///< Position of the first key.
  std::size_t count = 0;
  std::size_t known = 0; ///< Positions whose places are known, `count` and more.
  std::array<std::uint32_t, cpu_tile_keys + cpu_tile_ahead> block;
  std::array<std::uint32_t, cpu_tile_keys + cpu_tile_ahead> token;

  /// Looks up positions of \p row from \p position on, of which \p wanted are left. \pre they have blocks of the pool
  void locate(batch_view const& view, std::int32_t row, std::uint32_t position, std::uint32_t wanted,
              std::uint32_t pool) {
    auto const i = static_cast<std::size_t>(row);
    auto const unit = static_cast<std::uint32_t>(view.block_tokens);
    auto const cells = view.table_row(row);
    first = position;
    count = wanted < cpu_tile_keys ? wanted : cpu_tile_keys;
    known = wanted < block.size() ? wanted : block.size();
    std::size_t column = (position - static_cast<std::uint32_t>(view.first_position[i])) / unit;
    auto offset = position % unit;
    for (std::size_t k = 0; k < known; ++column, offset = 0) {
      QUIRE_EXPECTS(column < cells.size());
      auto const cell = static_cast<std::uint32_t>(cells[column]);
      QUIRE_EXPECTS(cell < pool); // a visible position has a block
      for (; offset < unit && k < known; ++offset, ++k) {
        block[k] = cell;
        token[k] = offset;
      }
    }
  }
};

/// Places of the rows of a tile in one plane. \shape [known] bytes from the first row of the head
using cpu_places = std::array<std::uint64_t, cpu_tile_keys + cpu_tile_ahead>;

/// KV heads [first, last).
struct cpu_head_range {
  std::uint32_t first;
  std::uint32_t last;
};

/// Reads rows of one plane. Strides in bytes.
class cpu_source {
public:
  /// The first \p width elements of each row of \p plane.
  cpu_source(cpu_plane const& plane, std::uint32_t width)
      : plane_{&plane}, width_{width}, bytes_{plane.layout.element_bits / 8},
        base_{plane.tensor.data() + plane.layout.base * bytes_}, block_{plane.layout.block_stride * bytes_},
        token_{plane.layout.token_stride * bytes_}, head_{plane.layout.head_stride * bytes_},
        scales_{plane.scales_per_row()} {
    auto const& of = plane.layout;
    side_by_side_ = of.vector_stride == of.vector || of.vector == of.dim;
    direct_ = side_by_side_ && width % cpu_chunk == 0 && scales_ <= 1;
  }

  [[nodiscard]] auto type() const noexcept -> dtype { return plane_->format.type; }
  [[nodiscard]] auto width() const noexcept -> std::uint32_t { return width_; }
  [[nodiscard]] auto padded() const noexcept -> std::size_t { return cpu_padded(width_); }
  /// True if kernels may read rows as they are stored; otherwise they are converted first.
  [[nodiscard]] auto direct() const noexcept -> bool { return direct_; }
  /// Factor of everything, where it is one number.
  [[nodiscard]] auto fixed_scale() const noexcept -> float { return plane_->scale; }
  /// True if each row has a factor that a direct kernel does not know.
  [[nodiscard]] auto has_row_scales() const noexcept -> bool { return direct_ && scales_ == 1; }

  /// Where the rows of \p tile begin, in every head.
  void places(cpu_tile const& tile, cpu_places& out) const noexcept {
    for (std::size_t k = 0; k < tile.known; ++k) { out[k] = tile.block[k] * block_ + tile.token[k] * token_; }
    for (auto k = tile.known; k < out.size(); ++k) { out[k] = out[tile.known - 1]; } // only to be asked for, once more
  }
  /// Rows of one head as stored. \pre `direct()`
  [[nodiscard]] auto rows(cpu_places const& at, std::size_t count, std::uint32_t head) const noexcept
      -> cpu_stored_rows {
    return {base_ + head * head_, at.data(), count, width_ / cpu_chunk};
  }
  /// Asks for rows that are read soon: those of \p keys keys, the first one `cpu_tile_ahead` after key \p first, in all of
  /// \p heads. Of them turn number \p turn, of as many turns as heads, so that one can follow each head's arithmetic.
  ///
  /// Turns go in the order of memory, whatever the order of the arithmetic: then the processor's own prefetching goes
  /// along, instead of being led astray by jumps from token to token. Into the second level: the first one has too few
  /// slots for lines on their way. (Inlined by force: gcc drops calls of functions that do nothing but prefetch.)
  [[gnu::always_inline]] void ask_ahead(cpu_places const& at, std::size_t first, std::size_t keys, std::size_t turn,
                                        cpu_head_range heads) const noexcept {
    constexpr std::size_t line = 64;
    auto const count = std::size_t{heads.last - heads.first};
    auto const bytes = width_ * bytes_;
    auto const by_token = head_ < token_; // the heads of a token lie side by side
    auto head = by_token ? turn * keys % count : turn;
    auto const* place = at.data() + first + cpu_tile_ahead + (by_token ? turn * keys / count : 0);
    for (std::size_t i = 0; i < keys; ++i) {
      auto const* const from = base_ + (heads.first + head) * head_ + *place;
      for (std::size_t b = 0; b < bytes; b += line) { __builtin_prefetch(from + b, 0, 2); }
      if (by_token && ++head < count) { continue; }
      if (by_token) { head = 0; }
      ++place;
    }
  }
  /// Factors of the rows. \pre `has_row_scales()`
  void row_scales(cpu_tile const& tile, std::uint32_t head, float* out) const noexcept {
    for (std::size_t k = 0; k < tile.count; ++k) { out[k] = cpu_bits<float>(scale(tile, k, head)); }
  }
  /// Converts the rows of a tile, in plain order, all scales but the fixed one applied, zeros behind the width.
  void convert(cpu_tile const& tile, cpu_places const& at, std::uint32_t head, cpu_rows out) const noexcept {
    with_cpu_codec(type(), [&]<class Codec>(Codec) {
      for (std::size_t k = 0; k < tile.count; ++k) {
        auto* const to = out.row(k);
        convert_row<Codec>(base_ + head * head_ + at[k], to);
        for (std::size_t d = width_; d < padded(); ++d) { to[d] = 0.0F; }
        if (scales_ > 0) {
          auto const group = plane_->layout.dim / scales_;
          for (std::uint32_t d = 0; d < width_; ++d) {
            to[d] *= cpu_bits<float>(scale(tile, k, head) + d / group * sizeof(float));
          }
        }
      }
    });
  }

private:
  template <class Codec>
  void convert_row(std::byte const* from, float* to) const noexcept {
    std::size_t d = 0;
    if (side_by_side_) {
      for (; d + cpu_lanes <= width_; d += cpu_lanes) { cpu_store(to + d, Codec::vector(from + d * Codec::bytes)); }
      for (; d < width_; ++d) { to[d] = Codec::load(from + d * Codec::bytes); }
      return;
    }
    auto const vector = std::size_t{plane_->layout.vector};
    auto const stride = plane_->layout.vector_stride;
    for (; d < width_; ++d) { to[d] = Codec::load(from + (d / vector * stride + d % vector) * Codec::bytes); }
  }
  /// The first scale of a row; the others follow: the scale plane has its scales side by side.
  [[nodiscard]] auto scale(cpu_tile const& tile, std::size_t k, std::uint32_t head) const noexcept -> std::byte const* {
    auto const& of = plane_->scale_layout;
    auto const index =
        of.base + tile.block[k] * of.block_stride + tile.token[k] * of.token_stride + head * of.head_stride;
    return plane_->scale_tensor.data() + index * sizeof(float);
  }

  cpu_plane const* plane_;
  std::uint32_t width_;
  std::size_t bytes_;
  std::byte const* base_;
  std::uint64_t block_;
  std::uint64_t token_;
  std::uint64_t head_;
  std::uint32_t scales_;
  bool side_by_side_ = false;
  bool direct_ = false;
};

} // namespace quire::detail
/// \endcond
