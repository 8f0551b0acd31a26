// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The parts of a compute identity, by name.

#include <quire/identity/adapter_list.hpp>
#include <quire/identity/cache_format.hpp>
#include <quire/identity/identity_bytes.hpp>
#include <quire/identity/identity_digest.hpp>
#include <quire/identity/optional_identity_digest.hpp>

namespace quire {

/// Everything except tokens that cached bytes depend on. Each member has a type of its own without a default: leaving
/// one out or exchanging two does not compile. What does not change cached bytes has no member here: sampling
/// parameters, seeds, stop rules (S34), and names or paths (S35).
/// \source S33, S34
struct compute_identity_fields {
  weights_digest weights;                 ///< Parameters, after merges and quantisation.
  structure_digest structure;             ///< What the parameters are put into.
  tokenizer_digest tokenizer;             ///< How text becomes tokens.
  prompt_template_digest prompt_template; ///< How messages become text, or `none()`.
  adapter_list adapters;                  ///< In order, with scales, or `none()`.
  compute_precision precision;            ///< Arithmetic of the computation.
  cache_format format;                    ///< Exact, or a named approximate mode.
  position_config positions;              ///< Resolved parameters of the position rule.
  visibility_rule attention;              ///< What may be seen.
  external_conditions conditions;         ///< Inputs other than tokens, or `none()`.
};

} // namespace quire
