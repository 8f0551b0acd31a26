// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Declarations of the attention room, with the default template arguments.

#include <quire/attention/concepts.hpp>

#include <concepts>

namespace quire {

struct attention_extent;
struct attention_output;
struct attention_params;
struct backend_record;
struct equivalence_bound;
struct equivalence_report;
struct latent_shape;
struct no_bias;
struct oracle_layer;
struct oracle_plane;
struct partial_attention;
struct position_shift;
struct rope_config;
struct score_place;
struct tensor_place;
class cross_source;
class equivalence_checker;
class latent_attention;
class oracle_backend;
class request_rope;
class resolved_rope;
class shifted_positions;

template <std::floating_point Float>
struct kv_rows;
template <std::floating_point Float>
struct query_rows;
template <std::floating_point Float>
struct output_rows;
template <std::floating_point Float>
struct strided_tensor;
template <std::floating_point Float = double>
struct null_backend;
template <attention_backend Inner = null_backend<>>
class recording_backend;

} // namespace quire
