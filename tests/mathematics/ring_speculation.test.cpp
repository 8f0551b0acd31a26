// SPDX-License-Identifier: Apache-2.0
// Drafts in a ring (case 81): attention over a ring in which drafts were written and rejected, against attention over all
// keys. The arithmetic of `ring.hpp` says beforehand whether the keys that a rejection needs are still there.
#include <quire/attention/attention_extent.hpp>
#include <quire/attention/attention_params.hpp>
#include <quire/attention/oracle_attention.hpp>
#include <quire/attention/strided_tensor.hpp>
#include <quire/attention/tensor_place.hpp>
#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/retention.hpp>
#include <quire/model/ring.hpp>

#include "mathematics/numbers.hpp"
#include "support/catch_compat.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {
using namespace quire;
constexpr std::uint32_t window = 6;
constexpr std::uint32_t width = 2;
} // namespace

TEST_CASE("S30: drafts that a ring has room for may be rejected, others are known beforehand to cost keys (case 81)") {
  auto const params = attention_params{.query_heads = 1,
                                       .kv_heads = 1,
                                       .key_width = width,
                                       .value_width = width,
                                       .scale = 1.0,
                                       .rule = attention_rule::sliding_window(token_count{window})};
  auto lost = 0;
  for (std::uint32_t drafts = 0; drafts <= 4; ++drafts) {
    for (std::uint32_t spare = 0; spare <= 4; ++spare) {
      for (std::uint32_t length = window; length <= 2 * window + 3; ++length) { // full, at every place of the ring
        INFO(drafts << " drafts, " << spare << " spare slots, length " << length);
        auto const ring = retention::ring({.capacity = token_count{window + spare}, .window = token_count{window}});
        auto draw = quire_test::numbers{length};
        auto const n = length + 1 + drafts;
        auto keys = draw.many(std::size_t{n} * width);
        auto const query = draw.many(width);
        auto slots = std::vector<double>((window + spare) * width);
        auto const write = [&](std::uint32_t position, double add) {
          for (std::uint32_t d = 0; d < width; ++d) {
            slots[ring_slot(token_pos{position}, ring) * width + d] = keys[position * width + d] + add;
          }
        };
        for (std::uint32_t p = 0; p < length; ++p) { write(p, 0.0); }
        for (std::uint32_t p = length; p < n; ++p) {
          write(p, 50.0);
        } // one step of 1 + drafts positions, then all rejected
        write(length, 0.0); // the next step writes its own position once more
        auto const extent = attention_extent::append({.cached = token_count{length}, .appended = token_count{1}});
        auto const in_ring = [&](tensor_place const& at) {
          return slots[ring_slot(token_pos{at.token}, ring) * width + at.dim];
        };
        auto const got = oracle_attention(
            params, extent, strided_tensor<double>::packed(query, {.heads = 1, .width = width}), in_ring, in_ring);
        auto const whole = strided_tensor<double>::packed(std::span{keys}.first(std::size_t{length + 1} * width),
                                                          {.heads = 1, .width = width});
        auto const want = oracle_attention(
            params, extent, strided_tensor<double>::packed(query, {.heads = 1, .width = width}), whole, whole);
        auto const room = 1 + drafts <= ring_append_limit(ring).value();
        CHECK((quire_test::distance(got.output, want.output) < 1e-12) == room);
        lost += room ? 0 : 1;
      }
    }
  }
  CHECK(lost == 10 * 10); // more drafts than spare slots, at each length
}
