// SPDX-License-Identifier: Apache-2.0

/// \file
/// Ring arithmetic against a simulated ring.

#include "support/catch_compat.hpp"

#include <quire/core/config_error.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/retention.hpp>
#include <quire/model/ring.hpp>

#include <cstdint>
#include <vector>

namespace {

using namespace quire;

auto ring_of(std::uint32_t capacity, std::uint32_t window, std::uint32_t sinks) -> retention {
  return retention::ring(
      {.capacity = token_count{capacity}, .window = token_count{window}, .sinks = token_count{sinks}});
}

// Writes `total` positions in appends of `append` into real slots; each append writes all its keys before any
// of its rows reads. Returns the number of reads that found another position's key.
auto wrong_reads(retention const& ring, std::uint32_t total, std::uint32_t append) -> std::uint32_t {
  auto const rule = attention_rule::sink_window({.sinks = ring.sinks, .window = ring.extent});
  std::vector<std::uint32_t> slots(ring.capacity.value(), UINT32_MAX);
  std::uint32_t wrong = 0;
  for (std::uint32_t begin = 0; begin < total; begin += append) {
    for (auto p = begin; p < begin + append; ++p) { slots.at(ring_slot(token_pos{p}, ring)) = p; }
    for (auto query = begin; query < begin + append; ++query) {
      for (std::uint32_t key = 0; key <= query; ++key) {
        if (rule.visible(token_pos{query}, token_pos{key}) && slots[ring_slot(token_pos{key}, ring)] != key) {
          ++wrong;
        }
      }
    }
  }
  return wrong;
}

} // namespace

TEST_CASE("S30: a ring of w − 1 + q slots never loses a key that its append reads, and one less does", "[model]") {
  for (std::uint32_t window = 1; window <= 8; ++window) {
    for (std::uint32_t sinks = 0; sinks <= 3; ++sinks) {
      for (std::uint32_t append = 1; append <= 6; ++append) {
        auto const keeps = retention::sink_window({.sinks = token_count{sinks}, .window = token_count{window}});
        auto const capacity = ring_capacity(keeps, token_count{append}).value();
        CAPTURE(window, sinks, append);
        REQUIRE(capacity == sinks + window - 1 + append);
        auto const ring = ring_of(capacity, window, sinks);
        REQUIRE(ring_append_limit(ring).value() == append);
        REQUIRE(wrong_reads(ring, 60, append) == 0);
        REQUIRE(wrong_reads(ring, 60, append + 1) > 0);
      }
    }
  }
}

TEST_CASE("S30: with c = w only one-token appends are possible", "[model]") {
  CHECK(ring_append_limit(ring_of(8, 8, 0)) == token_count{1});
  CHECK(wrong_reads(ring_of(8, 8, 0), 60, 1) == 0);
  CHECK_THROWS_AS(ring_of(7, 8, 0), config_error);
  CHECK_THROWS_AS(ring_of(9, 8, 2), config_error);
}

TEST_CASE("S30: ring_present names what is still in the slots", "[model]") {
  for (std::uint32_t capacity = 1; capacity <= 9; ++capacity) {
    for (std::uint32_t sinks = 0; sinks < capacity; ++sinks) {
      auto const ring = ring_of(capacity, 1, sinks);
      std::vector<std::uint32_t> slots(capacity, UINT32_MAX);
      for (std::uint32_t written = 0; written <= 40; ++written) {
        auto const present = ring_present(token_count{written}, ring);
        for (std::uint32_t p = sinks; p < written; ++p) {
          CAPTURE(capacity, sinks, written, p);
          REQUIRE(present.contains(token_pos{p}) == (slots[ring_slot(token_pos{p}, ring)] == p));
        }
        for (std::uint32_t p = 0; p < sinks && p < written; ++p) {
          REQUIRE(slots[p] == p); // sinks are never overwritten
        }
        slots[ring_slot(token_pos{written}, ring)] = written;
      }
    }
  }
}

TEST_CASE("case 61: nothing is lost before the window is really full", "[model]") {
  auto const ring = ring_of(8, 8, 0);
  CHECK(ring_present(token_count{8}, ring) == position_interval{token_pos{0}, token_pos{8}});
  CHECK(ring_present(token_count{9}, ring) == position_interval{token_pos{1}, token_pos{9}});
}

TEST_CASE("case 62: a prefill of 7 into a window of 4 needs 10 slots, or is split", "[model]") {
  auto const window = retention::sliding_window(token_count{4});
  CHECK(ring_capacity(window, token_count{7}) == token_count{10});
  CHECK(wrong_reads(ring_of(4, 4, 0), 7, 7) > 0);
  CHECK(wrong_reads(ring_of(10, 4, 0), 7, 7) == 0);
}

TEST_CASE("case 68: the slot behind the sinks is reused, not the sinks'", "[model]") {
  CHECK(ring_slot(token_pos{16}, ring_of(16, 4, 4)) == 4);
  CHECK(ring_slot(token_pos{3}, ring_of(16, 4, 4)) == 3);
}

TEST_CASE("S30: rings are for windows, and their sizes fit 32 bits", "[model]") {
  CHECK_THROWS_AS(ring_capacity(retention::full(), token_count{1}), config_error);
  CHECK_THROWS_AS(ring_capacity(retention::chunked(token_count{4}), token_count{1}), config_error);
  CHECK_THROWS_AS(ring_capacity(retention::sliding_window(token_count{4}), token_count{0}), config_error);
  CHECK_THROWS_AS(ring_capacity(retention::sliding_window(token_count{UINT32_MAX}), token_count{2}), config_error);
}
