// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A rotary rule with its parameters fixed: frequencies to turn by, bytes to be told apart by.
///
///     rope_config ──► resolve(length) ──► resolved_rope ──► rotate(head, position)      keys before they are cached
///     published        S32: the length       frozen      └─► canonical_bytes()           the identity's position_config
///                      that is promised
///
/// A key is turned once, for its *logical* position, and stored turned. Moving blocks never turns it again (S31).
/// Angles, sines and cosines are computed in double whatever the type of the elements: position · frequency in binary32
/// is off by whole radians at long contexts.

#include <quire/attention/detail/canonical_bytes.hpp>
#include <quire/attention/position_shift.hpp>
#include <quire/attention/rope_config.hpp>
#include <quire/attention/rope_layout.hpp>
#include <quire/attention/rope_scaling.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>

#include <algorithm> // std::clamp, std::max, std::min
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility> // std::move
#include <vector>

namespace quire {

/// Frequencies and magnitude of a rotary rule, for sequences of up to one length. Two of them are equal if and only if
/// their canonical bytes are.
class resolved_rope {
public:
  /// No rotation at all.
  resolved_rope() = default;
  /// Fixes the parameters of \p config for sequences of up to \p length positions. Only rules that depend on the length
  /// look at it; for them \p length is all that the request may reach, prompt and output.
  /// \throws config_error if \p config contradicts itself \source S32
  resolved_rope(rope_config config, token_count length) : config_{std::move(config)} {
    config_.validate();
    auto const original = config_.original_length;
    if (config_.scaling == rope_scaling::dynamic_ntk) { in_force_ = std::max(length, original); }
    if (config_.scaling == rope_scaling::long_factors && length > original) { in_force_ = original + token_count{1}; }
    resolve();
  }

  /// The parameters it was made of.
  [[nodiscard]] auto config() const noexcept -> rope_config const& { return config_; }
  /// \shape [width / 2] radians per position.
  [[nodiscard]] auto frequencies() const noexcept -> std::span<double const> { return frequencies_; }
  /// Factor of sine and cosine; scores of two rotated vectors carry its square.
  [[nodiscard]] auto magnitude() const noexcept -> double { return magnitude_; }

  /// Turns one head for its logical position, in place; elements behind the rotary width stay.
  /// \tparam Float type of the elements \param head \shape [d_k] \param position logical, never a block or row number
  /// \pre the head is at least as wide as the rule \source S14; RoFormer 3.2
  template <std::floating_point Float>
  void rotate(std::span<Float> head, token_pos position) const {
    turn(head, static_cast<double>(position.value()), magnitude_);
  }
  /// Turns one stored key from one logical position to another, in place: not what an exact cache does, since the
  /// values and all deeper layers still belong to the old position.
  /// \errors errc::not_supported in exact mode; nothing has changed then \pre as `rotate` \source S31; cases 71 to 73
  template <std::floating_point Float>
  [[nodiscard]] auto shift(std::span<Float> key, position_shift change, position_mode mode) const -> expected<void> {
    if (mode == position_mode::exact) { return refuse(errc::not_supported); }
    turn(key, static_cast<double>(change.to.value()) - static_cast<double>(change.from.value()), 1.0);
    return {};
  }

  /// What distinguishes this rule from all others that give other bytes in a cache: for `position_config`. It is made of
  /// the parameters, the length in force among them, and not of computed frequencies, whose last bit depends on the
  /// mathematics library of a machine.
  /// \returns "quire/rope/1", then width, layout and every other parameter, 8 bytes each, little endian \source S32, S33
  [[nodiscard]] auto canonical_bytes() const -> std::vector<std::byte> {
    auto out = detail::canonical_bytes{};
    out.text("quire/rope/1").number(config_.width);
    if (config_.width == 0) { return std::move(out).take(); }
    out.number(static_cast<std::uint64_t>(config_.layout)).real(config_.base);
    out.number(static_cast<std::uint64_t>(config_.scaling))
        .real(config_.factor)
        .number(config_.original_length.value());
    out.real(config_.beta_fast).real(config_.beta_slow).number(config_.round_ramp ? 1 : 0);
    out.real(config_.magnitude).real(config_.magnitude_all).real(config_.attention_factor.value_or(0.0));
    out.real(config_.low_frequency_factor).real(config_.high_frequency_factor);
    out.reals(config_.short_divisors).reals(config_.long_divisors).number(in_force_.value());
    return std::move(out).take();
  }
  /// Same rule with the same parameters in force.
  friend auto operator==(resolved_rope const& a, resolved_rope const& b) -> bool {
    return (a.config_.width == 0 && b.config_.width == 0) || (a.config_ == b.config_ && a.in_force_ == b.in_force_);
  }

private:
  template <class Float>
  void turn(std::span<Float> head, double distance, double factor) const {
    QUIRE_EXPECTS(head.size() >= config_.width);
    auto const half = std::size_t{config_.width} / 2;
    auto const split = config_.layout == rope_layout::half_split;
    for (std::size_t i = 0; i < half; ++i) {
      auto& x = head[split ? i : 2 * i];
      auto& y = head[split ? i + half : 2 * i + 1];
      auto const angle = distance * frequencies_[i];
      auto const cosine = std::cos(angle) * factor;
      auto const sine = std::sin(angle) * factor;
      auto const a = static_cast<double>(x);
      auto const b = static_cast<double>(y);
      x = static_cast<Float>(a * cosine - b * sine);
      y = static_cast<Float>(a * sine + b * cosine);
    }
  }

  void resolve() {
    auto const width = static_cast<double>(config_.width);
    auto const plain = [width](double base, std::size_t i) {
      return std::pow(base, -2.0 * static_cast<double>(i) / width);
    };
    frequencies_.resize(config_.width / 2);
    for (std::size_t i = 0; i < frequencies_.size(); ++i) {
      auto const kept = plain(config_.base, i);
      switch (config_.scaling) {
      case rope_scaling::none: frequencies_[i] = kept; break;
      case rope_scaling::linear: frequencies_[i] = kept / config_.factor; break;
      case rope_scaling::ntk:
        frequencies_[i] = plain(config_.base * std::pow(config_.factor, width / (width - 2.0)), i);
        break;
      case rope_scaling::dynamic_ntk: {
        auto const ratio =
            static_cast<double>(in_force_.value()) / static_cast<double>(config_.original_length.value());
        auto const stretch = config_.factor * ratio - (config_.factor - 1.0);
        frequencies_[i] = plain(config_.base * std::pow(stretch, width / (width - 2.0)), i);
        break;
      }
      case rope_scaling::yarn: frequencies_[i] = yarn(kept, i); break;
      case rope_scaling::llama3: frequencies_[i] = llama3(kept); break;
      case rope_scaling::long_factors:
        frequencies_[i] = kept / (in_force_ == token_count{} ? config_.short_divisors : config_.long_divisors)[i];
        break;
      }
    }
    magnitude_ = resolved_magnitude();
  }
  /// The pair, as a real number, that makes \p turns turns over the original context. YaRN, equation 17.
  [[nodiscard]] auto pair_of(double turns) const -> double {
    auto const length = static_cast<double>(config_.original_length.value());
    return static_cast<double>(config_.width) * std::log(length / (turns * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(config_.base));
  }
  [[nodiscard]] auto yarn(double kept, std::size_t i) const -> double {
    auto low = pair_of(config_.beta_fast);
    auto high = pair_of(config_.beta_slow);
    if (config_.round_ramp) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(config_.width) - 1.0);
    if (low == high) { high += 0.001; } // the reference code's guard: a step instead of a ramp
    auto const ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    return kept / config_.factor * ramp + kept * (1.0 - ramp);
  }
  [[nodiscard]] auto llama3(double kept) const -> double {
    auto const length = static_cast<double>(config_.original_length.value());
    auto const wavelength = 2.0 * std::numbers::pi / kept;
    if (wavelength > length / config_.low_frequency_factor) { return kept / config_.factor; }
    if (wavelength < length / config_.high_frequency_factor) { return kept; }
    auto const smooth = (length / wavelength - config_.low_frequency_factor) /
                        (config_.high_frequency_factor - config_.low_frequency_factor);
    return (1.0 - smooth) * kept / config_.factor + smooth * kept;
  }
  [[nodiscard]] auto resolved_magnitude() const -> double {
    if (config_.scaling == rope_scaling::yarn) {
      if (config_.attention_factor) { return *config_.attention_factor; }
      auto const scale = [this](double coefficient) {
        return config_.factor <= 1.0 ? 1.0 : 0.1 * coefficient * std::log(config_.factor) + 1.0;
      };
      auto const both = config_.magnitude > 0.0 && config_.magnitude_all > 0.0;
      return both ? scale(config_.magnitude) / scale(config_.magnitude_all) : scale(1.0);
    }
    if (config_.scaling == rope_scaling::long_factors) {
      if (config_.attention_factor) { return *config_.attention_factor; }
      if (config_.factor <= 1.0) { return 1.0; }
      return std::sqrt(1.0 + std::log(config_.factor) / std::log(static_cast<double>(config_.original_length.value())));
    }
    return 1.0;
  }

  rope_config config_ = {};
  token_count in_force_ = {}; // dynamic NTK: the length served; long factors: 0 = short list
  std::vector<double> frequencies_ = {};
  double magnitude_ = 1.0;
};

} // namespace quire
