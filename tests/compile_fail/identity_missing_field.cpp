// SPDX-License-Identifier: Apache-2.0
// S33: a field that is left out does not get a value by itself.
// expect: could not convert|no matching (function|constructor)
#include <quire/identity/compute_identity.hpp>

auto fields(quire::content_digest const& digest) -> quire::compute_identity_fields {
  return {
      .weights = quire::weights_digest{digest},
      .structure = quire::structure_digest{digest},
      .tokenizer = quire::tokenizer_digest{digest},
      .prompt_template = quire::prompt_template_digest::none(),
      .adapters = quire::adapter_list::none(),
      .precision = quire::compute_precision{"bf16"},
      .format = quire::cache_format::exact("bf16"),
      .positions = quire::position_config{"rope"},
      .attention = quire::visibility_rule{"causal"},
#ifdef FIXED
      .conditions = quire::external_conditions::none(),
#endif
  };
}
