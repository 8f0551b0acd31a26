// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One suite for every model of `attention_backend` that computes: what docs/concepts/attention_backend.md promises and
/// numbers can show. Run it over a backend of your own:
///
/// ```cpp
/// struct my_subject {
///   using real = float;                                   // element type of rows
///   static constexpr auto storage = quire::dtype::bf16;   // how a written key or value comes back
///   static constexpr auto tolerance = 1e-5;               // of outputs and log-sum-exps, |values| <= 2
///   explicit my_subject(quire_test::backend_plan const& plan);   // one group, one layer per params, memory of its own
///   auto backend() -> my_backend&;
///   void fill(std::byte value);                           // overwrites all memory of the cache
/// };
/// TEMPLATE_TEST_CASE("…", "", my_subject) { quire_test::check_attention_backend<TestType>(); }
/// ```
/// Keys, values and queries are functions of request and position, so the suite needs no memory of its own: what a row
/// must see is computed by `oracle_attention` from the request, never from a table.

#include <quire/attention/alibi_slopes.hpp>
#include <quire/attention/concepts.hpp>
#include <quire/attention/element_codec.hpp>
#include <quire/attention/kv_rows.hpp>
#include <quire/attention/oracle_attention.hpp>
#include <quire/attention/output_rows.hpp>
#include <quire/attention/query_rows.hpp>
#include <quire/view/action.hpp>
#include <quire/view/host_executor.hpp>

#include "mathematics/numbers.hpp"
#include "support/catch_compat.hpp"
#include "view/view_fixture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace quire_test {

/// What a subject is to be made for.
struct backend_plan {
  std::uint32_t blocks = 12;
  std::uint32_t block_tokens = 4;
  std::vector<quire::attention_params> layers = {};
};

/// One request in a step: where its positions lie, how many are cached, how many are new.
struct batch_row {
  std::uint32_t request = 0;
  std::vector<std::int32_t> blocks = {};
  std::int32_t cached = 0;
  std::int32_t queries = 0;
  std::int32_t first = 0;
  bool write = true; ///< false: slots are −1
};

/// A subject with the suite's view of it.
template <class Subject>
class backend_bench {
public:
  using real = typename Subject::real;

  explicit backend_bench(std::vector<quire::attention_params> layers, std::uint32_t blocks = 12,
                         std::uint32_t block_tokens = 4)
      : plan_{.blocks = blocks, .block_tokens = block_tokens, .layers = std::move(layers)}, subject_{plan_} {
    subject_.fill(quire::nan_poison); // whatever is read without having been written shows
  }

  [[nodiscard]] auto backend() -> decltype(auto) { return subject_.backend(); }
  [[nodiscard]] auto subject() -> Subject& { return subject_; }

  /// Key of a request's position, all heads; what the engine hands to the backend.
  [[nodiscard]] auto key(std::size_t layer, std::uint32_t request, std::uint32_t at) const -> std::vector<real> {
    auto const& p = plan_.layers[layer];
    return draw(1 + layer * 8, request, at, std::size_t{p.kv_heads} * p.key_width);
  }
  [[nodiscard]] auto value(std::size_t layer, std::uint32_t request, std::uint32_t at) const -> std::vector<real> {
    auto const& p = plan_.layers[layer];
    return draw(2 + layer * 8, request, at, std::size_t{p.kv_heads} * p.value_width);
  }
  [[nodiscard]] auto query(std::size_t layer, std::uint32_t request, std::uint32_t at) const -> std::vector<real> {
    auto const& p = plan_.layers[layer];
    return draw(3 + layer * 8, request, at, std::size_t{p.query_heads} * p.key_width);
  }

  /// Outputs of one layer for the new positions of a request: from the definition, over keys as they are stored.
  [[nodiscard]] auto expected(std::size_t layer, batch_row const& row) const -> quire::attention_output {
    auto const& p = plan_.layers[layer];
    auto const stored = [](real x) { return quire::stored_value(Subject::storage, static_cast<double>(x)); };
    auto const k = [&](quire::tensor_place const& at) {
      return stored(key(layer, row.request, at.token)[at.head * p.key_width + at.dim]);
    };
    auto const v = [&](quire::tensor_place const& at) {
      return stored(value(layer, row.request, at.token)[at.head * p.value_width + at.dim]);
    };
    auto const q = [&](quire::tensor_place const& at) {
      auto const position = static_cast<std::uint32_t>(row.cached) + at.token;
      return static_cast<double>(query(layer, row.request, position)[at.head * p.key_width + at.dim]);
    };
    return quire::oracle_attention(
        p,
        quire::attention_extent::append({.cached = quire::token_count{static_cast<std::uint32_t>(row.cached)},
                                         .appended = quire::token_count{static_cast<std::uint32_t>(row.queries)}}),
        q, k, v);
  }

  /// Arrays of the view of \p rows.
  [[nodiscard]] auto fixture(std::vector<batch_row> const& rows, std::int32_t columns = 16) const -> view_fixture {
    std::vector<view_row> described;
    for (auto const& row : rows) {
      described.push_back({.blocks = row.blocks, .first = row.first, .cached = row.cached, .queries = row.queries});
    }
    auto out = view_fixture{static_cast<std::int32_t>(plan_.block_tokens), columns,
                            static_cast<std::int32_t>(rows.size()) + 2, described};
    std::size_t i = 0;
    for (auto const& row : rows) {
      for (auto k = 0; k < row.queries; ++k, ++i) {
        if (!row.write) { out.slot[i] = -1; }
      }
    }
    return out;
  }
  /// Writes the new positions of \p rows in every layer.
  void write(std::vector<batch_row> const& rows) {
    auto const arrays = fixture(rows);
    for (std::size_t layer = 0; layer < plan_.layers.size(); ++layer) {
      std::vector<real> keys;
      std::vector<real> values;
      for (auto const& row : rows) {
        for (auto at = row.cached; at < row.cached + row.queries; ++at) {
          auto const k = key(layer, row.request, static_cast<std::uint32_t>(at));
          auto const v = value(layer, row.request, static_cast<std::uint32_t>(at));
          keys.insert(keys.end(), k.begin(), k.end());
          values.insert(values.end(), v.begin(), v.end());
        }
      }
      REQUIRE(backend().write(quire::layer_id{static_cast<std::uint32_t>(layer)}, arrays.view(),
                              quire::kv_rows<real>{.key = keys, .value = values}));
    }
  }
  /// Outputs of one layer for all new positions of \p rows, in their order, and the log-sum-exps.
  struct answer {
    std::vector<real> output;
    std::vector<real> lse;
  };
  [[nodiscard]] auto attend(std::size_t layer, std::vector<batch_row> const& rows, bool with_lse = true) -> answer {
    auto const& p = plan_.layers[layer];
    auto const arrays = fixture(rows);
    std::vector<real> queries;
    for (auto const& row : rows) {
      for (auto at = row.cached; at < row.cached + row.queries; ++at) {
        auto const q = query(layer, row.request, static_cast<std::uint32_t>(at));
        queries.insert(queries.end(), q.begin(), q.end());
      }
    }
    auto const positions = arrays.position.size();
    auto const poison = std::numeric_limits<real>::quiet_NaN(); // an output that is not written shows
    auto out = answer{.output = std::vector<real>(positions * p.query_heads * p.value_width, poison),
                      .lse = std::vector<real>(with_lse ? positions * p.query_heads : 0, poison)};
    REQUIRE(backend().attend(quire::layer_id{static_cast<std::uint32_t>(layer)}, arrays.view(),
                             quire::query_rows<real>{.query = queries},
                             quire::output_rows<real>{.output = out.output, .lse = out.lse}));
    return out;
  }
  /// Attends in every layer and compares with the definition.
  void check_reads(std::vector<batch_row> const& rows) {
    for (std::size_t layer = 0; layer < plan_.layers.size(); ++layer) {
      auto const found = attend(layer, rows);
      std::vector<double> output;
      std::vector<double> lse;
      for (auto const& row : rows) {
        auto const wanted = expected(layer, row);
        output.insert(output.end(), wanted.output.begin(), wanted.output.end());
        lse.insert(lse.end(), wanted.lse.begin(), wanted.lse.end());
      }
      INFO("layer " << layer);
      CHECK(distance(found.output, output) <= Subject::tolerance);
      CHECK(distance(found.lse, lse) <= Subject::tolerance);
    }
  }
  /// One step as an engine does it: write, then attend.
  void step(std::vector<batch_row> const& rows) {
    write(rows);
    check_reads(rows);
  }

private:
  [[nodiscard]] static auto draw(std::uint64_t kind, std::uint32_t request, std::uint32_t at, std::size_t n)
      -> std::vector<real> {
    auto source = numbers{kind * 1'000'003U + std::uint64_t{request} * 10'007U + at};
    static_cast<void>(source.next());
    auto const wide = source.many(n, 1.5);
    return {wide.begin(), wide.end()};
  }

  backend_plan plan_;
  Subject subject_;
};

/// Parameters of one layer of the suite.
[[nodiscard]] inline auto conformance_params(std::uint32_t h_q, std::uint32_t h_kv, quire::attention_rule rule = {})
    -> quire::attention_params {
  auto out = quire::attention_params{
      .query_heads = h_q, .kv_heads = h_kv, .key_width = 8, .value_width = 4, .scale = 0.5, .rule = rule};
  if (rule.alibi) { out.alibi_slopes = quire::alibi_slopes(h_q); }
  if (rule.learned_sink) {
    for (std::uint32_t i = 0; i < h_q; ++i) { out.sink_logits.push_back(0.5 - 0.25 * i); }
  }
  return out;
}

/// The suite. Call it from a test case of its own.
template <class Subject>
void check_attention_backend() {
  using namespace quire;
  using bench = backend_bench<Subject>;
  using backend_type = std::remove_reference_t<decltype(std::declval<bench&>().backend())>;
  STATIC_REQUIRE(attention_backend<backend_type>);
  constexpr auto g0 = group_id{0};

  SECTION("rule 1: prefill, append and decode give the definition, in every layer") {
    auto b = bench{{conformance_params(4, 2), conformance_params(4, 4), conformance_params(4, 1)}};
    b.step({{.request = 1, .blocks = {7, 2}, .cached = 0, .queries = 6}});
    b.step({{.request = 1, .blocks = {7, 2, 9}, .cached = 6, .queries = 4}});
    for (auto at = 10; at < 14; ++at) { b.step({{.request = 1, .blocks = {7, 2, 9, 0}, .cached = at, .queries = 1}}); }
  }
  SECTION("rule 1: one step, many steps and every chunk agree") {
    for (auto const chunk : {1, 2, 3, 5, 11}) {
      auto b = bench{{conformance_params(2, 1)}};
      for (auto at = 0; at < 11; at += chunk) {
        b.step({{.request = 3, .blocks = {4, 1, 8}, .cached = at, .queries = std::min(chunk, 11 - at)}});
      }
    }
  }
  SECTION("rule 2: rows of different lengths in one step, in any order (S19, S20)") {
    auto b = bench{{conformance_params(4, 2)}};
    auto rows = std::vector<batch_row>{{.request = 1, .blocks = {3, 5}, .cached = 0, .queries = 7},
                                       {.request = 2, .blocks = {1}, .cached = 0, .queries = 1},
                                       {.request = 3, .blocks = {}, .cached = 0, .queries = 0},
                                       {.request = 4, .blocks = {0, 11, 6}, .cached = 0, .queries = 9}};
    b.step(rows);
    rows = {{.request = 4, .blocks = {0, 11, 6}, .cached = 9, .queries = 2},
            {.request = 1, .blocks = {3, 5}, .cached = 7, .queries = 1},
            {.request = 2, .blocks = {1}, .cached = 1, .queries = 3}};
    b.write(rows);
    auto order = std::vector<std::size_t>{0, 1, 2};
    do {
      std::vector<batch_row> permuted;
      for (auto const i : order) { permuted.push_back(rows[i]); }
      b.check_reads(permuted);
    } while (std::next_permutation(order.begin(), order.end()));
  }
  SECTION("rule 3: nothing beyond the length, no other block, no unwritten slot is read") {
    // the bench poisons all memory; requests here leave partial blocks and never-written ones next to each other
    auto b = bench{{conformance_params(2, 2)}};
    b.step({{.request = 1, .blocks = {5}, .cached = 0, .queries = 1}});
    b.step({{.request = 1, .blocks = {5, 6}, .cached = 1, .queries = 4}});
    b.step({{.request = 2, .blocks = {4, 7}, .cached = 0, .queries = 5}});
  }
  SECTION("rule 4: a slot of -1 is computed and not written (S22)") {
    auto b = bench{{conformance_params(2, 1)}};
    b.step({{.request = 1, .blocks = {2, 3}, .cached = 0, .queries = 8}});
    // the last position again, its key is there already
    auto const again = batch_row{.request = 1, .blocks = {2, 3}, .cached = 7, .queries = 1, .write = false};
    // what would be written is another request's: if it is, the next read shows it
    auto other = again;
    other.request = 9;
    b.write({other});
    b.check_reads({again});
  }
  SECTION("rule 5: blocks may be shared by readers (S23)") {
    auto b = bench{{conformance_params(2, 1)}};
    b.step({{.request = 1, .blocks = {2, 3}, .cached = 0, .queries = 8}});
    b.check_reads({{.request = 1, .blocks = {2, 3}, .cached = 7, .queries = 1, .write = false},
                   {.request = 1, .blocks = {2}, .cached = 2, .queries = 1, .write = false},
                   {.request = 1, .blocks = {2, 3}, .cached = 4, .queries = 2, .write = false}});
  }
  SECTION("rule 6: copies, moves and scrubs act on what is read") {
    auto b = bench{{conformance_params(2, 1), conformance_params(2, 2)}};
    b.step({{.request = 1, .blocks = {2, 3}, .cached = 0, .queries = 6}});
    REQUIRE(b.backend().run(std::array{action::copy_block(g0, block_id{3}, block_id{8}, token_count{2}),
                                       action::move_block(g0, block_id{2}, block_id{10}),
                                       action::scrub_block(g0, block_id{2}), action::scrub_block(g0, block_id{3})}));
    b.step({{.request = 1, .blocks = {10, 8}, .cached = 6, .queries = 2}});
    // in order: 8 is overwritten only after it was copied on
    REQUIRE(b.backend().run(std::array{action::copy_block(g0, block_id{8}, block_id{0}, token_count{4}),
                                       action::copy_block(g0, block_id{10}, block_id{8}, token_count{4})}));
    b.check_reads({{.request = 1, .blocks = {8, 0}, .cached = 7, .queries = 1, .write = false}});
    // a scrubbed block reads the same for everyone: nothing of request 1 is left in block 2
    auto const scrubbed = b.attend(0, {{.request = 5, .blocks = {2}, .cached = 3, .queries = 1, .write = false}});
    REQUIRE(b.backend().run(std::array{action::scrub_block(g0, block_id{9})}));
    auto const fresh = b.attend(0, {{.request = 5, .blocks = {9}, .cached = 3, .queries = 1, .write = false}});
    CHECK(distance(scrubbed.output, fresh.output) == 0.0);
  }
  SECTION("rule 6: a list with a store or load is refused whole, unless there is a tier") {
    auto b = bench{{conformance_params(2, 1)}};
    b.step({{.request = 1, .blocks = {2}, .cached = 0, .queries = 4}});
    auto const done =
        b.backend().run(std::array{action::scrub_block(g0, block_id{2}),
                                   action::store_block(g0, block_id{2}, {tier_id{1}, block_id{0}}, token_count{4})});
    if (!done) {
      CHECK(done.error() == errc::not_supported);
      b.check_reads({{.request = 1, .blocks = {2}, .cached = 3, .queries = 1, .write = false}});
    }
  }
  SECTION("rule 7: windows, sinks and chunks; tables that begin later; holes") {
    auto b = bench{{conformance_params(2, 1, attention_rule::sliding_window(token_count{5})),
                    conformance_params(4, 2, attention_rule::sliding_window(token_count{1}))}};
    b.step({{.request = 1, .blocks = {0, 1, 2}, .cached = 0, .queries = 12}});
    b.step({{.request = 1, .blocks = {2, 5}, .cached = 12, .queries = 1, .first = 8}});
    auto sinks = bench{
        {conformance_params(2, 2, attention_rule::sink_window({.sinks = token_count{2}, .window = token_count{3}}))}};
    sinks.step({{.request = 1, .blocks = {0, 1, 2, 3}, .cached = 0, .queries = 14}});
    sinks.step({{.request = 1, .blocks = {0, -1, -1, 3}, .cached = 14, .queries = 1}}); // 0, 1 and 12, 13, 14
    auto chunks = bench{{conformance_params(2, 1, attention_rule::chunked(token_count{6}))}};
    chunks.step({{.request = 1, .blocks = {0, 1, 2, 3}, .cached = 0, .queries = 15}});
    chunks.step({{.request = 1, .blocks = {3, 4}, .cached = 15, .queries = 2, .first = 12}});
  }
  SECTION("rule 8: soft-cap, ALiBi and learned sinks") {
    auto rule = attention_rule::causal();
    rule.soft_cap = 0.75F;
    auto alibi = rule;
    alibi.alibi = true;
    auto sink = attention_rule::sliding_window(token_count{3});
    sink.learned_sink = true;
    auto b = bench{{conformance_params(4, 2, rule), conformance_params(4, 2, alibi), conformance_params(4, 2, sink)}};
    b.step({{.request = 1, .blocks = {6, 2}, .cached = 0, .queries = 5},
            {.request = 2, .blocks = {1}, .cached = 0, .queries = 2}});
    b.step({{.request = 1, .blocks = {6, 2}, .cached = 5, .queries = 2},
            {.request = 2, .blocks = {1}, .cached = 2, .queries = 1}});
  }
  SECTION("rule 9: without a span for them, log-sum-exps are not wanted") {
    auto b = bench{{conformance_params(2, 1)}};
    b.step({{.request = 1, .blocks = {2}, .cached = 0, .queries = 3}});
    auto const row = batch_row{.request = 1, .blocks = {2}, .cached = 2, .queries = 1, .write = false};
    CHECK(b.attend(0, {row}, false).output == b.attend(0, {row}).output);
  }
  SECTION("rule 10: an empty step is a success") {
    auto b = bench{{conformance_params(2, 1)}};
    b.step({});
    REQUIRE(b.backend().run({}));
  }
  SECTION("blocks of one token, and blocks longer than the sequence") {
    auto ones = bench{{conformance_params(2, 1)}, 12, 1};
    ones.step({{.request = 1, .blocks = {7, 2, 9}, .cached = 0, .queries = 3}});
    ones.step({{.request = 1, .blocks = {7, 2, 9, 4}, .cached = 3, .queries = 1}});
    auto longer = bench{{conformance_params(2, 1)}, 2, 64};
    longer.step({{.request = 1, .blocks = {1}, .cached = 0, .queries = 5}});
    longer.step({{.request = 1, .blocks = {1}, .cached = 5, .queries = 2}});
  }
}

} // namespace quire_test
