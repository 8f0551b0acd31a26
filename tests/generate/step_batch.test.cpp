// SPDX-License-Identifier: Apache-2.0
// What a step asks of the cache, what the model is fed, and whose logits are whose.
#include <quire/cache/kv_cache.hpp>
#include <quire/generate/detail/cache_calls.hpp>
#include <quire/generate/detail/step_batch.hpp>

#include "isolation/identity_fixtures.hpp"
#include "support/catch_compat.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using text = std::vector<token_id>;
using batch_type = detail::step_batch<kv_cache<>>;
using record = batch_type::record;

/// Writes down what it is given; the logits of position i of the batch are i, i + 0.5.
struct noting_model {
  text tokens{};
  std::vector<std::uint32_t> wanted{};
  std::vector<generation_id> of{};
  std::size_t rows = 0;
  std::size_t groups = 0;
  unsigned passes = 0;
  errc answer = errc::ok;

  auto run(std::span<action const>) -> expected<void> { return {}; }
  auto forward(forward_batch const& batch) -> expected<void> {
    ++passes;
    tokens.assign(batch.tokens.begin(), batch.tokens.end());
    wanted.assign(batch.wanted.begin(), batch.wanted.end());
    of.assign(batch.of.begin(), batch.of.end());
    rows = static_cast<std::size_t>(batch.view.rows);
    groups = batch.groups.size();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      batch.logits_of(i)[0] = static_cast<float>(wanted[i]);
      batch.logits_of(i)[1] = static_cast<float>(wanted[i]) + 0.5F;
    }
    if (answer != errc::ok) { return refuse(answer); }
    return {};
  }
};

struct fixture {
  kv_cache<> cache;
  noting_model model{};
  batch_type batch;
  std::vector<record> members{};

  explicit fixture(token_count chunk = {}, cache_options const& options = small())
      : cache{options}, batch{cache, chunk, 2} {
    members.reserve(8);
  }
  fixture(fixture const&) = delete;
  static auto small() -> cache_options {
    return {.blocks = block_count{8}, .block_tokens = token_count{4}, .max_rows = row_count{8}};
  }
  /// Lets in a member with \p prompt and room for \p outputs.
  auto member(text const& prompt, unsigned outputs) -> record& {
    auto const scope = cache.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("t"));
    auto& m = members.emplace_back();
    m.id = generation_id{members.size()};
    m.text = prompt;
    m.seq =
        cache.admit({.scope = scope, .prompt = prompt, .max_output = token_count{outputs}, .reuse = reuse_rule::none})
            .value();
    return m;
  }
  auto gather(text const& guesses = {}) -> void {
    auto all = std::vector<record*>{};
    for (auto& m : members) { all.push_back(&m); }
    batch.gather(all, [&](record& m) {
      m.guesses = m.pending() == 1 ? guesses : text{};
      return static_cast<std::uint32_t>(m.guesses.size());
    });
  }
  auto step(text const& guesses = {}) -> void {
    gather(guesses);
    auto plan = batch.plan().value();
    REQUIRE(batch.run(plan, model).has_value());
    REQUIRE(detail::commit_behind(cache, std::move(plan)).has_value());
    REQUIRE(cache.audit().has_value());
  }
};
} // namespace

TEST_CASE("S39: a chunk asks for no output, the end of a prompt for one, and every row has its own logits") {
  auto f = fixture{token_count{3}};
  auto& a = f.member({1, 2, 3, 4, 5}, 3);
  auto& b = f.member({7, 8}, 3);
  f.step();
  CHECK(f.model.tokens == text{1, 2, 3, 7, 8});
  CHECK(f.model.wanted == std::vector<std::uint32_t>{4});
  CHECK(f.model.of == std::vector<generation_id>{a.id, b.id});
  CHECK(f.batch.outputs() == 1);
  auto rows = f.batch.rows();
  CHECK(rows[0].outputs == 0);
  CHECK(rows[0].length == 0);
  CHECK(rows[0].tokens == 3);
  CHECK(rows[1].outputs == 1);
  CHECK(f.batch.logits(rows[1], 0)[1] == 4.5F);
  b.text.push_back(9);
  f.step();
  CHECK(f.model.tokens == text{4, 5, 9});
  rows = f.batch.rows();
  CHECK(rows[0].length == 3);
  CHECK(f.batch.logits(rows[0], 0)[0] == 1.0F);
  CHECK(f.batch.logits(rows[1], 0)[0] == 2.0F);
  CHECK(a.seq.length() == token_count{5});
}

TEST_CASE("B6: guesses are fed behind the last output by count, and each has logits") {
  auto f = fixture{};
  auto& a = f.member({1, 2, 3}, 6);
  f.step();
  a.text.push_back(4);
  f.step({5, 6});
  CHECK(f.model.tokens == text{4, 5, 6});
  CHECK(f.model.wanted == std::vector<std::uint32_t>{0, 1, 2});
  auto const& r = f.batch.rows()[0];
  CHECK(r.outputs == 3);
  CHECK(f.batch.logits(r, 2)[0] == 2.0F);
  CHECK(a.seq.length() == token_count{6});
  CHECK(a.seq.resolved() == token_count{3}); // what is guessed has no ids yet
}

TEST_CASE("S41: who forwards its last output wants no logits") {
  auto f = fixture{};
  auto& a = f.member({1, 2}, 2);
  f.step();
  a.text.push_back(3);
  a.closing = stop_reason::limit;
  f.step();
  CHECK(f.model.tokens == text{3});
  CHECK(f.model.wanted.empty());
  CHECK(f.batch.rows()[0].outputs == 0);
}

TEST_CASE("S18: an item that is refused is fed nothing, and its row says why") {
  auto f = fixture{};
  f.member({1, 2}, 1);
  auto& b = f.member({3, 4}, 1);
  f.cache.advance_epoch(running_requests::must_restart);
  auto& c = f.member({5, 6}, 1);
  f.step();
  auto const rows = f.batch.rows();
  CHECK(rows[0].status == errc::stale_epoch);
  CHECK(rows[1].status == errc::stale_epoch);
  CHECK(rows[2].status == errc::ok);
  CHECK(rows[1].of == &b);
  CHECK(f.model.tokens == text{5, 6});
  CHECK(f.model.of == std::vector<generation_id>{c.id});
  CHECK(f.batch.logits(rows[2], 0)[0] == 1.0F);
}

TEST_CASE("S18: a step of refused items alone has no pass") {
  auto f = fixture{};
  f.member({1, 2}, 1);
  f.cache.advance_epoch(running_requests::must_restart);
  f.step();
  CHECK(f.model.passes == 0);
  CHECK(f.batch.outputs() == 0);
}

TEST_CASE("S26: a pass that fails leaves every length as it was") {
  auto f = fixture{};
  auto& a = f.member({1, 2, 3}, 2);
  f.model.answer = errc::not_supported;
  f.gather();
  {
    auto plan = f.batch.plan().value();
    CHECK(f.batch.run(plan, f.model).error() == errc::not_supported);
  }
  CHECK(a.seq.length() == token_count{});
  f.model.answer = errc::ok;
  f.step();
  CHECK(a.seq.length() == token_count{3});
}

TEST_CASE("S29: a model of several layer groups gets a view of each, of one group none beside the first") {
  auto f = fixture{};
  f.member({1, 2, 3}, 2);
  f.step();
  CHECK(f.model.groups == 0);
  auto options = fixture::small();
  options.groups = {{}, {.keeps = retention::sliding_window(token_count{4}), .blocks = block_count{8}}};
  auto g = fixture{{}, options};
  g.member({1, 2, 3}, 2);
  g.step();
  CHECK(g.model.groups == 2);
  CHECK(g.model.rows == 1);
}
