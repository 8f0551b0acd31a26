// SPDX-License-Identifier: Apache-2.0
// Cases 13, 14: no key is made of tokens only.
// expect: no matching (function|constructor)
#include <quire/identity/block_key.hpp>
#include <quire/identity/xxh3_128_digest.hpp>

#include <span>

using key = quire::block_key<quire::xxh3_128_digest>;

auto make(quire::scope_key const& scope, quire::digest_128 parent, std::span<quire::token_id const> tokens) -> key {
#ifdef FIXED
  return key{quire::xxh3_128_digest{}, scope, quire::block_depth{1}, parent, tokens};
#else
  static_cast<void>(scope), static_cast<void>(parent);
  return key{tokens};
#endif
}
