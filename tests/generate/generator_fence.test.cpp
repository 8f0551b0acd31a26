// SPDX-License-Identifier: Apache-2.0
// A device that is behind: steps are committed under tickets, and nothing is used again before its ticket is reached.
#include <quire/block/ticket_fence.hpp>
#include <quire/generate/generator.hpp>

#include "generate/toy_model.hpp"
#include "support/catch_compat.hpp"

#include <cstdint>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::toy_service;

struct ticket_policies : default_policies {
  using fence = ticket_fence<1>;
  using admission = optimistic;
};
constexpr auto stream = timeline_id{0};
auto small(unsigned blocks) { return toy_service<>::small(blocks); }
} // namespace

TEST_CASE("S26: each step is committed with a ticket, and views stay in flight until it is reached") {
  auto s = toy_service<ticket_policies>{small(16)}; // two buffers for views
  auto const id = s.submit(ascending(5), 6);
  for (std::uint64_t n = 1; n <= 2; ++n) {
    s.step();
    CHECK(s.cache.fence().issued(stream) == ticket{n});
  }
  auto const before = s.generator.result(id);
  CHECK(s.generator.step().error() == errc::views_in_flight);
  s.check();
  CHECK(s.generator.result(id).state == before.state);
  CHECK(s.generator.result(id).covered == before.covered);
  s.cache.fence().complete(stream, ticket{1});
  s.step();
  while (!s.generator.idle()) {
    s.cache.fence().complete(stream, s.cache.fence().issued(stream));
    s.step();
  }
  s.check_output(id);
}

TEST_CASE("S26: a kept output state is taken over under a ticket as well") {
  auto s = toy_service<ticket_policies>{small(16), {.kept_outputs = 1}};
  s.submit(ascending(8), 1);
  s.run();
  s.cache.fence().complete(stream, s.cache.fence().issued(stream));
  auto const before = s.cache.fence().issued(stream);
  auto const id = s.submit(ascending(8), 1);
  s.run();
  CHECK(s.generator.result(id).computed == work{});
  CHECK(s.cache.fence().issued(stream) > before);
  s.check_output(id);
}

TEST_CASE("S26: a device that is one step behind changes no output, however short the pool is") {
  for (unsigned blocks = 9; blocks <= 14; ++blocks) {
    auto s = toy_service<ticket_policies>{small(blocks), {.chunk = token_count{3}}};
    auto ids = std::vector<generation_id>{};
    for (unsigned i = 0; i < 5; ++i) { ids.push_back(s.submit(ascending(6, static_cast<token_id>(9 * i)), 14)); }
    while (!s.generator.idle()) {
      auto const behind = s.cache.fence().issued(stream);
      auto const out = s.generator.step();
      s.check();
      if (!out) { CHECK((out.error() == errc::no_blocks || out.error() == errc::views_in_flight)); }
      s.cache.fence().complete(stream, behind);
    }
    s.cache.fence().complete(stream, s.cache.fence().issued(stream));
    for (auto const id : ids) {
      CHECK(s.generator.result(id).reason == stop_reason::limit);
      CHECK(s.generator.result(id).state.output.size() == 14);
      s.check_output(id);
    }
    CHECK(s.cache.live_sequences() == sequence_count{0});
  }
}
