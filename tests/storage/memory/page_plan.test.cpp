// SPDX-License-Identifier: Apache-2.0
// The page that blocks of several sizes cut without a rest, against a search over all pages.
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/memory/page_plan.hpp>
#include <quire/model/page_fit.hpp>

#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {
using namespace quire;

auto sizes_of(std::vector<std::uint64_t> const& sizes) -> std::vector<byte_count> {
  auto out = std::vector<byte_count>{};
  for (auto const size : sizes) { out.emplace_back(size); }
  return out;
}
auto plan_of(std::vector<std::uint64_t> const& sizes, std::uint64_t limit) -> page_plan {
  return plan_pages(sizes_of(sizes), byte_count{limit});
}
// The largest power of two that divides both the size and 256: what blocks laid end to end are aligned to.
auto alignment_of(std::uint64_t size) -> std::uint64_t {
  auto out = std::uint64_t{1};
  while (out < 256 && size % (2 * out) == 0) { out *= 2; }
  return out;
}
// The least share of the page that any group can use, tried stride by stride; 0 if a group cannot cut the page at all.
auto worst_use(std::uint64_t page, std::vector<std::uint64_t> const& sizes) -> double {
  auto worst = 1.0;
  for (auto const size : sizes) {
    auto best = 0.0;
    for (auto stride = size; stride <= page; ++stride) {
      if (page % stride == 0 && stride % alignment_of(size) == 0) {
        best = std::max(best, static_cast<double>(page / stride * size) / static_cast<double>(page));
      }
    }
    worst = std::min(worst, best);
  }
  return worst;
}
// Whatever the plan: the page is cut without a rest into blocks that are large enough and aligned.
void check_cuts(page_plan const& plan, std::vector<std::uint64_t> const& sizes) {
  REQUIRE(plan.groups.size() == sizes.size());
  for (std::size_t g = 0; g < sizes.size(); ++g) {
    auto const& cut = plan.groups[g];
    CHECK(cut.block.value() == sizes[g]);
    CHECK(cut.stride >= cut.block);
    CHECK(cut.stride.value() * cut.blocks == plan.page.value());
    CHECK(cut.stride.value() % alignment_of(sizes[g]) == 0);
    CHECK(cut.padding() == cut.stride - cut.block);
    // blocks laid end to end over many pages: none straddles a border
    auto const fit = page_fit{.page_bytes = plan.page.value(), .block_bytes = cut.stride.value()};
    CHECK(fit.blocks_in_pages(1000) == 1000ULL * cut.blocks);
  }
}
} // namespace

TEST_CASE("B3: a page is the least common multiple of the groups' blocks") {
  auto const plan = plan_of({4, 6}, 12);
  CHECK(plan.page == byte_count{12});
  CHECK(plan.common_multiple == byte_count{12});
  CHECK_FALSE(plan.padded());
  CHECK(plan.groups[0] == page_plan::cut{.block = byte_count{4}, .stride = byte_count{4}, .blocks = 3});
  CHECK(plan.groups[1] == page_plan::cut{.block = byte_count{6}, .stride = byte_count{6}, .blocks = 2});
  // one group, or equal ones: a page is a block
  CHECK(plan_of({7}, 7).page == byte_count{7});
  CHECK(plan_of({256, 256, 256}, 1024).page == byte_count{256});
  // Gemma-3-27B in blocks of 16: 10 full and 52 window layers of 8192 bytes a token
  auto const gemma = plan_of({10 * 131'072, 52 * 131'072}, 64ULL << 20U);
  CHECK(gemma.page == byte_count{260 * 131'072});
  CHECK(gemma.groups[0].blocks == 26);
  CHECK(gemma.groups[1].blocks == 5);
}

TEST_CASE("B3: where the least common multiple exceeds the limit, the plan pads and says so") {
  auto const plan = plan_of({1000, 1001}, 100'000);
  CHECK(plan.padded());
  CHECK(plan.common_multiple == byte_count{1'001'000});
  CHECK(plan.page <= byte_count{100'000});
  check_cuts(plan, {1000, 1001});
  for (auto const& cut : plan.groups) { CHECK(cut.padding().value() * 100 < cut.block.value()); }
  // at the multiple itself nothing is padded, one byte below something is
  CHECK_FALSE(plan_of({4, 6}, 12).padded());
  CHECK(plan_of({4, 6}, 11).padded());
  // a multiple beyond 64 bits
  auto const huge = plan_of({(1ULL << 33U) + 1, (1ULL << 33U) - 1, (1ULL << 33U) + 9}, 1ULL << 36U);
  CHECK(huge.padded());
  CHECK_FALSE(huge.common_multiple.has_value());
}

TEST_CASE("B3: every plan of two or three small groups is as good as a search over all pages says") {
  for (std::uint64_t a = 1; a <= 12; ++a) {
    for (std::uint64_t b = a; b <= 12; ++b) {
      for (std::uint64_t c : {b, b + 1, 2 * b + 3}) {
        auto const sizes = std::vector<std::uint64_t>{a, b, c};
        for (std::uint64_t limit : {c, c + 5, 3 * c, 40 + c}) {
          auto const aligned = std::max({alignment_of(a), alignment_of(b), alignment_of(c)});
          auto unit = c; // the largest, rounded up by counting
          while (unit % aligned != 0) { ++unit; }
          auto best = 0.0;
          auto best_page = std::uint64_t{0};
          auto multiple = std::uint64_t{1}; // by counting up
          while (multiple % a != 0 || multiple % b != 0 || multiple % c != 0) { ++multiple; }
          for (auto page = unit; page <= limit; page += unit) {
            if (auto const use = worst_use(page, sizes); use > best) {
              best = use;
              best_page = page;
            }
          }
          CAPTURE(a, b, c, limit);
          if (multiple <= limit) {
            CHECK(plan_of(sizes, limit).page.value() == multiple);
          } else if (best == 0.0) {
            CHECK_THROWS_AS(plan_of(sizes, limit), config_error);
          } else {
            auto const plan = plan_of(sizes, limit);
            CHECK(plan.page.value() == best_page);
            CHECK(plan.padded());
            check_cuts(plan, sizes);
          }
        }
      }
    }
  }
}

TEST_CASE("B3: strides keep the alignment of the blocks") {
  auto const sizes = std::vector<std::uint64_t>{3 * 256, 5 * 256 + 192, 7 * 256};
  auto const plan = plan_of(sizes, 64 * 1024);
  CHECK(plan.padded());
  check_cuts(plan, sizes);
}

TEST_CASE("B3: a plan that cannot be made is refused") {
  CHECK_THROWS_AS(plan_of({}, 100), config_error);
  CHECK_THROWS_AS(plan_of({4, 0}, 100), config_error);
  CHECK_THROWS_AS(plan_of({4, 8}, 7), config_error);               // not one block fits
  CHECK_THROWS_AS(plan_of({1, 1ULL << 31U}, ~0ULL), config_error); // too many blocks in a page
}
