// SPDX-License-Identifier: Apache-2.0
// S34: sampling parameters are not part of the key.
// expect: no member named .*temperature
#include <quire/identity/compute_identity.hpp>

auto identity(quire::compute_identity_fields fields) -> quire::compute_identity {
#ifndef FIXED
  fields.temperature = 0.7;
#endif
  return quire::compute_identity{fields};
}
