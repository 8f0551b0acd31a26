// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// For whom and under which conditions a replay caches. A real engine hashes its weights; synthetic tokens have none, so
/// the digests stand for "no model" (they are SHA-256 of such a text).

#include <quire/identity/compute_identity.hpp>
#include <quire/identity/sharing_domain.hpp>

#include <string_view>

namespace replay {

/// The conditions of every replay.
[[nodiscard]] inline auto replay_identity() -> quire::compute_identity {
  auto const no_model =
      quire::content_digest::from_hex("9d682a2f7c21d5816c372909867ebb4f620ec8979cfcceda91c2b9d3659b614d").value();
  return quire::compute_identity{
      quire::compute_identity_fields{.weights = quire::weights_digest{no_model},
                                     .structure = quire::structure_digest{no_model},
                                     .tokenizer = quire::tokenizer_digest{no_model},
                                     .prompt_template = quire::prompt_template_digest::none(),
                                     .adapters = quire::adapter_list::none(),
                                     .precision = quire::compute_precision{"bf16"},
                                     .format = quire::cache_format::exact("bf16"),
                                     .positions = quire::position_config{"synthetic"},
                                     .attention = quire::visibility_rule{"causal"},
                                     .conditions = quire::external_conditions::none()}};
}

/// Whom every replay serves.
[[nodiscard]] inline auto replay_domain() -> quire::sharing_domain {
  return quire::sharing_domain::isolated(quire::tenant_id{"replay"}, quire::authorisation_domain{"trace"},
                                         quire::domain_salt::none());
}

} // namespace replay
