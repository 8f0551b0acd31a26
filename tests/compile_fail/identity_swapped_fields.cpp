// SPDX-License-Identifier: Apache-2.0
// S33: two fields cannot change places.
// expect: could not convert|no viable conversion
#include <quire/identity/compute_identity.hpp>

auto fields(quire::content_digest const& digest) -> quire::compute_identity_fields {
  return {.weights = quire::weights_digest{digest},
          .structure = quire::structure_digest{digest},
          .tokenizer = quire::tokenizer_digest{digest},
          .prompt_template = quire::prompt_template_digest::none(),
          .adapters = quire::adapter_list::none(),
          .precision = quire::compute_precision{"bf16"},
          .format = quire::cache_format::exact("bf16"),
#ifdef FIXED
          .positions = quire::position_config{"rope"},
          .attention = quire::visibility_rule{"causal"},
#else
          .positions = quire::visibility_rule{"causal"},
          .attention = quire::position_config{"rope"},
#endif
          .conditions = quire::external_conditions::none()};
}
