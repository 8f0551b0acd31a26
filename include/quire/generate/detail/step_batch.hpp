// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One step for everybody who runs: what is asked of the cache, what is fed, and where the logits are.
///
/// ```text
///   gather ─▶ plan ─▶ run: launch, copy, forward ─▶ rows, logits
///   a row per member: a chunk of its prompt, its last output, or its last output and some guesses
/// ```
///
/// Everything that may fail for want of host memory happens in `gather` and `plan`, before anything has advanced.

#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/detail/generation_record.hpp>
#include <quire/generate/forward_batch.hpp>
#include <quire/generate/stop_rules.hpp>
#include <quire/generate/types.hpp>
#include <quire/view/batch_view.hpp>

#include <algorithm> // std::min
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// Keeps its buffers, so that a steady decode allocates nothing.
template <class Cache>
class step_batch {
public:
  using record = generation_record<typename Cache::sequence>;
  using row = step_row<record>;

  /// Steps of \p cache, which outlives it. \param chunk [tokens] of a prompt in one step; 0 = all at once
  step_batch(Cache& cache, token_count chunk, std::size_t vocabulary)
      : cache_{&cache}, chunk_{chunk}, vocabulary_{vocabulary} {}

  /// Decides what every one of \p members is fed; \p guesses says how many guesses it gets, and has written them there.
  template <class Guesses>
  auto gather(std::span<record* const> members, Guesses&& guesses) -> void {
    items_.clear();
    rows_.clear();
    for (auto* const m : members) {
      auto const length = m->seq.length().value();
      auto const pending = m->pending();
      auto q = chunk_ == token_count{} ? pending : std::min(pending, chunk_.value());
      q = std::min(q, cache_->append_limit().value());
      auto const guessed = std::uint32_t{guesses(*m)};
      auto const reaches_end = q == pending && m->closing == stop_reason::none;
      rows_.push_back({.of = m, .length = length, .tokens = q + guessed, .outputs = reaches_end ? 1 + guessed : 0});
      if (guessed > 0) {
        items_.emplace_back(m->seq, token_count{1 + guessed}); // by count: nothing unverified publishes (B6)
      } else {
        items_.emplace_back(m->seq, std::span<token_id const>{m->text}.subspan(length, q));
      }
    }
  }
  /// Plans what was gathered and lays out the tokens of the items that are part of the step. \errors as `Cache::plan_step`
  [[nodiscard]] auto plan() -> expected<typename Cache::step_plan> {
    auto out = cache_->plan_step(std::span<typename Cache::step_item const>{items_});
    if (!out) { return out; }
    tokens_.clear();
    wanted_.clear();
    of_.clear();
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].status = out->results()[i].status;
      if (rows_[i].status == errc::ok) { lay_out(rows_[i]); }
    }
    logits_.resize(wanted_.size() * vocabulary_);
    views_.reserve(cache_->groups());
    return out;
  }
  /// Launches \p plan and runs \p model over it. \errors what the model refuses
  template <class Model>
  [[nodiscard]] auto run(typename Cache::step_plan& plan, Model& model) -> expected<void> {
    if (auto done = model.run(plan.launch()); !done) { return done; }
    if (tokens_.empty()) { return {}; }
    views_.clear();
    for (std::uint32_t g = 0; cache_->groups() > 1 && g < cache_->groups(); ++g) {
      views_.push_back(plan.view(group_id{g}));
    }
    return model.forward(forward_batch{.view = plan.view(group_id{0}),
                                       .groups = views_,
                                       .tokens = tokens_,
                                       .wanted = wanted_,
                                       .logits = logits_,
                                       .of = of_});
  }

  /// In the order of the members.
  [[nodiscard]] auto rows() const noexcept -> std::span<row const> { return rows_; }
  /// Positions whose logits are wanted, of all rows.
  [[nodiscard]] auto outputs() const noexcept -> std::size_t { return wanted_.size(); }
  /// \returns [V] logits that output number \p k of \p r is chosen from. \pre it ran, and `k < r.outputs`
  [[nodiscard]] auto logits(row const& r, std::uint32_t k) const -> std::span<float const> {
    return std::span<float const>{logits_}.subspan((r.first + k) * vocabulary_, vocabulary_);
  }

private:
  auto lay_out(row& r) -> void {
    of_.push_back(r.of->id);
    auto const known = std::span<token_id const>{r.of->text}.subspan(r.length, r.tokens - r.of->guesses.size());
    tokens_.insert(tokens_.end(), known.begin(), known.end());
    tokens_.insert(tokens_.end(), r.of->guesses.begin(), r.of->guesses.end());
    r.first = static_cast<std::uint32_t>(wanted_.size());
    for (auto k = r.outputs; k > 0; --k) { wanted_.push_back(static_cast<std::uint32_t>(tokens_.size()) - k); }
  }

  Cache* cache_;
  token_count chunk_;
  std::size_t vocabulary_;
  std::vector<typename Cache::step_item> items_;
  std::vector<row> rows_;
  std::vector<token_id> tokens_;
  std::vector<std::uint32_t> wanted_;
  std::vector<generation_id> of_;
  std::vector<batch_view> views_; // by layer group, if there are several
  std::vector<float> logits_;
};
/// \endcond

} // namespace quire::detail
