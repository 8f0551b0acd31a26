// SPDX-License-Identifier: Apache-2.0
// A retention of an engine's own has an effect in the cache, and where nothing is evicted nothing is, in groups of windows
// either.
#include <quire/cache/kv_cache.hpp>
#include <quire/cache/policies.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/types.hpp>
#include <quire/model/resident_blocks.hpp>
#include <quire/model/retention.hpp>
#include <quire/prefix/no_eviction.hpp>
#include <quire/sequence/standard_retention.hpp>

#include "storage/group_fixture.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::group_engine;

// Keeps one block more than the window needs: room to go back by a block.
struct one_block_more : standard_retention {
  static constexpr auto resident(token_pos oldest, retention const& keeps, token_count block) -> resident_blocks {
    auto out = standard_retention::resident(oldest, keeps, block);
    if (!(out.dead.begin < out.dead.end)) { return out; }
    out.dead.end = logical_block{out.dead.end.value() - 1};
    out.tail_begin = std::min(out.tail_begin, token_pos{out.dead.end.value() * block.value()});
    return out;
  }
  static constexpr auto peak_blocks(retention const& keeps, token_count length, paging pages) -> block_count {
    return standard_retention::peak_blocks(keeps, length, pages) + block_count{1};
  }
};
static_assert(retention_policy<one_block_more>);

// Keeps the whole block in which the sinks end, and one beyond it.
struct every_sink : standard_retention {
  static constexpr auto resident(token_pos oldest, retention const& keeps, token_count block) -> resident_blocks {
    auto out = standard_retention::resident(oldest, keeps, block);
    if (out.dead.begin < out.dead.end) { out.dead.begin = logical_block{out.dead.begin.value() + 1}; }
    return out;
  }
  static constexpr auto peak_blocks(retention const& keeps, token_count length, paging pages) -> block_count {
    return standard_retention::peak_blocks(keeps, length, pages) + block_count{1};
  }
};

template <class Retention>
struct keeping : default_policies {
  using retention = Retention;
};
struct never_evicting : default_policies {
  using eviction = no_eviction;
};

auto options_of(retention const& keeps, std::uint32_t blocks, std::uint32_t windows) -> cache_options {
  auto out = cache_options{};
  out.blocks = block_count{blocks};
  out.block_tokens = token_count{4};
  out.max_append = token_count{4};
  out.groups = {{.keeps = retention::full(), .blocks = {}, .block_tokens = {}, .block_bytes = {}},
                {.keeps = keeps, .blocks = block_count{windows}, .block_tokens = {}, .block_bytes = {}}};
  return out;
}
// Leaves a text in the cache, used by nobody.
template <class Engine>
void keep(Engine& e, quire_test::text const& prompt) {
  auto r = e.admit(prompt);
  e.prefill(r, prompt, 4);
  e.release(r);
}
// Which blocks of the second group a sequence of 24 positions holds, and where it can go back to.
template <class Retention>
auto life(retention const& keeps) {
  struct seen {
    std::vector<bool> held;
    std::uint32_t promised;
  };
  auto e = group_engine<keeping<Retention>>{options_of(keeps, 32, 32)};
  auto r = e.admit(ascending(24), 8);
  auto const promised = e.now(1).promised.value();
  e.prefill(r, ascending(24), 4);
  return seen{e.held(r, 1), promised};
}
} // namespace

TEST_CASE("S44: a retention that keeps one block more does so in the cache, and is promised it") {
  auto const window = retention::sliding_window(token_count{6});
  auto const standard = life<standard_retention>(window);
  auto const more = life<one_block_more>(window);
  CHECK(standard.held == std::vector<bool>{false, false, false, false, true, true});
  CHECK(more.held == std::vector<bool>{false, false, false, true, true, true});
  CHECK(more.promised == standard.promised + 1);
}

TEST_CASE("S44: a retention that keeps every sink does so in the cache, and a hit needs them all") {
  auto const sinks = retention::sink_window({.sinks = token_count{3}, .window = token_count{6}});
  CHECK(life<standard_retention>(sinks).held == std::vector<bool>{true, false, false, false, true, true});
  CHECK(life<every_sink>(sinks).held == std::vector<bool>{true, true, false, false, true, true});

  auto e = group_engine<keeping<every_sink>>{options_of(sinks, 32, 32)};
  keep(e, ascending(24));
  auto const found = e.admit(ascending(25));
  CHECK(found.seq.cached().value() == 24);
  CHECK(e.held(found, 1) == std::vector<bool>{true, true, false, false, true, true});
}

TEST_CASE("S44: no_eviction gives nothing up, neither units nor blocks of windows, and refuses when all is full") {
  auto e = group_engine<never_evicting>{options_of(retention::sliding_window(token_count{6}), 32, 8)};
  keep(e, ascending(24)); // six units; the window lets its blocks go and keeps them found
  for (auto const g : {0U, 1U}) {
    CHECK(e.now(g).published == block_count{6});
    CHECK(e.now(g).evictable == block_count{0});
    CHECK(e.now(g).available == e.now(g).free);
  }
  CHECK(e.now(1).free == block_count{2});
  auto const refused = e.ask(e.wanted(ascending(12, 500)));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == errc::no_blocks);
  CHECK(refused.error().group == group_id{1});
  CHECK(e.hit(ascending(25)) == 24); // what is cached stays
  CHECK(e.cache.statistics().evicted_blocks == 0);
  e.cache.advance_epoch(running_requests::finish_privately); // not even what nobody can find any more
  CHECK_FALSE(e.ask(e.wanted(ascending(12, 500))).has_value());
  CHECK(e.now(1).published == block_count{6});
  CHECK(e.cache.statistics().evicted_blocks == 0);
}
