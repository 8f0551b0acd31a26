// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The rotary position rule of a model, as it is published: parameters, not yet frequencies.

#include <quire/attention/rope_layout.hpp>
#include <quire/attention/rope_scaling.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quire {

/// Parameters of a rotary encoding. Those that the scaling does not use keep their default.
/// \source RoFormer 3.2; position interpolation (Chen et al.); NTK-aware scaling; YaRN 3; Llama 3.1 and Phi-3 model cards
struct rope_config {
  /// [elements] that turn, from the first of a head: even, at most the head's width; 0 = no rotation.
  std::uint32_t width = 0;
  /// Which elements turn together.
  rope_layout layout = rope_layout::half_split;
  /// Base of the frequencies.
  double base = 10000.0;
  /// How the frequencies are stretched.
  rope_scaling scaling = rope_scaling::none;
  /// Stretch; all scalings but `none`.
  double factor = 1.0;
  /// [tokens] trained context before stretching; `dynamic_ntk`, `yarn`, `llama3`, `long_factors`.
  token_count original_length = {};
  /// Turns over the original context above which a frequency is kept; `yarn`.
  double beta_fast = 32.0;
  /// Turns over the original context below which a frequency is interpolated; `yarn`.
  double beta_slow = 1.0;
  /// Rounds the ends of the ramp to whole dims; `yarn`.
  bool round_ramp = true;
  /// Coefficient of the score scale; `yarn` (DeepSeek's `mscale`). 0 = the paper's 1.
  double magnitude = 0.0;
  /// Coefficient whose effect is taken out again; `yarn` (DeepSeek's `mscale_all_dim`). 0 = none.
  double magnitude_all = 0.0;
  /// Factor of both sine and cosine, in place of the rule's own; `yarn`, `long_factors`.
  std::optional<double> attention_factor = {};
  /// Wavelengths beyond original_length / this are divided by the factor; `llama3`.
  double low_frequency_factor = 1.0;
  /// Wavelengths below original_length / this are kept; `llama3`.
  double high_frequency_factor = 4.0;
  /// \shape [width / 2] divisors up to `original_length`; `long_factors`
  std::vector<double> short_divisors = {};
  /// \shape [width / 2] divisors beyond it; `long_factors`
  std::vector<double> long_divisors = {};

  /// Checks all of it. \throws config_error naming what was wrong and what would work
  void validate() const {
    if (width == 0) { return; }
    if (width % 2 != 0) { fail("an odd width: elements turn in pairs"); }
    if (!(base > 1.0) || !std::isfinite(base)) { fail("the base must be above 1, often 10000"); }
    if (scaling != rope_scaling::none && (!(factor >= 1.0) || !std::isfinite(factor))) {
      fail("the factor must be at least 1: it stretches the context");
    }
    if ((scaling == rope_scaling::ntk || scaling == rope_scaling::dynamic_ntk) && width == 2) {
      fail("NTK scaling needs a width above 2: its exponent is d / (d - 2)");
    }
    auto const needs_length =
        depends_on_length(scaling) || scaling == rope_scaling::yarn || scaling == rope_scaling::llama3;
    if (needs_length && original_length.value() < 2) { fail("original_length is missing: use the trained context"); }
    if (scaling == rope_scaling::yarn && (!(beta_slow > 0.0) || !(beta_fast >= beta_slow))) {
      fail("beta_fast must be at least beta_slow, and both positive");
    }
    if (scaling == rope_scaling::yarn && !(magnitude >= 0.0 && magnitude_all >= 0.0)) {
      fail("the magnitudes must be positive, or 0 for none");
    }
    if (scaling == rope_scaling::llama3 &&
        (!(low_frequency_factor > 0.0) || !(high_frequency_factor > low_frequency_factor))) {
      fail("high_frequency_factor must be above low_frequency_factor, and both positive");
    }
    if (attention_factor && !(*attention_factor > 0.0)) { fail("the attention factor must be positive"); }
    if (scaling == rope_scaling::long_factors) {
      require_divisors("short_divisors", short_divisors);
      require_divisors("long_divisors", long_divisors);
    }
  }

  /// Same parameters.
  friend auto operator==(rope_config const&, rope_config const&) -> bool = default;

private:
  [[noreturn]] static void fail(std::string const& what) { throw config_error{"rope: " + what}; }
  void require_divisors(char const* name, std::vector<double> const& divisors) const {
    if (divisors.size() != width / 2) {
      fail(std::string{name} + " has " + std::to_string(divisors.size()) + " entries: use one per pair, " +
           std::to_string(width / 2));
    }
    for (auto const divisor : divisors) {
      if (!(divisor > 0.0)) { fail(std::string{name} + " must be positive"); }
    }
  }
};

} // namespace quire
