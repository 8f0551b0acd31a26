// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A language model whose answer depends on every bit that it reads.
///
/// The KV of a position is a hash of its token and of the KV before it, read back through the table; the logits are a
/// hash over the KV of all visible positions. A stale block, a foreign row or a position too many gives other tokens.

#include <quire/cache/kv_cache.hpp>
#include <quire/generate/concepts.hpp>
#include <quire/generate/forward_batch.hpp>
#include <quire/generate/generation_request.hpp>
#include <quire/generate/generation_state.hpp>
#include <quire/generate/generator.hpp>
#include <quire/generate/manual_clock.hpp>
#include <quire/generate/token_sampler.hpp>
#include <quire/view/validate.hpp>

#include "isolation/identity_fixtures.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace quire_test {

using token_list = std::vector<quire::token_id>;

/// \p n tokens that count up from \p first.
inline auto ascending(std::size_t n, quire::token_id first = 1) -> token_list {
  auto out = token_list(n);
  std::iota(out.begin(), out.end(), first);
  return out;
}

/// The network: pure functions of tokens.
struct toy_network {
  std::size_t vocabulary = 50;

  static auto next_kv(std::uint64_t before, quire::token_id token) -> std::uint64_t {
    return (before ^ static_cast<std::uint32_t>(token)) * 0x0000'0100'0000'01b3ULL + 1;
  }
  static auto mixed(std::uint64_t z) -> std::uint64_t {
    z = (z ^ (z >> 30U)) * 0xbf58'476d'1ce4'e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d0'49bb'1331'11ebULL;
    return z ^ (z >> 31U);
  }
  static constexpr std::uint64_t first_kv = 0xcbf2'9ce4'8422'2325ULL;
  /// Adds what a query sees at one position.
  static auto seen(std::uint64_t sum, std::uint64_t kv, std::size_t position) -> std::uint64_t {
    return mixed(sum + kv * (2 * position + 1));
  }
  auto logits(std::uint64_t sum, std::span<float> out) const -> void {
    for (std::size_t v = 0; v < out.size(); ++v) { out[v] = static_cast<float>(mixed(sum + v) >> 40U) * 0x1.0p-21F; }
  }
  /// Logits behind \p tokens, without any cache.
  auto logits_of(std::span<quire::token_id const> tokens) const -> std::vector<float> {
    auto kv = first_kv;
    std::uint64_t sum = 0;
    for (std::size_t p = 0; p < tokens.size(); ++p) {
      kv = next_kv(kv, tokens[p]);
      sum = seen(sum, kv, p);
    }
    auto out = std::vector<float>(vocabulary);
    logits(sum, out);
    return out;
  }
  /// Runs \p state to its end by recomputing everything for each output. \returns why it stopped
  auto recompute(quire::generation_state& state) const -> quire::stop_reason {
    auto sampler = quire::token_sampler{};
    auto tokens = state.prompt;
    tokens.insert(tokens.end(), state.output.begin(), state.output.end());
    for (;;) {
      auto const token = sampler.choose(logits_of(tokens), state.sampling, state.random).value();
      tokens.push_back(token);
      state.output.push_back(token);
      if (auto const reason = state.stop.check(state.output); reason != quire::stop_reason::none) { return reason; }
    }
  }
};

/// The network over the memory of one cache.
class toy_model {
public:
  toy_model(quire::block_count blocks, quire::token_count block_tokens, toy_network network = {})
      : network_{network}, unit_{block_tokens.value()}, device_(std::size_t{blocks.value()} * unit_, 0xdead),
        blocks_{blocks} {}

  [[nodiscard]] auto vocabulary() const noexcept -> std::size_t { return network_.vocabulary; }
  [[nodiscard]] auto max_positions() const noexcept -> quire::token_count { return positions; }
  auto run(std::span<quire::action const> actions) -> quire::expected<void> {
    for (auto const& act : actions) {
      auto const to = act.target.block.value() * unit_;
      auto const from = act.source.block.value() * unit_;
      if (act.kind == quire::action_kind::copy) {
        ++copies;
        for (std::size_t i = 0; i < act.tokens.value(); ++i) { device_[to + i] = device_[from + i]; }
      } else if (act.kind == quire::action_kind::move) {
        for (std::size_t i = 0; i < unit_; ++i) { device_[to + i] = std::exchange(device_[from + i], 0xdead); }
      } else if (act.kind == quire::action_kind::scrub) {
        for (std::size_t i = 0; i < unit_; ++i) { device_[to + i] = 0xdead; }
      }
    }
    return {};
  }
  auto forward(quire::forward_batch const& batch) -> quire::expected<void> {
    if (fails_left > 0) {
      --fails_left;
      return quire::refuse(quire::errc::not_supported);
    }
    auto const& view = batch.view;
    REQUIRE(quire::validate(view, {.pool = blocks_}).has_value());
    ++passes;
    positions_computed += batch.tokens.size();
    skipped_writes += static_cast<std::size_t>(std::count(view.slot.begin(), view.slot.end(), -1));
    std::size_t w = 0;
    for (std::int32_t row = 0; row < view.rows; ++row) {
      auto at = static_cast<std::size_t>(view.query_start[static_cast<std::size_t>(row)]);
      auto const old = view.row_length(row) - view.row_queries(row);
      auto kv = toy_network::first_kv;
      std::uint64_t sum = 0;
      for (std::int32_t p = 0; p < view.row_length(row); ++p) {
        auto const place = view.locate(row, quire::token_pos{static_cast<std::uint32_t>(p)});
        auto& cell = device_[place.block.value() * unit_ + place.offset.value()];
        if (p >= old) {
          kv = toy_network::next_kv(kv, batch.tokens[at]);
          if (view.slot[at] >= 0) { device_[static_cast<std::size_t>(view.slot[at])] = kv; }
        }
        kv = cell; // always what lies there
        sum = toy_network::seen(sum, kv, static_cast<std::size_t>(p));
        if (p < old) { continue; }
        if (w < batch.wanted.size() && batch.wanted[w] == at) { network_.logits(sum, batch.logits_of(w++)); }
        ++at;
      }
    }
    REQUIRE(w == batch.wanted.size());
    if (on_forward) { on_forward(batch); }
    return {};
  }
  [[nodiscard]] auto network() const -> toy_network const& { return network_; }

  quire::token_count positions{4096};
  std::function<void(quire::forward_batch const&)> on_forward{};
  std::size_t passes = 0;
  std::size_t positions_computed = 0;
  std::size_t skipped_writes = 0;
  std::size_t copies = 0;
  std::size_t fails_left = 0;

private:
  toy_network network_;
  std::size_t unit_;
  std::vector<std::uint64_t> device_;
  quire::block_count blocks_;
};
static_assert(quire::language_model<toy_model>);

/// A time that many can look at.
struct shared_clock {
  quire::manual_clock* time;
  [[nodiscard]] auto now() const noexcept -> quire::instant { return time->now(); }
};
static_assert(quire::clock<shared_clock>);

/// A cache, a model and a generator over them. \tparam Policies of the cache \tparam Drafter of the generator
template <class Policies = quire::default_policies, class Drafter = quire::no_drafter>
class toy_service {
public:
  using cache_type = quire::kv_cache<Policies>;
  using generator_type = quire::generator<cache_type, toy_model, shared_clock, Drafter>;

  cache_type cache;
  quire::scope_number scope;
  toy_model model;
  quire::manual_clock time{quire::instant{1000}};
  generator_type generator;

  explicit toy_service(quire::cache_options const& options = small(), quire::generator_options const& how = {},
                       Drafter drafter = {})
      : cache{options}, scope{open("tenant")}, model{options.blocks, options.block_tokens},
        generator{cache, model, how, shared_clock{&time}, std::move(drafter)} {}
  toy_service(toy_service const&) = delete;

  static auto small(unsigned blocks = 64, unsigned block_tokens = 4) -> quire::cache_options {
    auto out = quire::cache_options{};
    out.blocks = quire::block_count{blocks};
    out.block_tokens = quire::token_count{block_tokens};
    out.max_sequences = quire::sequence_count{32};
    out.max_rows = quire::row_count{32};
    return out;
  }
  auto open(std::string const& tenant) -> quire::scope_number {
    return cache.open_scope(quire::compute_identity{some_fields()}, domain_of(tenant));
  }
  auto wanting(token_list prompt, unsigned limit) const -> quire::generation_request {
    return {.scope = scope, .state = {.prompt = std::move(prompt), .stop = {.limit = quire::token_count{limit}}}};
  }
  auto submit(quire::generation_request const& request) -> quire::generation_id {
    auto const id = generator.submit(request);
    INFO((id ? std::string{} : id.error().message));
    REQUIRE(id.has_value());
    return *id;
  }
  auto submit(token_list prompt, unsigned limit) -> quire::generation_id {
    return submit(wanting(std::move(prompt), limit));
  }
  auto check() const -> void {
    auto const proven = cache.audit();
    INFO((proven ? std::string{} : proven.error()));
    REQUIRE(proven.has_value());
  }
  auto step() -> std::vector<quire::emitted_token> {
    auto const out = generator.step();
    check();
    REQUIRE(out.has_value());
    return {out->begin(), out->end()};
  }
  auto run() -> void {
    while (!generator.idle()) { step(); }
  }
  /// Requires that the outputs of \p id are those of a full recompute, as many as there are.
  auto check_output(quire::generation_id id, quire::generation_state start) const -> void {
    auto const& r = generator.result(id);
    static_cast<void>(model.network().recompute(start));
    REQUIRE(r.state.output.size() <= start.output.size());
    start.output.resize(r.state.output.size());
    CHECK(r.state.output == start.output);
  }
  auto check_output(quire::generation_id id) const -> void {
    auto start = generator.result(id).state;
    start.output.clear();
    REQUIRE(start.sampling.temperature == 0.0);
    check_output(id, start);
  }
};

} // namespace quire_test
