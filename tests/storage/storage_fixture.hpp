// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A toy engine around a cache, which audits the cache after every operation and checks every byte that a step reads.
///
/// The "KV" of position p is a hash of the tokens 0 … p, so that a row that reads somebody else's block, a stale block or
/// a block behind another prefix is noticed whatever the bookkeeping says.

#include <quire/cache/group_figures.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/core/expected.hpp>
#include <quire/view/validate.hpp>

#include "isolation/identity_fixtures.hpp"
#include "support/catch_compat.hpp"
#include "support/texts.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire_test {

/// Options of a small cache.
inline auto pool_of(unsigned blocks, unsigned block_tokens = 4) -> quire::cache_options {
  auto out = quire::cache_options{};
  out.blocks = quire::block_count{blocks};
  out.block_tokens = quire::token_count{block_tokens};
  out.max_sequences = quire::sequence_count{64};
  out.max_rows = quire::row_count{16};
  return out;
}

/// Requires that every invariant of \p cache holds.
template <class Cache>
void check(Cache const& cache) {
  auto const proven = cache.audit();
  INFO((proven ? std::string{} : proven.error()));
  REQUIRE(proven.has_value());
}

/// Extends the KV of the position before by \p token.
inline auto next_kv(std::uint64_t before, quire::token_id token) -> std::uint64_t {
  return (before ^ static_cast<std::uint32_t>(token)) * 0x0000'0100'0000'01b3ULL + 1;
}
/// KV of "no position".
inline constexpr std::uint64_t first_kv = 0xcbf2'9ce4'8422'2325ULL;

/// Block numbers of a table as plain integers, for comparisons.
inline auto numbers(std::span<quire::block_id const> blocks) -> std::vector<std::uint32_t> {
  auto out = std::vector<std::uint32_t>{};
  for (auto const block : blocks) { out.push_back(block.value()); }
  return out;
}

/// What can be seen of a cache from outside.
struct figures {
  std::uint32_t free, evictable, cached, promised, waiting;
  friend auto operator==(figures const&, figures const&) -> bool = default;
};
/// The figures of \p cache now.
template <class Cache>
auto figures_of(Cache const& cache) -> figures {
  auto const f = cache.figures(quire::group_id{0});
  return {f.free.value(), f.evictable.value(), f.published.value(), f.promised.value(), f.waiting.value()};
}

/// Commits \p plan of \p timeline, whose work is over by now: behind a fence under a ticket that is reached.
template <class Cache>
auto commit_done(Cache& cache, typename Cache::step_plan&& plan, quire::timeline_id timeline = quire::timeline_id{0})
    -> quire::expected<void> {
  if constexpr (requires { cache.commit(std::move(plan)); }) {
    return cache.commit(std::move(plan));
  } else {
    auto const until = cache.fence().issue(timeline);
    if constexpr (requires { cache.fence().complete(timeline, until); }) { cache.fence().complete(timeline, until); }
    return cache.commit(std::move(plan), until);
  }
}

/// A cache with one scope and a device of one word per slot. \tparam P policies of the cache.
template <class P = quire::default_policies>
class engine {
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

  cache_type cache;
  quire::scope_number scope;
  std::vector<std::uint64_t> device;

  explicit engine(quire::cache_options const& options, typename P::digest digest = {},
                  typename P::admission admission = {})
      : cache{options, digest, std::move(admission)}, scope{open("tenant")},
        device(std::size_t{options.blocks.value()} * options.block_tokens.value()) {
    check(cache);
  }

  /// Figures of group \p g now.
  [[nodiscard]] auto now(std::uint32_t g = 0) const -> quire::group_figures {
    return cache.figures(quire::group_id{g});
  }
  /// The scope of \p tenant.
  auto open(std::string_view tenant) -> quire::scope_number {
    return cache.open_scope(quire::compute_identity{some_fields()}, domain_of(tenant));
  }
  /// Asks for admission.
  auto ask(text const& prompt, unsigned max_output = 1) -> quire::expected<sequence, quire::refusal> {
    auto wanted = quire::admit_request{};
    wanted.scope = scope;
    wanted.prompt = prompt;
    wanted.max_output = quire::token_count{max_output};
    return ask(wanted);
  }
  /// Asks for admission.
  auto ask(quire::admit_request const& wanted) -> quire::expected<sequence, quire::refusal> {
    auto out = cache.admit(wanted);
    check(cache);
    return out;
  }
  /// Asks for admission, which must succeed.
  auto admit(text const& prompt, unsigned max_output = 1) -> request {
    return admitted(prompt, ask(prompt, max_output));
  }
  /// Asks for admission, which must succeed.
  auto admit(quire::admit_request const& wanted) -> request {
    return admitted(text(wanted.prompt.begin(), wanted.prompt.end()), ask(wanted));
  }
  /// Plans a step in which every item must take part.
  auto plan(std::vector<work> const& items, quire::timeline_id timeline = quire::timeline_id{0}) -> step_plan {
    auto asked = std::vector<step_item>{};
    for (auto const& item : items) { asked.emplace_back(item.of->seq, item.ids); }
    auto out = cache.plan_step(asked, timeline);
    check(cache);
    REQUIRE(out.has_value());
    for (auto const& result : out->results()) { REQUIRE(result.status == quire::errc::ok); }
    return std::move(*out);
  }
  /// Launches a plan, performs its actions, writes its slots and reads back every readable position of every row.
  void execute(step_plan& planned, std::vector<work> const& items) {
    perform(planned.launch());
    check(cache);
    auto const& view = planned.view();
    REQUIRE(quire::validate(view, {.pool = now().capacity}).has_value());
    for (std::size_t i = 0; i < items.size(); ++i) { forward(view, static_cast<std::int32_t>(i), items[i]); }
  }
  /// Commits an executed plan; without a ticket its work is over.
  void commit(step_plan&& planned, std::vector<work> const& items, std::optional<quire::ticket> until = {},
              quire::timeline_id timeline = quire::timeline_id{0}) {
    REQUIRE((until ? cache.commit(std::move(planned), *until) : commit_done(cache, std::move(planned), timeline))
                .has_value());
    check(cache);
    for (auto const& item : items) { item.of->tokens = joined(item.of->tokens, item.ids); }
  }
  /// Plans, executes and commits.
  void step(std::vector<work> const& items, std::optional<quire::ticket> until = {},
            quire::timeline_id timeline = quire::timeline_id{0}) {
    auto planned = plan(items, timeline);
    execute(planned, items);
    commit(std::move(planned), items, until, timeline);
  }
  /// Computes what is missing of \p prompt in one step.
  void prefill(request& r, text const& prompt, std::optional<quire::ticket> until = {},
               quire::timeline_id timeline = quire::timeline_id{0}) {
    step({{&r, tail(prompt, r.seq.length().value())}}, until, timeline);
  }
  /// Admits and computes the whole prompt.
  auto serve(text const& prompt, unsigned max_output = 1) -> request {
    auto r = admit(prompt, max_output);
    prefill(r, prompt);
    return r;
  }
  /// Leaves \p prompt in the cache, used by nobody.
  void keep(text const& prompt) {
    auto r = serve(prompt);
    release(r);
  }
  /// Tokens of \p prompt that an admission would find now.
  auto hit(text const& prompt) -> std::uint32_t {
    auto r = admit(prompt);
    return r.seq.cached().value();
  }
  void release(request& r) {
    cache.release(std::move(r.seq));
    r.tokens.clear();
    check(cache);
  }
  /// A copy of the first \p length positions of \p parent.
  auto fork(request& parent, std::size_t length) -> request {
    auto out = cache.fork(parent.seq, quire::token_count{static_cast<std::uint32_t>(length)});
    check(cache);
    REQUIRE(out.has_value());
    return {std::move(*out), head(parent.tokens, length)};
  }
  void truncate(request& r, std::size_t length) {
    REQUIRE(cache.truncate(r.seq, quire::token_count{static_cast<std::uint32_t>(length)}).has_value());
    check(cache);
    r.tokens.resize(length);
  }
  /// Reads every committed position of \p r through its table.
  void read(request const& r) const {
    auto kv = first_kv;
    auto const unit = cache.block_tokens().value();
    REQUIRE(r.seq.length().value() == r.tokens.size());
    for (std::size_t p = 0; p < r.tokens.size(); ++p) {
      kv = next_kv(kv, r.tokens[p]);
      INFO("position " << p);
      REQUIRE(device[std::size_t{r.seq.blocks()[p / unit].value()} * unit + p % unit] == kv);
    }
  }
  /// Performs copies, moves and scrubs on the device.
  void perform(std::span<quire::action const> actions) {
    auto const unit = std::size_t{cache.block_tokens().value()};
    for (auto const& act : actions) {
      auto const to = act.target.block.value() * unit;
      auto const from = act.source.block.value() * unit;
      switch (act.kind) {
      case quire::action_kind::copy:
        for (std::size_t i = 0; i < act.tokens.value(); ++i) { device[to + i] = device[from + i]; }
        break;
      case quire::action_kind::move:
        for (std::size_t i = 0; i < unit; ++i) { device[to + i] = std::exchange(device[from + i], 0); }
        break;
      case quire::action_kind::scrub:
        for (std::size_t i = 0; i < unit; ++i) { device[to + i] = 0; }
        break;
      default: break;
      }
    }
  }
  /// Writes the slots of one row and reads back all that it may read.
  void forward(quire::batch_view const& view, std::int32_t row, work const& item) {
    auto const all = joined(item.of->tokens, item.ids);
    REQUIRE(view.row_length(row) == static_cast<std::int32_t>(all.size()));
    auto at = static_cast<std::size_t>(view.query_start[static_cast<std::size_t>(row)]);
    auto kv = first_kv;
    for (std::size_t p = 0; p < all.size(); ++p) {
      kv = next_kv(kv, all[p]);
      if (p >= item.of->tokens.size()) {
        auto const slot = view.slot[at];
        REQUIRE(view.position[at] == static_cast<std::int32_t>(p));
        if (slot >= 0) { device[static_cast<std::size_t>(slot)] = kv; }
        ++at;
      }
      auto const place = view.locate(row, quire::token_pos{static_cast<std::uint32_t>(p)});
      INFO("row " << row << " position " << p << " block " << place.block.value());
      REQUIRE(device[std::size_t{place.block.value()} * cache.block_tokens().value() + place.offset.value()] == kv);
    }
  }

private:
  auto admitted(text const& prompt, quire::expected<sequence, quire::refusal> out) -> request {
    REQUIRE(out.has_value());
    auto const found = out->cached().value();
    return {std::move(*out), head(prompt, found)};
  }
};

} // namespace quire_test
