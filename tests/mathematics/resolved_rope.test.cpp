// SPDX-License-Identifier: Apache-2.0
#include <quire/attention/rope.hpp>
#include <quire/identity/identity_bytes.hpp>

#include "mathematics/numbers.hpp"
#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace {
using namespace quire;

struct golden {
  char const* name;
  double magnitude;
  std::vector<double> frequencies;
  std::vector<double> rotated;
};
auto goldens() -> std::vector<golden> {
  return {
#include "mathematics/rope_golden.txt" // written by make_rope_golden.py
  };
}

struct named {
  rope_config config;
  std::uint32_t length = 0;
};
auto scaled(rope_scaling scaling, double factor, std::uint32_t original = 0) -> rope_config {
  return {.width = 8, .scaling = scaling, .factor = factor, .original_length = token_count{original}};
}
auto phi() -> rope_config {
  auto out = scaled(rope_scaling::long_factors, 32.0, 4096);
  out.short_divisors = {1.0, 1.125, 1.25, 1.375};
  out.long_divisors = {4.0, 20.0, 36.0, 52.0};
  return out;
}
auto configs() -> std::map<std::string, named> {
  auto const plain = rope_config{.width = 8};
  auto interleaved = plain;
  interleaved.layout = rope_layout::interleaved;
  auto const dynamic = scaled(rope_scaling::dynamic_ntk, 2.0, 2048);
  auto const yarn = [](double base, double factor, std::uint32_t original) {
    return rope_config{.width = 64,
                       .base = base,
                       .scaling = rope_scaling::yarn,
                       .factor = factor,
                       .original_length = token_count{original}};
  };
  auto deepseek = yarn(10000.0, 40.0, 4096);
  deepseek.magnitude = 0.707;
  deepseek.magnitude_all = 0.5;
  auto exact = yarn(150000.0, 32.0, 4096);
  exact.round_ramp = false;
  return {
      {"half_split", {plain}},
      {"interleaved", {interleaved}},
      {"partial", {plain}},
      {"linear", {scaled(rope_scaling::linear, 4.0)}},
      {"ntk", {scaled(rope_scaling::ntk, 4.0)}},
      {"dynamic_1000", {dynamic, 1000}},
      {"dynamic_2048", {dynamic, 2048}},
      {"dynamic_2049", {dynamic, 2049}},
      {"dynamic_5000", {dynamic, 5000}},
      {"yarn_qwen", {yarn(1e6, 4.0, 32768)}},
      {"yarn_deepseek_v2", {deepseek}},
      {"yarn_exact_ramp", {exact}},
      {"llama3",
       {{.width = 128,
         .base = 500000.0,
         .scaling = rope_scaling::llama3,
         .factor = 8.0,
         .original_length = token_count{8192},
         .low_frequency_factor = 1.0,
         .high_frequency_factor = 4.0}}},
      {"short_factors", {phi(), 4096}},
      {"long_factors", {phi(), 4097}},
  };
}
auto rule(named const& of) -> resolved_rope { return {of.config, token_count{of.length}}; }
} // namespace

TEST_CASE("S32: frequencies and rotations are those of the papers") {
  auto const all = configs();
  auto const expected = goldens();
  CHECK(all.size() == expected.size());
  for (auto const& g : expected) {
    INFO(g.name);
    auto const rope = rule(all.at(g.name));
    CHECK(rope.magnitude() == quire_test::approx(g.magnitude).epsilon(1e-14));
    REQUIRE(rope.frequencies().size() == g.frequencies.size());
    for (std::size_t i = 0; i < g.frequencies.size(); ++i) {
      CHECK(rope.frequencies()[i] == quire_test::approx(g.frequencies[i]).epsilon(1e-13));
    }
    auto const width = 2.0 * static_cast<double>(g.frequencies.size());
    std::vector<double> head;
    for (std::size_t d = 0; d < g.rotated.size(); ++d) { head.push_back(static_cast<double>(d + 1) / width); }
    rope.rotate(std::span{head}, token_pos{12345});
    CHECK(quire_test::distance(head, g.rotated) < 2e-9); // 12345 radians cost four digits
  }
}

TEST_CASE("S14: a score depends on the distance of logical positions only") {
  auto draw = quire_test::numbers{31};
  auto const all = configs();
  for (auto const& [name, config] : all) {
    auto const rope = rule(config);
    auto const width = config.config.width;
    auto const q = draw.many(width);
    auto const k = draw.many(width);
    auto const score = [&](std::uint32_t query, std::uint32_t key) {
      auto a = q;
      auto b = k;
      rope.rotate(std::span{a}, token_pos{query});
      rope.rotate(std::span{b}, token_pos{key});
      auto sum = 0.0;
      for (std::size_t d = 0; d < width; ++d) { sum += a[d] * b[d]; }
      return sum / (rope.magnitude() * rope.magnitude());
    };
    INFO(name);
    CHECK(std::fabs(score(7, 3) - score(1007, 1003)) < 1e-9);
    auto plain = 0.0;
    for (std::size_t d = 0; d < width; ++d) { plain += q[d] * k[d]; }
    CHECK(std::fabs(score(500, 500) - plain) < 1e-9);
    CHECK(std::fabs(score(7, 3) - score(7, 4)) > 1e-4); // one off is another score
  }
}

TEST_CASE("S14: single precision is rotated as double and rounded once") {
  auto const rope = resolved_rope{{.width = 8}, {}};
  auto single = std::vector<float>{0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F};
  auto wide = std::vector<double>(single.begin(), single.end());
  rope.rotate(std::span{single}, token_pos{1'000'000});
  rope.rotate(std::span{wide}, token_pos{1'000'000});
  for (std::size_t d = 0; d < 8; ++d) { CHECK(single[d] == static_cast<float>(wide[d])); }
}

TEST_CASE("S14: no rotation leaves everything, a head narrower than the rule is refused") {
  auto head = std::vector{1.0, 2.0, 3.0};
  resolved_rope{}.rotate(std::span{head}, token_pos{9});
  CHECK(head == std::vector{1.0, 2.0, 3.0});
  auto const rope = resolved_rope{{.width = 4}, {}};
  CHECK_THROWS_AS(rope.rotate(std::span{head}, token_pos{1}), quire_test::contract_violation);
}

TEST_CASE("S31: keys are turned to another position only in a named approximate mode") {
  auto draw = quire_test::numbers{33};
  auto const all = configs();
  auto const rope = rule(all.at("yarn_qwen"));
  auto const original = draw.many(64);
  auto key = original;
  rope.rotate(std::span{key}, token_pos{10});
  auto const stored = key;
  auto const refused = rope.shift(std::span{key}, {.from = token_pos{10}, .to = token_pos{5}}, position_mode::exact);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == errc::not_supported);
  CHECK(key == stored);
  // case 71: -2 then -3 is -5, nothing is lost in between
  REQUIRE(rope.shift(std::span{key}, {.from = token_pos{10}, .to = token_pos{8}}, position_mode::approximate));
  REQUIRE(rope.shift(std::span{key}, {.from = token_pos{8}, .to = token_pos{5}}, position_mode::approximate));
  auto fresh = original;
  rope.rotate(std::span{fresh}, token_pos{5});
  CHECK(quire_test::distance(key, fresh) < 1e-13); // the magnitude is not applied again
}

TEST_CASE("S33: every parameter of a position rule is in its bytes") {
  auto const base = rope_config{.width = 8,
                                .scaling = rope_scaling::yarn,
                                .factor = 4.0,
                                .original_length = token_count{64},
                                .magnitude = 1.0,
                                .magnitude_all = 2.0,
                                .attention_factor = 1.5};
  auto const bytes = [](rope_config const& config, std::uint32_t length = 0) {
    return resolved_rope{config, token_count{length}}.canonical_bytes();
  };
  auto const changes = std::vector<std::function<void(rope_config&)>>{
      [](auto& c) { c.width = 6; },
      [](auto& c) { c.layout = rope_layout::interleaved; },
      [](auto& c) { c.base = 20000.0; },
      [](auto& c) { c.scaling = rope_scaling::llama3; },
      [](auto& c) { c.factor = 8.0; },
      [](auto& c) { c.original_length = token_count{128}; },
      [](auto& c) { c.beta_fast = 16.0; },
      [](auto& c) { c.beta_slow = 2.0; },
      [](auto& c) { c.round_ramp = false; },
      [](auto& c) { c.magnitude = 0.5; },
      [](auto& c) { c.magnitude_all = 0.5; },
      [](auto& c) { c.attention_factor = {}; },
      [](auto& c) { c.low_frequency_factor = 2.0; },
      [](auto& c) { c.high_frequency_factor = 8.0; },
      [](auto& c) { c.short_divisors = {1.0}; },
      [](auto& c) { c.long_divisors = {1.0}; },
  };
  CHECK(bytes(base) == bytes(base));
  auto seen = std::vector<std::vector<std::byte>>(1, bytes(base));
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO(i);
    auto changed = base;
    changes[i](changed);
    auto const now = bytes(changed);
    for (auto const& before : seen) { CHECK(now != before); }
    CHECK(resolved_rope{changed, {}} != resolved_rope{base, {}});
    seen.push_back(now);
  }
  CHECK(resolved_rope{}.canonical_bytes() != bytes({.width = 2}));
  CHECK(resolved_rope{}.canonical_bytes() == bytes({.width = 0, .base = 3.0})); // nothing turns: one rule
  SECTION("they are what an identity asks for") {
    auto const of = [&](std::uint32_t length) { return position_config{bytes(phi(), length)}; };
    CHECK(of(4096) == of(1));
    CHECK_FALSE(of(4096) == of(4097));
    CHECK_NOTHROW(position_config{resolved_rope{}.canonical_bytes()}); // no rotation is said, not left empty
  }
  SECTION("the encoding is fixed") {
    auto const plain = bytes({.width = 2});
    auto const text = std::string{"quire/rope/1"};
    REQUIRE(plain.size() == 8 + text.size() + 17 * 8);
    CHECK(std::to_integer<int>(plain[0]) == 12);
    for (std::size_t i = 0; i < text.size(); ++i) { CHECK(static_cast<char>(plain[8 + i]) == text[i]); }
    CHECK(std::to_integer<int>(plain[20]) == 2); // width
  }
}

TEST_CASE("S32: short- and long-factor requests never share") {
  auto const at = [](rope_config const& config, std::uint32_t length) {
    return resolved_rope{config, token_count{length}};
  };
  CHECK(at(phi(), 4096).canonical_bytes() != at(phi(), 4097).canonical_bytes());
  CHECK(at(phi(), 4096) != at(phi(), 4097));
  CHECK(at(phi(), 10).canonical_bytes() == at(phi(), 4096).canonical_bytes());
  CHECK(at(phi(), 5000).canonical_bytes() == at(phi(), 100000).canonical_bytes());
  auto const dynamic = scaled(rope_scaling::dynamic_ntk, 2.0, 2048);
  CHECK(at(dynamic, 2048).canonical_bytes() == at(dynamic, 1).canonical_bytes());
  CHECK(at(dynamic, 2049).canonical_bytes() != at(dynamic, 2048).canonical_bytes());
  CHECK(at(dynamic, 2049).canonical_bytes() != at(dynamic, 2050).canonical_bytes());
  auto const fixed = scaled(rope_scaling::ntk, 2.0);
  CHECK(at(fixed, 1).canonical_bytes() == at(fixed, 100000).canonical_bytes());
  CHECK(depends_on_length(rope_scaling::dynamic_ntk));
  CHECK(depends_on_length(rope_scaling::long_factors));
  CHECK_FALSE(depends_on_length(rope_scaling::yarn));
}

TEST_CASE("S32: impossible position rules are refused with the reason") {
  auto const refused = [](rope_config const& config, char const* why) {
    CHECK_THROWS_WITH((resolved_rope{config, {}}), quire_test::ContainsSubstring(why));
    CHECK_THROWS_AS((resolved_rope{config, {}}), config_error);
  };
  refused({.width = 3}, "odd");
  refused({.width = 4, .base = 1.0}, "base");
  refused({.width = 4, .base = std::numeric_limits<double>::quiet_NaN()}, "base");
  refused({.width = 4, .scaling = rope_scaling::linear, .factor = 0.5}, "factor");
  refused({.width = 2, .scaling = rope_scaling::ntk, .factor = 2.0}, "width above 2");
  refused(scaled(rope_scaling::dynamic_ntk, 2.0), "original_length");
  refused(scaled(rope_scaling::yarn, 2.0), "original_length");
  refused(scaled(rope_scaling::llama3, 2.0), "original_length");
  auto yarn = scaled(rope_scaling::yarn, 2.0, 64);
  yarn.beta_slow = 33.0;
  refused(yarn, "beta_fast");
  yarn = scaled(rope_scaling::yarn, 2.0, 64);
  yarn.magnitude = -1.0;
  refused(yarn, "magnitudes");
  yarn = scaled(rope_scaling::yarn, 2.0, 64);
  yarn.attention_factor = 0.0;
  refused(yarn, "attention factor");
  auto llama = scaled(rope_scaling::llama3, 2.0, 64);
  llama.high_frequency_factor = 1.0;
  refused(llama, "high_frequency_factor");
  auto lists = phi();
  lists.long_divisors.pop_back();
  refused(lists, "long_divisors has 3 entries: use one per pair, 4");
  lists = phi();
  lists.short_divisors[1] = 0.0;
  refused(lists, "short_divisors must be positive");
}

TEST_CASE("S32: a request's parameters are fixed, a change reports what to rebuild (cases 69, 70)") {
  auto const none = position_interval{};
  auto const all_of = [](std::uint32_t n) { return position_interval{.begin = token_pos{0}, .end = token_pos{n}}; };
  auto const want = [](std::uint32_t cached, std::uint32_t length) {
    return request_rope::growth{.cached = token_count{cached}, .length = token_count{length}};
  };
  SECTION("dynamic NTK, case 69") {
    auto request = request_rope{scaled(rope_scaling::dynamic_ntk, 2.0, 4), token_count{8}};
    auto const at_eight = request.rule();
    CHECK(request.rebuild_for(want(8, 8)) == none);
    CHECK(request.rebuild_for(want(5, 6)) == none); // never back to a smaller base
    CHECK(request.rebuild_for(want(8, 9)) == all_of(8));
    CHECK(request.rule() == at_eight);            // asking changes nothing
    CHECK(request.grow(want(8, 9)) == all_of(8)); // nothing continues silently
    CHECK(request.rule() != at_eight);
    CHECK(request.length() == token_count{9});
    CHECK(request.rebuild_for(want(9, 9)) == none);
    auto const at_nine = request.rule();
    CHECK(request.grow(want(9, 3)) == none);
    CHECK(request.rule() == at_nine);
    // another request is not touched by this one
    CHECK(request_rope{scaled(rope_scaling::dynamic_ntk, 2.0, 4), token_count{8}}.rule() == at_eight);
  }
  SECTION("below the trained context nothing changes") {
    auto const request = request_rope{scaled(rope_scaling::dynamic_ntk, 2.0, 4096), token_count{8}};
    CHECK(request.rebuild_for(want(8, 4096)) == none);
    CHECK(request.rebuild_for(want(8, 4097)) == all_of(8));
  }
  SECTION("long and short factors, case 70") {
    auto config = phi();
    config.original_length = token_count{8};
    auto request = request_rope{config, token_count{8}};
    CHECK(request.rebuild_for(want(8, 9)) == all_of(8));
    CHECK(request.grow(want(8, 9)) == all_of(8));
    CHECK(request.rebuild_for(want(9, 100)) == none);
  }
  SECTION("rules that do not depend on the length never change") {
    for (auto const scaling : {rope_scaling::none, rope_scaling::linear, rope_scaling::ntk}) {
      CHECK(request_rope{scaled(scaling, 2.0), token_count{8}}.rebuild_for(want(8, 100000)) == none);
    }
  }
  SECTION("nothing cached, nothing to rebuild") {
    auto const request = request_rope{scaled(rope_scaling::dynamic_ntk, 2.0, 4), token_count{8}};
    CHECK(request.rebuild_for(want(0, 9)).empty());
  }
}
