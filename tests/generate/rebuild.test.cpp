// SPDX-License-Identifier: Apache-2.0
// A real network whose windows were lost: what computing N_w (w - 1) positions again gives, and what one position less gives.
#include <quire/attention/oracle_backend.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/compute_identity.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/dtype.hpp>
#include <quire/model/retention.hpp>
#include <quire/view/batch_view.hpp>

#include "generate/any_network.hpp"
#include "isolation/identity_fixtures.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using text = std::vector<token_id>;

auto sizes() -> quire_test::network_sizes {
  return {.layers = 4,
          .rules = {attention_rule::causal(), attention_rule::sliding_window(token_count{3})},
          .mixed = true,
          .seed = 7};
}

/// Blocks of one position, so that nothing is rounded; a window pool that two other prompts use up.
class service {
public:
  explicit service(token_count rebuild)
      : cache_{cache_options{.blocks = block_count{128},
                             .block_tokens = token_count{1},
                             .rebuild = rebuild,
                             .groups = {{},
                                        {.keeps = retention::sliding_window(token_count{3}),
                                         .blocks = block_count{24},
                                         .block_tokens = {}}}}},
        scope_{cache_.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("a"))} {}

  auto admit(text const& prompt) -> kv_cache<>::sequence {
    return cache_.admit({.scope = scope_, .prompt = prompt, .max_output = token_count{1}}).value();
  }
  /// Computes what is not cached of \p prompt. \returns the logits behind it
  auto finish(kv_cache<>::sequence const& s, text const& prompt) -> std::vector<float> {
    auto const rest = s.remaining(prompt);
    auto plan = cache_.plan_step({{s, rest}}).value();
    REQUIRE(plan.complete());
    REQUIRE(model_.run(plan.launch()).has_value());
    auto const views = std::vector{plan.view(group_id{0}), plan.view(group_id{1})};
    auto const last = std::vector{static_cast<std::uint32_t>(rest.size()) - 1};
    auto logits = std::vector<float>(model_.vocabulary());
    REQUIRE(model_.forward({.view = plan.view(), .groups = views, .tokens = rest, .wanted = last, .logits = logits})
                .has_value());
    REQUIRE(cache_.commit(std::move(plan)).has_value());
    REQUIRE(cache_.audit().has_value());
    return logits;
  }
  auto run(text const& prompt) -> std::vector<float> { return finish(admit(prompt), prompt); }
  [[nodiscard]] auto exact(text const& prompt) const -> std::vector<double> {
    return network_.recompute(prompt).back();
  }

private:
  quire_test::any_network network_{sizes()};
  quire_test::paged_network<oracle_backend> model_{network_, block_count{128}, token_count{1}, dtype::f64};
  kv_cache<> cache_;
  scope_number scope_;
};

auto difference(std::vector<float> const& found, std::vector<double> const& exact) -> double {
  auto most = 0.0;
  for (std::size_t i = 0; i < exact.size(); ++i) { most = std::max(most, std::fabs(found[i] - exact[i])); }
  return most;
}

/// \returns how far the logits behind a prompt are from a full recompute, when its windows were lost
auto after_a_loss(token_count rebuild, token_count cached) -> double {
  auto s = service{rebuild};
  auto const prompt = text{1, 2, 3, 1, 1, 2, 3, 3, 2, 1, 2, 2, 3, 1, 3, 2, 1, 1, 3, 2};
  REQUIRE(difference(s.run(prompt), s.exact(prompt)) < 1e-5);
  for (auto const first : {2, 3}) { // others take the blocks of its windows
    auto other = text(20, 1);
    other.front() = first;
    s.run(other);
  }
  auto const again = s.admit(prompt);
  CHECK(again.found() == token_count{20});
  CHECK(again.cached() == cached);
  return difference(s.finish(again, prompt), s.exact(prompt));
}

} // namespace

TEST_CASE("S28: a network whose windows were lost is exact again N_w (w - 1) positions later, and not one earlier") {
  CHECK(sizes().rebuild() == token_count{2 * 2}); // two windows of 3
  CHECK(after_a_loss(token_count{4}, token_count{15}) < 1e-5);
  CHECK(after_a_loss(token_count{3}, token_count{16}) > 1e-3);
}
