// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A whole cache with one scope, for benchmarks of `kv_cache`.

#include "support.hpp"

#include <quire/cache/kv_cache.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/compute_identity.hpp>
#include <quire/identity/sharing_domain.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace quire_bench {

/// Some complete identity: benchmarks use one scope.
[[nodiscard]] inline auto some_identity() -> quire::compute_identity {
  auto const digest = [](unsigned char first) {
    std::array<std::byte, quire::content_digest::size> value{};
    value.front() = std::byte{first};
    return quire::content_digest{value};
  };
  return quire::compute_identity{
      quire::compute_identity_fields{.weights = quire::weights_digest{digest(1)},
                                     .structure = quire::structure_digest{digest(2)},
                                     .tokenizer = quire::tokenizer_digest{digest(3)},
                                     .prompt_template = quire::prompt_template_digest::none(),
                                     .adapters = quire::adapter_list::none(),
                                     .precision = quire::compute_precision{"bf16"},
                                     .format = quire::cache_format::exact("bf16"),
                                     .positions = quire::position_config{"rope base=500000"},
                                     .attention = quire::visibility_rule{"causal"},
                                     .conditions = quire::external_conditions::none()}};
}

/// The domain of one tenant.
[[nodiscard]] inline auto some_domain() -> quire::sharing_domain {
  return quire::sharing_domain::isolated(quire::tenant_id{std::string_view{"benchmark"}},
                                         quire::authorisation_domain{std::string_view{"project"}},
                                         quire::domain_salt::none());
}

/// A cache and what one does with it.
template <class Policies = quire::default_policies>
class cache_fixture {
public:
  using cache_type = quire::kv_cache<Policies>;
  using sequence = typename cache_type::sequence;
  using step_item = typename cache_type::step_item;
  using token_span = std::span<quire::token_id const>;

  explicit cache_fixture(quire::cache_options const& options)
      : cache{options}, scope{cache.open_scope(some_identity(), some_domain())} {}

  /// A request that may grow by \p output tokens.
  [[nodiscard]] auto admit(token_span prompt, std::uint32_t output,
                           quire::reuse_rule reuse = quire::reuse_rule::read_and_write) -> sequence {
    auto admitted =
        cache.admit({.scope = scope, .prompt = prompt, .max_output = quire::token_count{output}, .reuse = reuse});
    expect(admitted.has_value(), "a request is refused");
    return std::move(*admitted);
  }
  /// Plans, launches and commits one step.
  auto step(std::span<step_item const> items) -> void { finish(cache.plan_step(items)); }
  /// The same, planned item by item.
  auto step_one_by_one(std::span<step_item const> items) -> void {
    auto plan = cache.begin_step();
    for (auto const& item : items) { keep(plan->try_add(item).status); }
    finish(std::move(plan));
  }
  /// Computes what of \p prompt is not attached.
  auto prefill(sequence const& s, token_span prompt) -> void {
    auto const item = step_item{s, prompt.subspan(s.length().value())};
    step({&item, 1});
  }

  cache_type cache;
  quire::scope_number scope;

private:
  auto finish(quire::expected<typename cache_type::step_plan> plan) -> void {
    expect(plan.has_value() && plan->complete(), "a step is refused");
    keep(plan->launch().size());
    keep(plan->view().slot.size());
    expect(cache.commit(std::move(*plan)).has_value(), "a commit fails");
  }
};

} // namespace quire_bench
