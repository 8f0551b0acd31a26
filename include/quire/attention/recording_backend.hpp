// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// An attention backend that remembers what it was asked to do.

#include <quire/attention/backend_record.hpp>
#include <quire/attention/concepts.hpp>
#include <quire/attention/fwd.hpp>
#include <quire/attention/null_backend.hpp> // IWYU pragma: keep, the default of Inner
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/view/action.hpp>
#include <quire/view/batch_view.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace quire {

/// Passes calls on to \p Inner and keeps those that it performed, in order: for the tests of an engine and for
/// operation logs. \tparam Inner the backend that does the work
template <attention_backend Inner>
class recording_backend {
public:
  /// Keys and values, as the inner backend takes them.
  using kv_input = typename Inner::kv_input;
  /// Queries, as the inner backend takes them.
  using query_input = typename Inner::query_input;
  /// Results, as the inner backend delivers them.
  using attention_result = typename Inner::attention_result;

  /// Records in front of a default backend.
  recording_backend()
    requires std::default_initializable<Inner>
  = default;
  /// Records in front of \p inner.
  explicit recording_backend(Inner inner) : inner_{std::move(inner)} {}

  /// Lets the inner backend perform \p actions, then records them. \returns what the inner backend returned; a refused
  /// call is not recorded \throws std::bad_alloc before anything is performed, and whatever the inner backend throws
  [[nodiscard]] auto run(std::span<action const> actions) -> expected<void> {
    auto record = backend_record{.call = backend_call::run, .actions = {actions.begin(), actions.end()}};
    return perform(std::move(record), [&] { return inner_.run(actions); });
  }
  /// Lets the inner backend write, then records what the view said. Returns and throws as `run`.
  [[nodiscard]] auto write(layer_id layer, batch_view const& view, kv_input const& rows) -> expected<void> {
    return perform(of(backend_call::write, layer, view), [&] { return inner_.write(layer, view, rows); });
  }
  /// Lets the inner backend attend, then records what the view said. Returns and throws as `run`.
  [[nodiscard]] auto attend(layer_id layer, batch_view const& view, query_input const& queries,
                            attention_result const& out) -> expected<void> {
    return perform(of(backend_call::attend, layer, view), [&] { return inner_.attend(layer, view, queries, out); });
  }

  /// Everything performed since construction or `clear()`, in order. \invalidates the span: the next call or `clear`
  [[nodiscard]] auto recorded() const noexcept -> std::span<backend_record const> { return recorded_; }
  /// Forgets what was recorded.
  void clear() noexcept { recorded_.clear(); }
  /// The backend that does the work.
  [[nodiscard]] auto inner() noexcept -> Inner& { return inner_; }

private:
  [[nodiscard]] static auto of(backend_call call, layer_id layer, batch_view const& view) -> backend_record {
    auto out = backend_record{.call = call,
                              .layer = layer,
                              .slots = {view.slot.begin(), view.slot.end()},
                              .positions = {view.position.begin(), view.position.end()},
                              .lengths = {view.length.begin(), view.length.end()},
                              .query_start = {view.query_start.begin(), view.query_start.end()}};
    for (std::int32_t row = 0; row < view.rows; ++row) {
      auto const blocks = view.blocks_of_row(row);
      out.blocks.insert(out.blocks.end(), blocks.begin(), blocks.end());
    }
    return out;
  }
  template <class Act>
  [[nodiscard]] auto perform(backend_record record, Act&& act) -> expected<void> {
    // Room first: once the bytes have moved, the record cannot fail any more.
    if (recorded_.size() == recorded_.capacity()) { recorded_.reserve(2 * recorded_.capacity() + 8); }
    auto result = std::forward<Act>(act)();
    if (result) { recorded_.push_back(std::move(record)); }
    return result;
  }

  [[no_unique_address]] Inner inner_;
  std::vector<backend_record> recorded_ = {};
};

static_assert(attention_backend<recording_backend<>>);

} // namespace quire
