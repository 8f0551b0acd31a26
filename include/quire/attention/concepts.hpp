// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The roles of the attention room: what delivers the elements of a tensor, what changes scores, and what an engine
/// supplies as its attention backend. The rules that no compiler sees stand in `docs/concepts/attention_backend.md`.

#include <quire/attention/score_place.hpp>
#include <quire/attention/tensor_place.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/view/batch_view.hpp>
#include <quire/view/concepts.hpp>

#include <concepts>
#include <type_traits>

namespace quire {

/// Delivers one element of a tensor, whatever order its axes have in memory. A lambda over a user's own arrays is
/// one; `strided_tensor` is the ready-made one.
template <class A>
concept attention_accessor = requires(A const& a, tensor_place const& at) {
  requires std::floating_point<std::remove_cvref_t<decltype(a(at))>>;
};

/// Adds a term to each scaled score, before the soft-cap.
template <class B>
concept attention_bias = requires(B const& b, score_place const& at) {
  { b(at) } -> std::same_as<double>;
};

/// Stores the new keys and values of a step in the slots of a view.
template <class B>
concept kv_writer = requires(B& b, layer_id layer, batch_view const& view, typename B::kv_input const& rows) {
  { b.write(layer, view, rows) } -> std::same_as<expected<void>>;
};

/// Computes attention of the new queries of a step over the positions that a view makes readable.
template <class B>
concept batch_attention = requires(B& b, layer_id layer, batch_view const& view, typename B::query_input const& queries,
                                   typename B::attention_result const& out) {
  { b.attend(layer, view, queries, out) } -> std::same_as<expected<void>>;
};

/// What an engine supplies: it writes K and V at slots, attends over a batch view, and performs the core's actions
/// (copy, move, scrub) on the same bytes.
/// \source S43, S44
template <class B>
concept attention_backend = executor<B> && kv_writer<B> && batch_attention<B>;

} // namespace quire
