// SPDX-License-Identifier: Apache-2.0
// S36, case 14: a look-up always says for whom it is made.
// expect: no matching (function|constructor)
#include <quire/identity/scope_key.hpp>
#include <quire/identity/xxh3_128_digest.hpp>

auto scope(quire::compute_identity const& identity, quire::sharing_domain const& domain) -> quire::scope_key {
#ifdef FIXED
  return quire::scope_key{quire::digest_scheme::of<quire::xxh3_128_digest>(), quire::token_count{16}, identity, domain};
#else
  static_cast<void>(domain);
  return quire::scope_key{quire::digest_scheme::of<quire::xxh3_128_digest>(), quire::token_count{16}, identity};
#endif
}
