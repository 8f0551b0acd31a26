// SPDX-License-Identifier: Apache-2.0
// A key is a view of its scope.
// expect: deleted
#include <quire/identity/block_key.hpp>
#include <quire/identity/xxh3_128_digest.hpp>

#include <span>
#include <utility>

using key = quire::block_key<quire::xxh3_128_digest>;

auto make(quire::scope_key& scope, quire::digest_128 parent, std::span<quire::token_id const> tokens) -> key {
#ifdef FIXED
  return key{quire::xxh3_128_digest{}, scope, quire::block_depth{1}, parent, tokens};
#else
  return key{quire::xxh3_128_digest{}, quire::scope_key{std::move(scope)}, quire::block_depth{1}, parent, tokens};
#endif
}
