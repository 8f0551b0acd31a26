// SPDX-License-Identifier: Apache-2.0
#include <quire/view/recording_executor.hpp>

#include "support/catch_compat.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

namespace {
using namespace quire;

struct refusing_executor {
  auto run(std::span<action const>) -> expected<void> { return refuse(errc::not_supported); }
};
struct throwing_executor {
  auto run(std::span<action const>) -> expected<void> { throw std::runtime_error{"device lost"}; }
};
auto const plan = std::array{action::scrub_block(group_id{0}, block_id{4}),
                             action::copy_block(group_id{0}, block_id{1}, block_id{2}, token_count{3})};
} // namespace

TEST_CASE("S18: a recorder keeps what was performed, in order") {
  auto recorder = recording_executor<>{};
  CHECK(recorder.recorded().empty());
  auto all = std::vector<action>{};
  for (auto i = 0; i < 40; ++i) {
    REQUIRE(recorder.run(plan));
    all.insert(all.end(), plan.begin(), plan.end());
  }
  CHECK(std::equal(recorder.recorded().begin(), recorder.recorded().end(), all.begin(), all.end()));
  recorder.clear();
  CHECK(recorder.recorded().empty());
  REQUIRE(recorder.run(plan));
  CHECK(recorder.recorded().size() == 2);
}

TEST_CASE("S18: a recorder forgets what was not performed") {
  auto refused = recording_executor<refusing_executor>{};
  auto const result = refused.run(plan);
  REQUIRE_FALSE(result);
  CHECK(result.error() == errc::not_supported);
  CHECK(refused.recorded().empty());
  auto thrown = recording_executor<throwing_executor>{};
  CHECK_THROWS_AS(thrown.run(plan), std::runtime_error);
  CHECK(thrown.recorded().empty());
}
