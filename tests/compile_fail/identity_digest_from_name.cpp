// SPDX-License-Identifier: Apache-2.0
// S35: a name is not an identity.
// expect: no matching (function|constructor)|could not convert|no viable conversion
#include <quire/identity/identity_digest.hpp>

auto weights(quire::content_digest const& digest) -> quire::weights_digest {
#ifdef FIXED
  return quire::weights_digest{digest};
#else
  static_cast<void>(digest);
  return quire::weights_digest{"meta-llama/Llama-3-8B"};
#endif
}
