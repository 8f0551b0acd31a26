// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Declarations of the cache room, with the default template arguments.

#include <cstdint>

namespace quire {

struct admission_query;
struct reserve_all;
struct optimistic;
class watermark;
struct admit_all;
struct null_lock;

struct cache_options;
struct admit_request;
struct refusal;
struct step_result;
enum class scrub_rule : std::uint8_t;
enum class reuse_rule : std::uint8_t;
enum class running_requests : std::uint8_t;
enum class step_source : std::uint8_t;
class scope_table;

struct default_policies;
template <class Policies = default_policies>
class kv_cache;

} // namespace quire
