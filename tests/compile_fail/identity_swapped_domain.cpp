// SPDX-License-Identifier: Apache-2.0
// S36: tenant and authorisation domain cannot change places.
// expect: invalid initialization of reference|no known conversion|no viable conversion|could not convert|cannot convert
#include <quire/identity/sharing_domain.hpp>

auto domain(quire::tenant_id const& tenant, quire::authorisation_domain const& inner) -> quire::sharing_domain {
#ifdef FIXED
  return quire::sharing_domain::isolated(tenant, inner, quire::domain_salt::none());
#else
  return quire::sharing_domain::isolated(inner, tenant, quire::domain_salt::none());
#endif
}
