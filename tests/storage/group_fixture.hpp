// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A toy engine around a cache with several layer groups: one memory per group, and every query reads exactly what the
/// attention rule of the group lets it see. What a window may see is written down here by definition, without `resident_range`.

#include <quire/cache/group_figures.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/model/retention.hpp>
#include <quire/view/action.hpp>
#include <quire/view/batch_view.hpp>
#include <quire/view/validate.hpp>

#include "isolation/identity_fixtures.hpp"
#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace quire_test {

/// A group in blocks of \p block_tokens.
inline auto group_of(quire::retention const& keeps, unsigned blocks = 0, unsigned block_tokens = 0)
    -> quire::cache_group {
  return {.keeps = keeps, .blocks = quire::block_count{blocks}, .block_tokens = quire::token_count{block_tokens}};
}
/// A window of \p w positions with \p sinks.
inline auto window_of(unsigned w, unsigned sinks = 0) -> quire::retention {
  return quire::retention::sink_window({.sinks = quire::token_count{sinks}, .window = quire::token_count{w}});
}
/// Chunks of \p size positions.
inline auto chunks_of(unsigned size) -> quire::retention { return quire::retention::chunked(quire::token_count{size}); }

/// The first position that a query at \p p sees besides the sinks.
inline auto first_seen(quire::retention const& keeps, std::uint32_t p) -> std::uint32_t {
  auto const extent = keeps.extent.value();
  switch (keeps.kind) {
  case quire::retention_kind::full: return 0;
  case quire::retention_kind::chunked: return p / extent * extent;
  default: return p + 1 < extent ? 0 : p + 1 - extent;
  }
}
/// True if a query at \p p sees position \p t.
inline auto sees(quire::retention const& keeps, std::uint32_t p, std::uint32_t t) -> bool {
  return t <= p && (t < keeps.sinks.value() || t >= first_seen(keeps, p));
}
/// Logical blocks of \p unit tokens that hold one of \p length positions which some query at \p oldest or later sees.
inline auto blocks_seen(quire::retention const& keeps, std::uint32_t oldest, std::uint32_t length, std::uint32_t unit)
    -> std::vector<bool> {
  auto out = std::vector<bool>((length + unit - 1) / unit);
  for (std::uint32_t t = 0; t < out.size() * unit; ++t) {
    if (t < keeps.sinks.value() || t >= first_seen(keeps, oldest)) { out[t / unit] = true; }
  }
  return out;
}
/// Options of a small cache with \p groups. Lead blocks of 4 tokens.
inline auto groups_of(unsigned blocks, std::vector<quire::cache_group> groups, unsigned block_tokens = 4)
    -> quire::cache_options {
  auto out = pool_of(blocks, block_tokens);
  out.groups = std::move(groups);
  return out;
}
/// Number of a group.
inline auto group(std::uint32_t g) -> quire::group_id { return quire::group_id{g}; }
/// Amount of tokens.
inline auto tokens(std::size_t n) -> quire::token_count { return quire::token_count{static_cast<std::uint32_t>(n)}; }

/// What can be seen of one group: free, idle, promised.
using short_figures = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

/// \tparam P policies of the cache.
template <class P = quire::default_policies>
class group_engine {
public:
  using cache_type = quire::kv_cache<P>;
  using sequence = typename cache_type::sequence;
  using step_item = typename cache_type::step_item;
  using step_plan = typename cache_type::step_plan;

  /// A sequence and the text of its committed positions.
  struct request {
    sequence seq;
    text tokens;
  };
  /// Part of a step.
  struct work {
    request* of;
    text ids;
  };

  quire::cache_options options;
  cache_type cache;
  quire::scope_number scope;
  std::vector<std::vector<std::uint64_t>> memory; // by group

  explicit group_engine(quire::cache_options const& wanted, typename P::admission admission = {})
      : options{wanted}, cache{wanted, {}, std::move(admission)},
        scope{cache.open_scope(quire::compute_identity{some_fields()}, domain_of("tenant"))} {
    for (std::uint32_t g = 0; g < wanted.groups.size(); ++g) {
      memory.emplace_back(std::size_t{now(g).capacity.value()} * unit(g));
    }
    check(cache);
  }
  /// Figures of group \p g now.
  [[nodiscard]] auto now(std::uint32_t g = 0) const -> quire::group_figures { return cache.figures(group(g)); }
  /// [tokens] per block of group \p g.
  [[nodiscard]] auto unit(std::uint32_t g) const -> std::uint32_t {
    auto const own = options.groups[g].block_tokens.value();
    return own == 0 ? options.block_tokens.value() : own;
  }
  [[nodiscard]] auto keeps(std::uint32_t g) const -> quire::retention const& { return options.groups[g].keeps; }
  [[nodiscard]] auto wanted(text const& prompt, unsigned max_output = 1, unsigned draft = 0) const
      -> quire::admit_request {
    auto out = quire::admit_request{};
    out.scope = scope;
    out.prompt = prompt;
    out.max_output = quire::token_count{max_output};
    out.draft = quire::token_count{draft};
    return out;
  }
  auto ask(quire::admit_request const& asked) -> quire::expected<sequence, quire::refusal> {
    auto out = cache.admit(asked);
    check(cache);
    return out;
  }
  auto admit(text const& prompt, unsigned max_output = 1, unsigned draft = 0) -> request {
    auto out = ask(wanted(prompt, max_output, draft));
    INFO((out ? std::string{} : out.error().message()));
    REQUIRE(out.has_value());
    auto const found = out->cached().value();
    return {std::move(*out), head(prompt, found)};
  }
  auto plan(std::vector<work> const& items, quire::timeline_id timeline = quire::timeline_id{0}) -> step_plan {
    auto asked = std::vector<step_item>{};
    for (auto const& item : items) { asked.emplace_back(item.of->seq, item.ids); }
    auto out = cache.plan_step(asked, timeline);
    check(cache);
    REQUIRE(out.has_value());
    for (auto const& result : out->results()) { REQUIRE(result.status == quire::errc::ok); }
    return std::move(*out);
  }
  /// Launches a plan, performs its actions, writes its slots, and lets every query read what it may see.
  void execute(step_plan& planned, std::vector<work> const& items) {
    perform(planned.launch());
    check(cache);
    for (std::uint32_t g = 0; g < memory.size(); ++g) {
      auto const& view = planned.view(group(g));
      REQUIRE(quire::validate(view, {.pool = now(g).capacity, .holes = true}).has_value());
      for (std::size_t i = 0; i < items.size(); ++i) { forward(g, view, static_cast<std::int32_t>(i), items[i]); }
    }
  }
  /// Commits an executed plan; without a ticket its work is over.
  void commit(step_plan&& planned, std::vector<work> const& items, std::optional<quire::ticket> until = {},
              quire::timeline_id timeline = quire::timeline_id{0}) {
    REQUIRE((until ? cache.commit(std::move(planned), *until) : commit_done(cache, std::move(planned), timeline))
                .has_value());
    check(cache);
    for (auto const& item : items) { item.of->tokens = joined(item.of->tokens, item.ids); }
  }
  void step(std::vector<work> const& items, std::optional<quire::ticket> until = {},
            quire::timeline_id timeline = quire::timeline_id{0}) {
    auto planned = plan(items, timeline);
    execute(planned, items);
    commit(std::move(planned), items, until, timeline);
  }
  /// Computes what is missing of \p prompt in one step, or in steps of at most \p q.
  void prefill(request& r, text const& prompt, std::size_t q = 1'000'000) {
    while (r.seq.length().value() < prompt.size()) {
      auto const left = tail(prompt, r.seq.length().value());
      step({{&r, head(left, std::min(q, left.size()))}});
    }
  }
  auto serve(text const& prompt, unsigned max_output = 1, unsigned draft = 0) -> request {
    auto r = admit(prompt, max_output, draft);
    prefill(r, prompt);
    return r;
  }
  /// Leaves \p prompt in the cache, used by nobody.
  void keep(text const& prompt) {
    auto r = serve(prompt);
    release(r);
  }
  /// Tokens of \p prompt that an admission finds now. What it finds becomes the youngest of what is idle.
  auto hit(text const& prompt, unsigned draft = 0) -> std::uint32_t {
    return admit(prompt, 1, draft).seq.cached().value();
  }
  void release(request& r) {
    cache.release(std::move(r.seq));
    r.tokens.clear();
    check(cache);
  }
  auto fork(request& parent, std::size_t length) -> request {
    auto out = cache.fork(parent.seq, tokens(length));
    check(cache);
    REQUIRE(out.has_value());
    return {std::move(*out), head(parent.tokens, length)};
  }
  void truncate(request& r, std::size_t length) {
    REQUIRE(cache.truncate(r.seq, tokens(length)).has_value());
    check(cache);
    r.tokens.resize(length);
  }
  /// Which logical blocks of group \p g a request holds.
  [[nodiscard]] static auto held(request const& r, std::uint32_t g) -> std::vector<bool> {
    auto out = std::vector<bool>{};
    for (auto const block : r.seq.blocks(group(g))) { out.push_back(static_cast<bool>(block)); }
    return out;
  }
  /// How many they are.
  [[nodiscard]] static auto count_held(request const& r, std::uint32_t g) -> std::uint32_t {
    auto const all = held(r, g);
    return static_cast<std::uint32_t>(std::count(all.begin(), all.end(), true));
  }
  /// What can be seen of group \p g.
  [[nodiscard]] auto figures(std::uint32_t g) const -> short_figures {
    return {now(g).free.value(), now(g).evictable.value(), now(g).promised.value()};
  }
  [[nodiscard]] auto all_figures() const -> std::vector<short_figures> {
    auto out = std::vector<short_figures>{};
    for (std::uint32_t g = 0; g < memory.size(); ++g) { out.push_back(figures(g)); }
    return out;
  }
  void perform(std::span<quire::action const> actions) {
    for (auto const& act : actions) {
      if (act.kind == quire::action_kind::wait) { continue; }
      auto const g = act.group.value();
      auto const at = [&](quire::block_place p) {
        return memory[g].begin() + static_cast<std::ptrdiff_t>(std::size_t{p.block.value()} * unit(g));
      };
      if (act.kind == quire::action_kind::copy) { std::copy_n(at(act.source), act.tokens.value(), at(act.target)); }
      if (act.kind == quire::action_kind::move) { std::copy_n(at(act.source), unit(g), at(act.target)); }
      if (act.kind == quire::action_kind::scrub) { std::fill_n(at(act.target), unit(g), 0); }
    }
  }

private:
  void forward(std::uint32_t g, quire::batch_view const& view, std::int32_t row, work const& item) {
    auto const all = joined(item.of->tokens, item.ids);
    auto const unit_of = std::size_t{unit(g)};
    REQUIRE(view.row_length(row) == static_cast<std::int32_t>(all.size()));
    auto kv = std::vector<std::uint64_t>{};
    for (auto const token : all) { kv.push_back(next_kv(kv.empty() ? first_kv + g : kv.back(), token)); }
    auto at = static_cast<std::size_t>(view.query_start[static_cast<std::size_t>(row)]);
    for (auto p = item.of->tokens.size(); p < all.size(); ++p, ++at) {
      REQUIRE(view.position[at] == static_cast<std::int32_t>(p));
      if (view.slot[at] >= 0) { memory[g][static_cast<std::size_t>(view.slot[at])] = kv[p]; }
    }
    for (auto p = item.of->tokens.size(); p < all.size(); ++p) {
      for (std::size_t t = 0; t <= p; ++t) {
        if (!sees(keeps(g), static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(t))) { continue; }
        INFO("group " << g << " row " << row << " query " << p << " position " << t);
        REQUIRE(view.first_position[static_cast<std::size_t>(row)] <= static_cast<std::int32_t>(t));
        auto const place = view.locate(row, quire::token_pos{static_cast<std::uint32_t>(t)});
        REQUIRE(static_cast<bool>(place.block));
        REQUIRE(memory[g][place.block.value() * unit_of + place.offset.value()] == kv[t]);
      }
    }
  }
};

} // namespace quire_test
