// SPDX-License-Identifier: Apache-2.0
#include <quire/attention/cross_source.hpp>
#include <quire/attention/oracle_backend.hpp>
#include <quire/attention/recording_backend.hpp>
#include <quire/attention/strided_tensor.hpp>

#include "mathematics/numbers.hpp"
#include "mathematics/oracle_subject.hpp"
#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"
#include "support/throwing_contract.hpp"
#include "view/view_fixture.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace {
using namespace quire;
using quire_test::backend_bench;
using quire_test::batch_row;
using quire_test::conformance_params;
using quire_test::distance;
using quire_test::numbers;
using quire_test::oracle_subject;
using quire_test::view_fixture;

constexpr auto l0 = layer_id{0};

auto plane_of(std::vector<std::byte>& tensor, std::uint32_t heads, std::uint32_t width, std::uint32_t blocks = 4,
              std::uint32_t p_b = 4) -> oracle_plane {
  auto const layout = plane_layout::nhd({.role = layout_role::key,
                                         .blocks = block_count{blocks},
                                         .block_tokens = token_count{p_b},
                                         .heads = heads,
                                         .dim = width,
                                         .element_bits = 64});
  tensor.assign(8 * (layout.last_offset() + 1), nan_poison);
  return {.layout = layout, .type = dtype::f64, .tensor = tensor};
}
auto bytes_of(std::string_view text) -> std::vector<std::byte> {
  auto const bytes = std::as_bytes(std::span{text});
  return {bytes.begin(), bytes.end()};
}
} // namespace

TEST_CASE("S20: padded, ragged and paged execution agree") {
  // three sequences: one padded tensor, one ragged one, pages; the same logical numbers in each
  auto const p = conformance_params(4, 2);
  auto bench = backend_bench<oracle_subject<>>{{p}};
  auto const rows = std::vector<batch_row>{{.request = 1, .blocks = {3, 5}, .cached = 0, .queries = 7},
                                           {.request = 2, .blocks = {1}, .cached = 0, .queries = 1},
                                           {.request = 3, .blocks = {0, 11, 6}, .cached = 0, .queries = 9}};
  bench.write(rows);
  auto const paged = bench.attend(0, rows);

  constexpr auto longest = 9U;
  auto const bad = std::numeric_limits<double>::quiet_NaN();
  auto padded = std::array{std::vector<double>(3 * longest * 2 * 8, bad), std::vector<double>(3 * longest * 2 * 4, bad),
                           std::vector<double>(3 * longest * 4 * 8, bad)};
  auto ragged = std::array<std::vector<double>, 3>{};
  auto const put = [&](std::size_t which, std::size_t at, std::vector<double> const& values) {
    std::copy(values.begin(), values.end(), padded[which].begin() + static_cast<std::ptrdiff_t>(at * values.size()));
    ragged[which].insert(ragged[which].end(), values.begin(), values.end());
  };
  for (std::uint32_t s = 0; s < 3; ++s) {
    for (std::uint32_t t = 0; t < static_cast<std::uint32_t>(rows[s].queries); ++t) {
      put(0, s * longest + t, bench.key(0, rows[s].request, t));
      put(1, s * longest + t, bench.value(0, rows[s].request, t));
      put(2, s * longest + t, bench.query(0, rows[s].request, t));
    }
  }
  auto const run = [&](std::array<std::vector<double>, 3> const& tensors, auto start_of) {
    std::vector<double> out;
    for (std::uint32_t s = 0; s < 3; ++s) {
      auto const from = [&](std::size_t which, std::uint32_t heads, std::uint32_t width) {
        auto const all = std::span{tensors[which]}.subspan(start_of(s) * heads * width);
        return strided_tensor<double>::packed(all, {.heads = heads, .width = width});
      };
      auto const n = token_count{static_cast<std::uint32_t>(rows[s].queries)};
      auto const one =
          oracle_attention(p, attention_extent::append({.appended = n}), from(2, 4, 8), from(0, 2, 8), from(1, 2, 4));
      out.insert(out.end(), one.output.begin(), one.output.end());
    }
    return out;
  };
  auto const starts = std::array<std::size_t, 3>{0, 7, 8};
  CHECK(run(padded, [](std::size_t s) { return s * longest; }) == paged.output);
  CHECK(run(ragged, [&](std::size_t s) { return starts[s]; }) == paged.output);
}

TEST_CASE("S15: where blocks lie changes nothing, to the last bit") {
  auto const p = conformance_params(2, 1);
  auto const at = [&](std::vector<std::int32_t> blocks) {
    auto bench = backend_bench<oracle_subject<>>{{p}};
    auto const rows = std::vector<batch_row>{{.request = 1, .blocks = std::move(blocks), .cached = 0, .queries = 9}};
    bench.write(rows);
    return bench.attend(0, rows).output;
  };
  auto const first = at({0, 1, 2});
  CHECK(at({2, 1, 0}) == first);
  CHECK(at({11, 3, 7}) == first);
}

TEST_CASE("S13: a latent layer caches one row for keys and values") {
  // absorbed form over pages: r_c = 4, d_R = 2
  auto const params = attention_params{.query_heads = 3, .kv_heads = 1, .key_width = 6, .value_width = 4, .scale = 0.5};
  std::vector<std::byte> tensor;
  auto backend = oracle_backend{{{.params = params, .key = plane_of(tensor, 1, 6)}}};
  auto draw = numbers{3};
  auto const cached = draw.many(7 * 6);
  auto const queries = draw.many(7 * 3 * 6);
  auto arrays = view_fixture{4, 4, 1, {{.blocks = {2, 0}, .cached = 0, .queries = 7}}};
  REQUIRE(backend.write(l0, arrays.view(), {.key = cached}));
  std::vector<double> out(7 * 3 * 4);
  REQUIRE(backend.attend(l0, arrays.view(), {.query = queries}, {.output = out}));
  auto const latents = strided_tensor<double>::packed(cached, {.heads = 1, .width = 6});
  auto const direct =
      oracle_attention(params, attention_extent::append({.appended = token_count{7}}),
                       strided_tensor<double>::packed(queries, {.heads = 3, .width = 6}), latents, latents);
  CHECK(out == direct.output);
  // values of its own would be written nowhere
  CHECK_THROWS_AS(backend.write(l0, arrays.view(), {.key = cached, .value = cached}), quire_test::contract_violation);
}

TEST_CASE("S5: cross-attention keys are computed once per source") {
  auto params = attention_params{
      .query_heads = 2, .kv_heads = 1, .key_width = 4, .value_width = 4, .scale = 0.5, .rule = attention_rule::cross()};
  std::vector<std::byte> keys;
  std::vector<std::byte> values;
  auto backend = recording_backend<oracle_backend>{
      oracle_backend{{{.params = params, .key = plane_of(keys, 1, 4), .value = plane_of(values, 1, 4)}}}};
  auto source = cross_source{};
  auto draw = numbers{4};
  auto const image = bytes_of("encoder output 1");
  auto k = draw.many(6 * 4);
  auto v = draw.many(6 * 4);
  auto const write_source = [&](std::vector<std::byte> const& identity) {
    if (source.holds(identity)) { return; } // nothing to compute
    auto arrays = view_fixture{4, 4, 1, {{.blocks = {1, 3}, .cached = 0, .queries = 6}}};
    REQUIRE(backend.write(l0, arrays.view(), {.key = k, .value = v}));
    REQUIRE(source.fill(identity, token_count{6}));
  };
  auto const decode = [&](std::uint32_t q) {
    // the table and length of the source; the rows are the target's: more of them than the source has positions
    auto arrays = view_fixture{4, 4, 1, {{.blocks = {1, 3}, .cached = 6, .queries = 0}}};
    arrays.query_start = {0, static_cast<std::int32_t>(q)};
    auto const queries = draw.many(q * 2 * 4);
    std::vector<double> out(q * 2 * 4);
    REQUIRE(backend.attend(l0, arrays.view(), {.query = queries}, {.output = out}));
    auto const direct =
        oracle_attention(params, attention_extent::cross({.queries = token_count{q}, .source = token_count{6}}),
                         strided_tensor<double>::packed(queries, {.heads = 2, .width = 4}),
                         strided_tensor<double>::packed(k, {.heads = 1, .width = 4}),
                         strided_tensor<double>::packed(v, {.heads = 1, .width = 4}));
    CHECK(out == direct.output);
  };
  for (auto const q : {9U, 1U, 1U, 1U}) { // a prompt longer than the source, then single steps
    write_source(image);
    decode(q);
  }
  auto writes = 0;
  for (auto const& record : backend.recorded()) { writes += record.call == backend_call::write ? 1 : 0; }
  CHECK(writes == 1);

  SECTION("another encoder output is another source") {
    auto const other = bytes_of("encoder output 2");
    CHECK_FALSE(source.holds(other));
    auto const refused = source.fill(other, token_count{6}); // case 136: immutable after it was filled
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == errc::illegal_transition);
    CHECK(source.holds(image));
    source.clear();
    CHECK_FALSE(source.holds(image));
    CHECK(source.length() == token_count{0});
    k = draw.many(6 * 4);
    v = draw.many(6 * 4);
    write_source(other);
    decode(2);
  }
  SECTION("filling twice with the same source changes nothing") {
    CHECK(source.fill(image, token_count{6}));
    CHECK_FALSE(source.fill(image, token_count{5}));
    CHECK(source.length() == token_count{6});
  }
  SECTION("an empty source or identity is refused") {
    CHECK_THROWS_AS(cross_source{}.fill(image, token_count{}), config_error);
    CHECK_THROWS_AS(cross_source{}.fill({}, token_count{1}), config_error);
    CHECK_FALSE(cross_source{}.holds({}));
  }
}

TEST_CASE("S5: an append-only cache of a bidirectional layer is refused") {
  auto params = conformance_params(2, 1, attention_rule::bidirectional());
  std::vector<std::byte> keys;
  std::vector<std::byte> values;
  CHECK_THROWS_WITH(
      (oracle_backend{{{.params = params, .key = plane_of(keys, 1, 8), .value = plane_of(values, 1, 4)}}}),
      quire_test::ContainsSubstring("bidirectional"));
}

TEST_CASE("S43: memory and layers that do not fit together are refused") {
  std::vector<std::byte> keys;
  std::vector<std::byte> values;
  auto const fine =
      oracle_layer{.params = conformance_params(2, 1), .key = plane_of(keys, 1, 8), .value = plane_of(values, 1, 4)};
  CHECK_NOTHROW((oracle_backend{{fine}}));
  auto const refused = [&](std::function<void(oracle_layer&)> const& change) {
    auto layer = fine;
    change(layer);
    CHECK_THROWS_AS((oracle_backend{{layer}}), config_error);
  };
  std::vector<std::byte> other;
  refused([&](auto& l) { l.key = plane_of(other, 2, 8); });
  refused([&](auto& l) { l.key = plane_of(other, 1, 4); });
  refused([&](auto& l) { l.value = plane_of(other, 1, 8); });
  refused([&](auto& l) { l.value = plane_of(other, 1, 4, 5); });
  refused([&](auto& l) { l.value = plane_of(other, 1, 4, 4, 2); });
  refused([&](auto& l) { l.value.reset(), l.params.value_width = 9; });
  refused([&](auto& l) { l.key.type = dtype::f32; });
  refused([&](auto& l) { l.key.tensor = l.key.tensor.first(8); });
  refused([&](auto& l) { l.params.scale = 0.0; });
  refused([&](auto& l) { l.group = group_id{1}; }); // a group 0 without layers
  refused([&](auto& l) { l.group = group_id{}; });  // no group at all
}

TEST_CASE("S37: views and rows that break their promises do nothing") {
  auto const p = conformance_params(2, 1);
  auto bench = backend_bench<oracle_subject<>>{{p}};
  bench.step({{.request = 1, .blocks = {2, 3}, .cached = 0, .queries = 5}});
  auto const before = bench.subject().tensors();
  auto const row = batch_row{.request = 1, .blocks = {2, 3}, .cached = 5, .queries = 2};
  auto k = std::vector<double>(2 * 8);
  auto v = std::vector<double>(2 * 4);
  auto q = std::vector<double>(2 * 2 * 8);
  auto out = std::vector<double>(2 * 2 * 4);
  auto lse = std::vector<double>(2 * 2);
  auto& backend = bench.backend();
  using violation = quire_test::contract_violation;
  auto const refused = [&](std::function<void(view_fixture&)> const& change) {
    auto arrays = bench.fixture({row});
    change(arrays);
    CHECK_THROWS_AS(backend.write(l0, arrays.view(), {.key = k, .value = v}), violation);
    CHECK_THROWS_AS(backend.attend(l0, arrays.view(), {.query = q}, {.output = out}), violation);
  };
  refused([](auto& a) { a.slot[1] = 3; });
  refused([](auto& a) { a.table[1] = 12; });
  refused([](auto& a) { a.table[0] = -1; });
  refused([](auto& a) { a.position[0] = 4; });
  refused([](auto& a) { a.length[0] = 30; });
  refused([](auto& a) { a.block_tokens = 8; });
  auto arrays = bench.fixture({row});
  auto const view = arrays.view();
  CHECK_THROWS_AS(backend.write(layer_id{1}, view, {.key = k, .value = v}), violation);
  CHECK_THROWS_AS(backend.attend(layer_id{1}, view, {.query = q}, {.output = out}), violation);
  CHECK_THROWS_AS(backend.write(l0, view, {.key = std::span{k}.first(15), .value = v}), violation);
  CHECK_THROWS_AS(backend.write(l0, view, {.key = k}), violation);
  CHECK_THROWS_AS(backend.attend(l0, view, {.query = std::span{q}.first(31)}, {.output = out}), violation);
  CHECK_THROWS_AS(backend.attend(l0, view, {.query = q}, {.output = std::span{out}.first(15)}), violation);
  CHECK_THROWS_AS(backend.attend(l0, view, {.query = q}, {.output = out, .lse = std::span{lse}.first(3)}), violation);
  CHECK_THROWS_AS(backend.run(std::array{action::scrub_block(group_id{1}, block_id{0})}), violation);
  CHECK(bench.subject().tensors() == before);
}

TEST_CASE("S44: a recorder keeps what was performed, in order") {
  std::vector<std::byte> keys;
  std::vector<std::byte> values;
  auto const p = conformance_params(2, 1);
  auto backend = recording_backend<oracle_backend>{
      oracle_backend{{{.params = p, .key = plane_of(keys, 1, 8), .value = plane_of(values, 1, 4)}}}};
  auto draw = numbers{6};
  auto const k = draw.many(5 * 8);
  auto const v = draw.many(5 * 4);
  auto const q = draw.many(5 * 2 * 8);
  std::vector<double> out(5 * 2 * 4);
  auto arrays = view_fixture{4, 4, 2, {{.blocks = {2, 0}, .cached = 0, .queries = 5}}};
  auto const scrub = action::scrub_block(group_id{0}, block_id{2});
  REQUIRE(backend.run(std::array{scrub}));
  REQUIRE(backend.write(l0, arrays.view(), {.key = k, .value = v}));
  REQUIRE(backend.attend(l0, arrays.view(), {.query = q}, {.output = out}));
  CHECK_FALSE(
      backend.run(std::array{action::load_block(group_id{0}, {tier_id{1}, block_id{0}}, block_id{1}, token_count{1})}));
  auto const view = backend_record{.call = backend_call::write,
                                   .layer = l0,
                                   .slots = {8, 9, 10, 11, 0},
                                   .positions = {0, 1, 2, 3, 4},
                                   .lengths = {5},
                                   .query_start = {0, 5},
                                   .blocks = {2, 0}};
  REQUIRE(backend.recorded().size() == 3);
  CHECK(backend.recorded()[0] == backend_record{.call = backend_call::run, .actions = {scrub}});
  CHECK(backend.recorded()[1] == view);
  CHECK(backend.recorded()[2].call == backend_call::attend);
  CHECK(backend.recorded()[2].blocks == view.blocks);
  backend.clear();
  CHECK(backend.recorded().empty());
}

TEST_CASE("S44: without memory for the record nothing is performed") {
  struct counting_backend : null_backend<> {
    explicit counting_backend(int& counter) : calls{&counter} {}
    int* calls;
    auto run(std::span<action const>) const -> expected<void> {
      ++*calls;
      return {};
    }
    auto write(layer_id, batch_view const&, kv_input const&) const -> expected<void> {
      ++*calls;
      return {};
    }
  };
  struct state {
    int calls = 0;
    recording_backend<counting_backend> backend = recording_backend<counting_backend>{counting_backend{calls}};
    view_fixture arrays = view_fixture{4, 4, 2, {{.blocks = {2, 0}, .cached = 0, .queries = 5}}};
  };
  auto const setup = [] { return std::make_unique<state>(); };
  auto const unchanged = [](std::unique_ptr<state> const& s) {
    CHECK(s->calls == 0);
    CHECK(s->backend.recorded().empty());
  };
  auto const actions = std::array{action::scrub_block(group_id{0}, block_id{2})};
  CHECK(quire_test::fail_each_allocation(
            setup, [&](std::unique_ptr<state>& s) { static_cast<void>(s->backend.run(actions)); }, unchanged) > 0);
  CHECK(quire_test::fail_each_allocation(
            setup, [&](std::unique_ptr<state>& s) { static_cast<void>(s->backend.write(l0, s->arrays.view(), {})); },
            unchanged) > 1);
}
