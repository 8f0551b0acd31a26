// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The whole attention room: what is computed over a view. The oracle in double precision, the CPU backend, and the checker
/// of equivalence. `quire/quire.hpp` does without it.

#include <quire/attention/accumulation_error.hpp>
#include <quire/attention/alibi_slopes.hpp>
#include <quire/attention/attention_extent.hpp>
#include <quire/attention/attention_output.hpp>
#include <quire/attention/attention_params.hpp>
#include <quire/attention/backend_record.hpp>
#include <quire/attention/concepts.hpp>
#include <quire/attention/cpu_backend.hpp>
#include <quire/attention/cpu_layer.hpp>
#include <quire/attention/cpu_plane.hpp>
#include <quire/attention/cpu_range.hpp>
#include <quire/attention/cpu_workspace.hpp>
#include <quire/attention/cross_source.hpp>
#include <quire/attention/element_codec.hpp>
#include <quire/attention/equivalence_bound.hpp>
#include <quire/attention/equivalence_checker.hpp>
#include <quire/attention/equivalence_report.hpp>
#include <quire/attention/key_loss.hpp>
#include <quire/attention/kv_rows.hpp>
#include <quire/attention/latent_attention.hpp>
#include <quire/attention/latent_form.hpp>
#include <quire/attention/latent_shape.hpp>
#include <quire/attention/latent_weights.hpp>
#include <quire/attention/latent_work.hpp>
#include <quire/attention/lse_base.hpp>
#include <quire/attention/merge_weights.hpp>
#include <quire/attention/no_bias.hpp>
#include <quire/attention/null_backend.hpp>
#include <quire/attention/oracle_attention.hpp>
#include <quire/attention/oracle_backend.hpp>
#include <quire/attention/oracle_layer.hpp>
#include <quire/attention/oracle_plane.hpp>
#include <quire/attention/output_rows.hpp>
#include <quire/attention/partial_attention.hpp>
#include <quire/attention/position_shift.hpp>
#include <quire/attention/query_rows.hpp>
#include <quire/attention/recording_backend.hpp>
#include <quire/attention/request_rope.hpp>
#include <quire/attention/resolved_rope.hpp>
#include <quire/attention/rope.hpp>
#include <quire/attention/rope_config.hpp>
#include <quire/attention/rope_layout.hpp>
#include <quire/attention/rope_scaling.hpp>
#include <quire/attention/score_place.hpp>
#include <quire/attention/shifted_positions.hpp>
#include <quire/attention/strided_tensor.hpp>
#include <quire/attention/tensor_place.hpp>
