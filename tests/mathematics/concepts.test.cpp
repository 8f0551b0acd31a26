// SPDX-License-Identifier: Apache-2.0
#include <quire/attention/concepts.hpp>

#include <quire/attention/no_bias.hpp>
#include <quire/attention/null_backend.hpp>
#include <quire/attention/oracle_attention.hpp>
#include <quire/attention/oracle_backend.hpp>
#include <quire/attention/recording_backend.hpp>
#include <quire/attention/strided_tensor.hpp>

#include "support/catch_compat.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace {
using namespace quire;

// The least that a backend can be: rows of its own types, not copyable, not movable, not default constructible.
struct own_kv {};
struct own_queries {};
struct own_results {};
class backend_archetype {
public:
  using kv_input = own_kv;
  using query_input = own_queries;
  using attention_result = own_results;
  explicit backend_archetype(int) {}
  backend_archetype(backend_archetype&&) = delete;
  auto run(std::span<action const>) -> expected<void> { return {}; }
  auto write(layer_id, batch_view const&, own_kv const&) -> expected<void> { return {}; }
  auto attend(layer_id, batch_view const&, own_queries const&, own_results const&) -> expected<void> { return {}; }
};
struct movable_archetype {
  using kv_input = own_kv;
  using query_input = own_queries;
  using attention_result = own_results;
  explicit movable_archetype(int) {}
  auto run(std::span<action const> actions) -> expected<void> {
    calls += static_cast<int>(actions.size());
    return {};
  }
  auto write(layer_id, batch_view const&, own_kv const&) -> expected<void> {
    ++calls;
    return {};
  }
  auto attend(layer_id, batch_view const&, own_queries const&, own_results const&) -> expected<void> {
    calls += 10;
    return refuse(errc::not_supported);
  }
  int calls = 0;
};

// Near misses: a right backend with one thing spoilt.
struct right {
  using kv_input = own_kv;
  using query_input = own_queries;
  using attention_result = own_results;
  auto run(std::span<action const>) -> expected<void>;
  auto write(layer_id, batch_view const&, own_kv const&) -> expected<void>;
  auto attend(layer_id, batch_view const&, own_queries const&, own_results const&) -> expected<void>;
};
struct no_run : right {
  void run(std::span<action const>) = delete;
};
struct run_returns_void : right {
  void run(std::span<action const>);
};
struct no_write : right {
  void write(layer_id, batch_view const&, own_kv const&) = delete;
};
struct write_returns_void : right {
  void write(layer_id, batch_view const&, own_kv const&);
};
struct write_returns_bool : right {
  auto write(layer_id, batch_view const&, own_kv const&) -> bool;
};
struct write_without_layer : right {
  auto write(batch_view const&, own_kv const&) -> expected<void>;
};
struct write_changes_view : right {
  auto write(layer_id, batch_view&, own_kv const&) -> expected<void>;
};
struct write_changes_rows : right {
  auto write(layer_id, batch_view const&, own_kv&) -> expected<void>;
};
struct write_by_group : right {
  auto write(group_id, batch_view const&, own_kv const&) -> expected<void>;
};
class write_is_private : public right {
  auto write(layer_id, batch_view const&, own_kv const&) -> expected<void>;
};
struct no_attend : right {
  void attend(layer_id, batch_view const&, own_queries const&, own_results const&) = delete;
};
struct attend_returns_void : right {
  void attend(layer_id, batch_view const&, own_queries const&, own_results const&);
};
struct attend_returns_value : right {
  auto attend(layer_id, batch_view const&, own_queries const&, own_results const&) -> expected<int>;
};
struct attend_without_result : right {
  auto attend(layer_id, batch_view const&, own_queries const&) -> expected<void>;
};
struct attend_swapped : right {
  auto attend(layer_id, batch_view const&, own_results const&, own_queries const&) -> expected<void>;
};
struct no_kv_input {
  using query_input = own_queries;
  using attention_result = own_results;
  auto run(std::span<action const>) -> expected<void>;
  auto write(layer_id, batch_view const&, own_kv const&) -> expected<void>;
  auto attend(layer_id, batch_view const&, own_queries const&, own_results const&) -> expected<void>;
};
struct no_query_input {
  using kv_input = own_kv;
  using attention_result = own_results;
  auto run(std::span<action const>) -> expected<void>;
  auto write(layer_id, batch_view const&, own_kv const&) -> expected<void>;
  auto attend(layer_id, batch_view const&, own_queries const&, own_results const&) -> expected<void>;
};
struct no_attention_result {
  using kv_input = own_kv;
  using query_input = own_queries;
  auto run(std::span<action const>) -> expected<void>;
  auto write(layer_id, batch_view const&, own_kv const&) -> expected<void>;
  auto attend(layer_id, batch_view const&, own_queries const&, own_results const&) -> expected<void>;
};

// Accessors and biases.
struct integer_accessor {
  auto operator()(tensor_place const&) const -> int;
};
struct accessor_of_numbers {
  auto operator()(std::uint32_t, std::uint32_t, std::uint32_t) const -> double;
};
struct changing_accessor {
  auto operator()(tensor_place const&) -> double;
};
struct silent_accessor {
  void operator()(tensor_place const&) const;
};
struct float_bias {
  auto operator()(score_place const&) const -> float;
};
struct bias_of_positions {
  auto operator()(token_pos, token_pos) const -> double;
};
struct changing_bias {
  auto operator()(score_place const&) -> double;
};
struct by_reference {
  auto operator()(tensor_place const&) const -> double const&;
};
} // namespace

TEST_CASE("S44: attention_backend accepts its models and the minimal archetype") {
  STATIC_REQUIRE(attention_backend<oracle_backend>);
  STATIC_REQUIRE(attention_backend<null_backend<>>);
  STATIC_REQUIRE(attention_backend<null_backend<float>>);
  STATIC_REQUIRE(attention_backend<recording_backend<>>);
  STATIC_REQUIRE(attention_backend<recording_backend<oracle_backend>>);
  STATIC_REQUIRE(attention_backend<recording_backend<recording_backend<null_backend<float>>>>);
  STATIC_REQUIRE(attention_backend<backend_archetype>);
  STATIC_REQUIRE(attention_backend<movable_archetype>);
  STATIC_REQUIRE(attention_backend<right>);
}

TEST_CASE("S44: attention_backend rejects near misses") {
  STATIC_REQUIRE_FALSE(attention_backend<int>);
  STATIC_REQUIRE_FALSE(attention_backend<no_run>);
  STATIC_REQUIRE_FALSE(attention_backend<run_returns_void>);
  STATIC_REQUIRE_FALSE(attention_backend<no_write>);
  STATIC_REQUIRE_FALSE(attention_backend<write_returns_void>);
  STATIC_REQUIRE_FALSE(attention_backend<write_returns_bool>);
  STATIC_REQUIRE_FALSE(attention_backend<write_without_layer>);
  STATIC_REQUIRE_FALSE(attention_backend<write_changes_view>);
  STATIC_REQUIRE_FALSE(attention_backend<write_changes_rows>);
  STATIC_REQUIRE_FALSE(attention_backend<write_by_group>);
  STATIC_REQUIRE_FALSE(attention_backend<write_is_private>);
  STATIC_REQUIRE_FALSE(attention_backend<no_attend>);
  STATIC_REQUIRE_FALSE(attention_backend<attend_returns_void>);
  STATIC_REQUIRE_FALSE(attention_backend<attend_returns_value>);
  STATIC_REQUIRE_FALSE(attention_backend<attend_without_result>);
  STATIC_REQUIRE_FALSE(attention_backend<attend_swapped>);
  STATIC_REQUIRE_FALSE(attention_backend<no_kv_input>);
  STATIC_REQUIRE_FALSE(attention_backend<no_query_input>);
  STATIC_REQUIRE_FALSE(attention_backend<no_attention_result>);
  STATIC_REQUIRE_FALSE(attention_backend<backend_archetype const>); // its calls change it
  // each part alone
  STATIC_REQUIRE(kv_writer<no_attend>);
  STATIC_REQUIRE(batch_attention<no_write>);
  STATIC_REQUIRE_FALSE(kv_writer<no_write>);
  STATIC_REQUIRE_FALSE(batch_attention<no_attend>);
}

TEST_CASE("S44: the minimal archetype works wherever a backend is taken") {
  auto recorder = recording_backend<movable_archetype>{movable_archetype{1}};
  auto const starts = std::array{0};
  auto const view = batch_view{.block_tokens = 4, .query_start = starts};
  REQUIRE(recorder.run(std::array{action::scrub_block(group_id{0}, block_id{1})}));
  REQUIRE(recorder.write(layer_id{0}, view, {}));
  CHECK_FALSE(recorder.attend(layer_id{0}, view, {}, {})); // refused: passed on, not recorded
  CHECK(recorder.inner().calls == 12);
  CHECK(recorder.recorded().size() == 2);
}

TEST_CASE("S44: the null backend answers as if nothing were visible") {
  auto null = null_backend<float>{};
  auto output = std::array{1.0F, 2.0F};
  auto lse = std::array{3.0F};
  REQUIRE(null.run({}));
  REQUIRE(null.write(layer_id{0}, {}, {}));
  REQUIRE(null.attend(layer_id{0}, {}, {}, {.output = output, .lse = lse}));
  CHECK(output == std::array{0.0F, 0.0F});
  CHECK(lse[0] == -std::numeric_limits<float>::infinity());
}

TEST_CASE("S44: attention_accessor and attention_bias accept and reject") {
  auto const lambda = [](tensor_place const&) { return 1.0F; };
  STATIC_REQUIRE(attention_accessor<decltype(lambda)>);
  STATIC_REQUIRE(attention_accessor<strided_tensor<double>>);
  STATIC_REQUIRE(attention_accessor<by_reference>);
  STATIC_REQUIRE_FALSE(attention_accessor<int>);
  STATIC_REQUIRE_FALSE(attention_accessor<std::vector<double>>);
  STATIC_REQUIRE_FALSE(attention_accessor<integer_accessor>);
  STATIC_REQUIRE_FALSE(attention_accessor<accessor_of_numbers>);
  STATIC_REQUIRE_FALSE(attention_accessor<changing_accessor>);
  STATIC_REQUIRE_FALSE(attention_accessor<silent_accessor>);
  STATIC_REQUIRE(attention_bias<no_bias>);
  STATIC_REQUIRE_FALSE(attention_bias<int>);
  STATIC_REQUIRE_FALSE(attention_bias<float_bias>);
  STATIC_REQUIRE_FALSE(attention_bias<bias_of_positions>);
  STATIC_REQUIRE_FALSE(attention_bias<changing_bias>);
  // the least of each, where it is taken
  auto const out = oracle_attention({.scale = 1.0}, attention_extent::append({.appended = token_count{1}}), lambda,
                                    lambda, lambda, [](score_place const&) { return 0.0; });
  CHECK(out.output[0] == 1.0);
}
