// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Declarations of the identity room.

#include <quire/identity/concepts.hpp>

namespace quire {

class adapter_list;
class adapter_scale;
class cache_format;
class compute_identity;
class content_digest;
class digest_scheme;
class domain_salt;
class scope_key;
class sharing_domain;
class xxh3_128_digest;
struct adapter;
struct compute_identity_fields;
struct constant_digest;
struct digest_128;

template <class Tag>
class identity_digest;
template <class Tag>
class optional_identity_digest;
template <class Tag>
class identity_bytes;
template <digest_policy Policy>
class block_key;

} // namespace quire
