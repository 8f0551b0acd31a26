// SPDX-License-Identifier: Apache-2.0

/// \file
/// What each rank stores under tensor, pipeline and context splits.

#include "support/catch_compat.hpp"

#include <quire/core/config_error.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/context_split.hpp>
#include <quire/model/parallel_split.hpp>
#include <quire/model/presets.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace quire;

auto layer(std::uint32_t query_heads, std::uint32_t kv_heads) -> layer_spec {
  return {.query_heads = query_heads, .kv_heads = kv_heads, .key_width = 128, .value_width = 128};
}
auto stack(layer_spec const& one, std::uint32_t layers) -> model_spec {
  return model_spec{{.layers = std::vector<layer_spec>(layers, one), .max_positions = token_count{4096}}};
}

} // namespace

TEST_CASE("S11: each rank stores the KV heads that its query heads read", "[model]") {
  for (std::uint32_t kv = 1; kv <= 8; ++kv) {
    for (std::uint32_t queries = kv; queries <= 64; queries += kv) {
      for (std::uint32_t ranks = 1; ranks <= 32; ++ranks) {
        auto const one = layer(queries, kv);
        auto const split = parallel_split{.tensor = ranks};
        auto const possible = queries % ranks == 0 && (kv % ranks == 0 || ranks % kv == 0);
        CAPTURE(kv, queries, ranks);
        if (!possible) {
          REQUIRE_THROWS_AS(split.heads_of(one, 0), config_error);
          continue;
        }
        std::map<std::uint32_t, std::uint32_t> copies;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          auto const heads = split.heads_of(one, rank);
          REQUIRE(heads.count > 0);
          auto const first_query = rank * (queries / ranks);
          for (auto i = first_query; i < first_query + queries / ranks; ++i) {
            auto const read = one.kv_head_of(i);
            REQUIRE(read >= heads.first);
            REQUIRE(read < heads.first + heads.count);
          }
          for (auto head = heads.first; head < heads.first + heads.count; ++head) { ++copies[head]; }
        }
        REQUIRE(copies.size() == kv);
        for (auto const& [head, count] : copies) {
          REQUIRE(head < kv);
          REQUIRE(count == split.heads_of(one, 0).replicas);
        }
      }
    }
  }
}

TEST_CASE("S11: MQA on 4 devices stores one head on each", "[model]") {
  auto const heads = parallel_split{.tensor = 4}.heads_of(layer(32, 1), 3);
  CHECK(heads == stored_heads{.first = 0, .count = 1, .replicas = 4});
}

TEST_CASE("case 97: 8 KV heads on 32 devices are replicated, never 0", "[model]") {
  auto const heads = parallel_split{.tensor = 32}.heads_of(layer(32, 8), 5);
  CHECK(heads == stored_heads{.first = 1, .count = 1, .replicas = 4});
  auto const model = stack(layer(32, 8), 4);
  auto const on_32 = bytes_per_token(parallel_split{.tensor = 32}.per_rank(model, 0));
  auto const on_8 = bytes_per_token(parallel_split{.tensor = 8}.per_rank(model, 0));
  CHECK(on_32 == on_8);
  CHECK(on_8.value() * 8 == bytes_per_token(model).value());
}

TEST_CASE("case 98: a rank of Qwen3-32B at 4 devices stores a quarter per token", "[model]") {
  auto const model = presets::qwen3_32b();
  auto const rank = parallel_split{.tensor = 4}.per_rank(model, 0);
  CHECK(bytes_per_token(rank) == byte_count{65536}); // 262,144 / 4
  CHECK(rank.groups()[0].planes[0].heads == 2);
  CHECK(rank.layer(layer_id{0}).query_heads == 16);
}

TEST_CASE("S13: latents are replicated over tensor ranks", "[model]") {
  auto const model = presets::deepseek_v3();
  for (std::uint32_t ranks : {1U, 2U, 8U, 128U}) {
    CHECK(bytes_per_token(parallel_split{.tensor = ranks}.per_rank(model, 0)) == byte_count{70272});
  }
  CHECK(parallel_split{.tensor = 8}.heads_of(model.layer(layer_id{0}), 3) ==
        stored_heads{.first = 0, .count = 1, .replicas = 8});
  CHECK_THROWS_AS((parallel_split{.tensor = 3}.per_rank(model, 0)), config_error); // 128 query heads
}

TEST_CASE("S11: impossible splits name the reason and what would work", "[model]") {
  auto const said = [](layer_spec const& one, std::uint32_t ranks) {
    try {
      static_cast<void>(parallel_split{.tensor = ranks}.heads_of(one, 0));
    } catch (config_error const& error) { return std::string{error.what()}; }
    return std::string{};
  };
  CHECK_THAT(said(layer(24, 8), 3), quire_test::ContainsSubstring("8 KV heads over 3 tensor ranks"));
  CHECK_THAT(said(layer(24, 8), 12), quire_test::ContainsSubstring("a multiple of them"));
  CHECK_THAT(said(layer(24, 8), 16), quire_test::ContainsSubstring("24 query heads over 16 tensor ranks"));
  CHECK_THAT(said(layer(24, 8), 0), quire_test::ContainsSubstring("0 ranks"));
  CHECK_THROWS_WITH((parallel_split{.pipeline = 5}.per_rank(stack(layer(8, 8), 4), 0)),
                    quire_test::ContainsSubstring("at most 4 stages"));
}

TEST_CASE("S11: pipeline stages cover the layers, as even as possible", "[model]") {
  for (std::uint32_t layers = 1; layers <= 20; ++layers) {
    auto const model = stack(layer(4, 2), layers);
    for (std::uint32_t stages = 1; stages <= layers; ++stages) {
      auto const split = parallel_split{.pipeline = stages};
      std::uint32_t next = 0;
      std::uint64_t bytes = 0;
      for (std::uint32_t stage = 0; stage < stages; ++stage) {
        auto const range = split.layers_of(stage, model);
        REQUIRE(range.first == next);
        REQUIRE(range.count >= layers / stages);
        REQUIRE(range.count <= (layers + stages - 1) / stages);
        next += range.count;
        bytes += bytes_per_token(split.per_rank(model, stage)).value();
      }
      REQUIRE(next == layers);
      REQUIRE(bytes == bytes_per_token(model).value());
    }
  }
}

TEST_CASE("case 143: a borrower and its owner stay on one pipeline stage", "[model]") {
  auto borrower = layer(4, 2);
  borrower.borrows = layer_id{2};
  auto const model =
      model_spec{{.layers = {layer(4, 2), layer(4, 2), layer(4, 2), borrower}, .max_positions = token_count{64}}};
  auto const rank = parallel_split{.pipeline = 2}.per_rank(model, 1); // layers 2 and 3
  CHECK(rank.layers() == 2);
  CHECK(rank.owner_of(layer_id{1}) == layer_id{0});
  CHECK_THROWS_WITH((parallel_split{.pipeline = 4}.per_rank(model, 3)),
                    quire_test::ContainsSubstring("earlier pipeline stage"));
}

TEST_CASE("S11: context ranks share the positions of every length without gap or overlap", "[model]") {
  for (std::uint32_t ranks = 1; ranks <= 5; ++ranks) {
    for (std::uint32_t unit = 1; unit <= 5; ++unit) {
      auto const split = context_split{.ranks = ranks, .unit = token_count{unit}};
      std::vector<std::uint32_t> stored(ranks, 0);
      for (std::uint32_t position = 0; position <= 60; ++position) {
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          REQUIRE(split.share_of(rank, token_count{position}).value() == stored[rank]);
        }
        auto const owner = split.owner_of(token_pos{position});
        REQUIRE(owner < ranks);
        REQUIRE(split.local_position(token_pos{position}).value() == stored[owner]); // dense, in order
        ++stored[owner];
      }
    }
  }
  CHECK_THROWS_AS((context_split{.ranks = 0}.owner_of(token_pos{1})), config_error);
  CHECK_THROWS_AS((context_split{.unit = token_count{0}}.local_position(token_pos{1})), config_error);
}
