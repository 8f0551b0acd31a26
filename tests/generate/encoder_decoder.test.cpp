// SPDX-License-Identifier: Apache-2.0
// A small encoder-decoder (S5): cross-attention keys and values are computed once per source, shared by all who read it,
// untouched by what happens to the target, and gone when the last reader is.
#include <quire/attention/attention_extent.hpp>
#include <quire/attention/attention_params.hpp>
#include <quire/attention/cross_source.hpp>
#include <quire/attention/oracle_attention.hpp>
#include <quire/attention/oracle_backend.hpp>
#include <quire/attention/strided_tensor.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/generate/generator.hpp>
#include <quire/generate/lookup_drafter.hpp>
#include <quire/generate/manual_clock.hpp>
#include <quire/generate/token_sampler.hpp>
#include <quire/model/retention.hpp>

#include "generate/toy_model.hpp"
#include "isolation/identity_fixtures.hpp"
#include "support/catch_compat.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using text = quire_test::token_list;
using numbers = std::vector<double>;

constexpr std::size_t width = 4; // two heads of two
constexpr std::size_t vocabulary = 12;

auto params(attention_rule const& rule) -> attention_params {
  return {.query_heads = 2,
          .kv_heads = 2,
          .key_width = 2,
          .value_width = 2,
          .scale = attention_params::usual_scale(2),
          .rule = rule};
}

/// Weights and the parts of the network that know nothing about caches.
struct weights {
  numbers embedding, source_embedding, q, k, v, cross_q, cross_k, cross_v, unembedding;

  weights() {
    auto random = random_state{99};
    for (auto* const w : {&embedding, &source_embedding, &unembedding}) { w->resize(vocabulary * width); }
    for (auto* const w : {&q, &k, &v, &cross_q, &cross_k, &cross_v}) { w->resize(width * width); }
    for (auto* const w : {&embedding, &source_embedding, &unembedding, &q, &k, &v, &cross_q, &cross_k, &cross_v}) {
      for (auto& x : *w) { x = 3.0 * random.uniform() - 1.5; }
    }
  }
  static auto times(numbers const& matrix, std::span<double const> x) -> numbers {
    auto out = numbers(matrix.size() / x.size());
    for (std::size_t o = 0; o < out.size(); ++o) {
      for (std::size_t i = 0; i < x.size(); ++i) { out[o] += matrix[o * x.size() + i] * x[i]; }
    }
    return out;
  }
  static auto append(numbers& to, numbers const& row) -> void { to.insert(to.end(), row.begin(), row.end()); }
  auto embed(token_id token, std::size_t position) const -> numbers {
    auto out = numbers(width);
    for (std::size_t d = 0; d < width; ++d) {
      out[d] = embedding[static_cast<std::size_t>(token) * width + d] +
               std::sin(static_cast<double>(position) * (0.7 + static_cast<double>(d)));
    }
    return out;
  }
  /// Every position of the encoder sees the whole source: there is nothing to append to.
  auto encode(text const& source) const -> numbers {
    auto mean = numbers(width);
    for (auto const token : source) {
      for (std::size_t d = 0; d < width; ++d) {
        mean[d] += source_embedding[static_cast<std::size_t>(token) * width + d] / static_cast<double>(source.size());
      }
    }
    auto out = numbers{};
    for (std::size_t j = 0; j < source.size(); ++j) {
      for (std::size_t d = 0; d < width; ++d) {
        out.push_back(std::tanh(source_embedding[static_cast<std::size_t>(source[j]) * width + d] + 2.0 * mean[d] +
                                0.1 * static_cast<double>(j)));
      }
    }
    return out;
  }
  auto rows_of(numbers const& matrix, numbers const& x) const -> numbers {
    auto out = numbers{};
    for (std::size_t i = 0; i < x.size(); i += width) { append(out, times(matrix, std::span{x}.subspan(i, width))); }
    return out;
  }
  /// Logits behind \p target under \p source without any cache.
  auto logits_of(text const& source, text const& target) const -> std::vector<float> {
    auto x = numbers{};
    for (std::size_t p = 0; p < target.size(); ++p) { append(x, embed(target[p], p)); }
    auto const attend = [](attention_rule const& rule, attention_extent const& extent, numbers const& query,
                           numbers const& key, numbers const& value) {
      auto const tensor = [](numbers const& n) { return strided_tensor<double>::packed(n, {.heads = 2, .width = 2}); };
      return oracle_attention(params(rule), extent, tensor(query), tensor(key), tensor(value)).output;
    };
    auto const n = token_count{static_cast<std::uint32_t>(target.size())};
    auto const self = attend(attention_rule::causal(), attention_extent::append({.appended = n}), rows_of(q, x),
                             rows_of(k, x), rows_of(v, x));
    for (std::size_t i = 0; i < x.size(); ++i) { x[i] += self[i]; }
    auto const encoded = encode(source);
    auto const cross = attend(
        attention_rule::cross(),
        attention_extent::cross({.queries = n, .source = token_count{static_cast<std::uint32_t>(source.size())}}),
        rows_of(cross_q, x), rows_of(cross_k, encoded), rows_of(cross_v, encoded));
    for (std::size_t i = 0; i < x.size(); ++i) { x[i] += cross[i]; }
    auto const scores = times(unembedding, std::span{x}.last(width));
    return {scores.begin(), scores.end()};
  }
};

/// Keys and values of one attention in host memory.
struct memory {
  numbers keys, values;
  oracle_backend backend;

  memory(block_count blocks, token_count block_tokens, attention_rule const& rule)
      : keys(std::size_t{blocks.value()} * block_tokens.value() * width, std::nan("")), values(keys),
        backend{{layer(blocks, block_tokens, rule)}} {}

private:
  auto layer(block_count blocks, token_count block_tokens, attention_rule const& rule) -> oracle_layer {
    auto const plane = [&](layout_role role, numbers& n) {
      return oracle_plane{
          .layout = plane_layout::nhd(
              {.role = role, .blocks = blocks, .block_tokens = block_tokens, .heads = 2, .dim = 2, .element_bits = 64}),
          .type = dtype::f64,
          .tensor = std::as_writable_bytes(std::span{n})};
    };
    return {.params = params(rule), .key = plane(layout_role::key, keys), .value = plane(layout_role::value, values)};
  }
};

/// Sources: each encoded once, its keys and values in blocks of a cache of their own.
class sources {
public:
  struct source {
    text tokens;
    cross_source held{};
    kv_cache<>::sequence seq{};
    unsigned readers = 0;
  };
  kv_cache<> cache{cache_options{.blocks = block_count{16}, .block_tokens = token_count{4}}};
  memory bytes{block_count{16}, token_count{4}, attention_rule::cross()};
  unsigned encoder_runs = 0;

  explicit sources(weights const& w) : weights_{&w} {}

  /// A reader more. \p image tells apart sources of the same tokens (S33).
  auto open(text const& tokens, unsigned image = 1) -> source& {
    auto& s = known_[{tokens, image}];
    if (!s) { s = std::make_unique<source>(source{.tokens = tokens}); }
    auto const digest = quire_test::some_digest(image);
    ++s->readers;
    if (s->held.holds(digest.bytes())) { return *s; }
    s->held.clear();
    auto fields = quire_test::some_fields();
    fields.conditions = external_conditions::of(digest);
    auto const scope = cache.open_scope(compute_identity{fields}, quire_test::domain_of("t"));
    s->seq = cache.admit({.scope = scope, .prompt = tokens, .max_output = token_count{1}}).value();
    auto const all_there = std::size_t{s->seq.shared_blocks().value()} * 4 == tokens.size();
    auto const missing = std::span{tokens}.subspan(s->seq.length().value());
    auto const item = kv_cache<>::step_item{s->seq, missing, all_there ? step_source::load : step_source::compute};
    auto plan = cache.plan_step({&item, 1}).value();
    REQUIRE(bytes.backend.run(plan.launch()).has_value());
    if (plan.view().slot[0] >= 0) {
      ++encoder_runs;
      auto const from = missing.data() - tokens.data();
      auto encoded = weights_->encode(tokens);
      encoded.erase(encoded.begin(), encoded.begin() + from * static_cast<std::ptrdiff_t>(width));
      auto const key = weights_->rows_of(weights_->cross_k, encoded);
      auto const value = weights_->rows_of(weights_->cross_v, encoded);
      REQUIRE(bytes.backend.write(layer_id{0}, plan.view(), {.key = key, .value = value}).has_value());
    }
    REQUIRE(cache.commit(std::move(plan)).has_value());
    REQUIRE(s->held.fill(digest.bytes(), s->seq.length()).has_value());
    return *s;
  }
  auto close(source& s) -> void {
    if (--s.readers > 0) { return; }
    s.held.clear();
    cache.release(std::move(s.seq));
  }

private:
  weights const* weights_;
  std::map<std::pair<text, unsigned>, std::unique_ptr<source>> known_;
};

/// The decoder. It finds the source of a row by whose row it is.
class translator {
public:
  std::map<generation_id, sources::source*> reads;

  translator(weights const& w, sources& from, block_count blocks, token_count block_tokens)
      : weights_{&w}, sources_{&from}, self_{blocks, block_tokens, attention_rule::causal()} {}
  [[nodiscard]] auto vocabulary() const noexcept -> std::size_t { return ::vocabulary; }
  [[nodiscard]] auto max_positions() const noexcept -> token_count { return token_count{100}; }
  auto run(std::span<action const> actions) -> expected<void> { return self_.backend.run(actions); }
  auto forward(forward_batch const& batch) -> expected<void> {
    auto x = numbers{};
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      weights::append(x, weights_->embed(batch.tokens[i], static_cast<std::size_t>(batch.view.position[i])));
    }
    auto const q = weights_->rows_of(weights_->q, x);
    auto const k = weights_->rows_of(weights_->k, x);
    auto const v = weights_->rows_of(weights_->v, x);
    auto out = numbers(x.size());
    REQUIRE(self_.backend.write(layer_id{0}, batch.view, {.key = k, .value = v}).has_value());
    REQUIRE(self_.backend.attend(layer_id{0}, batch.view, {.query = q}, {.output = out}).has_value());
    for (std::size_t i = 0; i < x.size(); ++i) { x[i] += out[i]; }

    auto table = std::vector<std::int32_t>{};
    auto length = std::vector<std::int32_t>{};
    auto const first = std::vector<std::int32_t>(batch.of.size());
    for (auto const id : batch.of) {
      auto const& s = *reads.at(id);
      for (std::size_t j = 0; j < 4; ++j) {
        table.push_back(j < s.seq.blocks().size() ? static_cast<std::int32_t>(s.seq.blocks()[j].value()) : -1);
      }
      length.push_back(static_cast<std::int32_t>(s.held.length().value()));
    }
    auto const cross = batch_view{.rows = batch.view.rows,
                                  .max_blocks = 4,
                                  .block_tokens = 4,
                                  .block_table = table,
                                  .first_position = first,
                                  .length = length,
                                  .query_start = batch.view.query_start};
    auto const asked = weights_->rows_of(weights_->cross_q, x);
    REQUIRE(sources_->bytes.backend.attend(layer_id{0}, cross, {.query = asked}, {.output = out}).has_value());
    for (std::size_t i = 0; i < x.size(); ++i) { x[i] += out[i]; }
    for (std::size_t w = 0; w < batch.wanted.size(); ++w) {
      auto const scores = weights::times(weights_->unembedding, std::span{x}.subspan(batch.wanted[w] * width, width));
      std::copy(scores.begin(), scores.end(), batch.logits_of(w).begin());
    }
    return {};
  }

private:
  weights const* weights_;
  sources* sources_;
  memory self_;
};
static_assert(language_model<translator>);

/// Everything together.
struct bureau {
  weights w{};
  sources from{w};
  kv_cache<> cache{cache_options{.blocks = block_count{64}, .block_tokens = token_count{3}}};
  scope_number scope = cache.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("t"));
  translator model{w, from, block_count{64}, token_count{3}};
  manual_clock time{};
  generator<kv_cache<>, translator, quire_test::shared_clock, lookup_drafter> loop;

  explicit bureau(generator_options const& how = {})
      : loop{cache, model, how, {&time}, lookup_drafter{token_count{1}}} {}
  bureau(bureau const&) = delete;

  auto translate(text const& source, unsigned outputs, text prompt = {1}, unsigned image = 1) -> generation_id {
    // Another source gives other keys of the target's deeper layers: such a network opens a scope per source (S33).
    auto const id = loop.submit({.scope = scope,
                                 .state = {.prompt = std::move(prompt), .stop = {.limit = token_count{outputs}}},
                                 .reuse = reuse_rule::none})
                        .value();
    model.reads[id] = &from.open(source, image);
    return id;
  }
  /// Readers that are over let go of their source, however they ended (case 135).
  auto let_go() -> void {
    for (auto at = model.reads.begin(); at != model.reads.end();) {
      if (!loop.result(at->first).over()) {
        ++at;
        continue;
      }
      from.close(*at->second);
      at = model.reads.erase(at);
    }
  }
  auto run() -> void {
    while (!loop.idle()) {
      REQUIRE(loop.step().has_value());
      let_go();
    }
    REQUIRE(from.cache.audit().has_value());
    REQUIRE(cache.audit().has_value());
  }
  auto check(generation_id id, text const& source) -> void {
    auto whole = loop.result(id).state.prompt;
    for (auto const token : loop.result(id).state.output) {
      CHECK(token == token_sampler::greedy(w.logits_of(source, whole)).value());
      whole.push_back(token);
    }
  }
};

} // namespace

TEST_CASE("S5: cross-attention keys and values are computed once per source and shared by its readers") {
  auto b = bureau{};
  auto const one = text{3, 4, 5, 6, 7, 8, 9, 10};
  auto const two = text{5, 4, 3, 2, 1, 0};
  auto const a = b.translate(one, 12);
  auto const c = b.translate(two, 9);
  auto const d = b.translate(one, 7, {2, 3, 4, 5});
  CHECK(b.from.encoder_runs == 2);
  CHECK(b.from.cache.live_sequences() == sequence_count{2});
  b.run();
  b.check(a, one);
  b.check(c, two);
  b.check(d, one);
  CHECK(b.loop.result(a).state.output != b.loop.result(c).state.output); // the source matters
  CHECK(b.from.encoder_runs == 2);
  CHECK(b.from.cache.live_sequences() == sequence_count{0}); // case 135: gone with the last reader
  auto const again = b.translate(one, 3);                    // its blocks are whole and still there
  CHECK(b.from.encoder_runs == 2);
  b.run();
  b.check(again, one);
  auto const tail = b.translate(two, 3); // its second block was not full: encoded again
  CHECK(b.from.encoder_runs == 3);
  b.run();
  b.check(tail, two);
}

TEST_CASE("S5: the same source tokens under another encoder identity are another source") {
  auto b = bureau{};
  auto const source = text{3, 4, 5, 6, 7, 8, 9, 10};
  b.translate(source, 3, {1}, 1);
  b.translate(source, 3, {1}, 2);
  CHECK(b.from.encoder_runs == 2);
  b.run();
}

TEST_CASE("S5: guesses that are cut off touch the target's cache and never the source's (case 136)") {
  auto b = bureau{{.draft = token_count{4}}};
  auto const source = text{3, 4, 5, 6, 7, 8, 9, 10, 11};
  auto const id = b.translate(source, 40);
  auto const keys = b.from.bytes.keys;
  auto const blocks = b.from.open(source).seq.blocks().size();
  b.run();
  b.check(id, source);
  CHECK(b.loop.result(id).drafted > b.loop.result(id).accepted);
  auto& s = b.from.open(source);
  CHECK(s.held.length() == token_count{9});
  CHECK(s.seq.blocks().size() == blocks);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    CHECK((b.from.bytes.keys[i] == keys[i] || (std::isnan(keys[i]) && std::isnan(b.from.bytes.keys[i]))));
  }
  CHECK(b.from.encoder_runs == 1);
}

TEST_CASE("S5: a source is freed on every way out: finished, cancelled, timed out, forked, preempted (case 135)") {
  auto b = bureau{{.chunk = token_count{2}}};
  auto const source = text{3, 4, 5, 6, 7};
  for (auto round = 0; round < 3; ++round) { // many batches one after the other
    auto const finishes = b.translate(source, 6);
    auto const cancelled = b.translate({1, 2, 3}, 20, {1, 2, 3, 4, 5});
    auto limited = b.translate({9, 9, 9, 9, 9}, 20);
    for (auto i = 0; i < 3; ++i) { REQUIRE(b.loop.step().has_value()); }
    auto const child = b.loop.fork(finishes, random_state{}).value();
    b.model.reads[child] = &b.from.open(source);
    CHECK(b.loop.cancel(cancelled));
    CHECK(b.loop.time_out(limited));
    b.loop.advance_epoch(running_requests::must_restart); // everybody starts again, with the same source
    b.run();
    b.let_go();
    b.check(finishes, source);
    b.check(child, source);
    b.check(cancelled, {1, 2, 3});
    b.check(limited, {9, 9, 9, 9, 9});
    CHECK(b.from.cache.live_sequences() == sequence_count{0});
    CHECK(b.cache.live_sequences() == sequence_count{0});
  }
}

TEST_CASE("S5: a bidirectional layer has no append-only cache") {
  CHECK_THROWS_AS(retention::of(attention_rule{.pattern = attention_pattern::bidirectional}), config_error);
}
