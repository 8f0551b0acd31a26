// SPDX-License-Identifier: Apache-2.0
#include <quire/core/errc.hpp>

#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// Every enumerator: they are dense from 0, and the first number without a text ends them.
auto all() -> std::vector<quire::errc> {
  auto out = std::vector<quire::errc>{};
  for (auto n = 0; n < 256; ++n) {
    auto const e = static_cast<quire::errc>(n);
    if (quire::message(e) == "unknown error") { break; }
    out.push_back(e);
  }
  return out;
}

/// Reasons with nothing to do about them: there the text says what happened to the caller's data, or what to look at.
auto is_final(quire::errc e) -> bool {
  using quire::errc;
  return e == errc::ok || e == errc::stale || e == errc::illegal_transition || e == errc::not_supported;
}

} // namespace

TEST_CASE("errc: the list is complete and ends where it should") {
  REQUIRE(all().size() == static_cast<std::size_t>(quire::errc::never_shared) + 1);
  REQUIRE(quire::errc{} == quire::errc::ok);
  REQUIRE(quire::message(static_cast<quire::errc>(255)) == "unknown error");
}

TEST_CASE("errc: every text is a sentence of its own") {
  auto texts = std::vector<std::string_view>{};
  for (auto const e : all()) {
    auto const text = quire::message(e);
    INFO(text);
    REQUIRE(text.size() >= std::string_view{"no error"}.size());
    REQUIRE(text.find_first_of("\n\t") == std::string_view::npos);
    REQUIRE(text.back() != '.');
    texts.push_back(text);
  }
  std::sort(texts.begin(), texts.end());
  REQUIRE(std::adjacent_find(texts.begin(), texts.end()) == texts.end());
}

TEST_CASE("errc: every text says what was wrong and then what would work") {
  for (auto const e : all()) {
    if (is_final(e)) { continue; }
    auto const text = quire::message(e);
    INFO(text);
    auto const colon = text.find(": ");
    REQUIRE(colon != std::string_view::npos);
    REQUIRE(colon >= 10);
    REQUIRE(text.size() - colon >= 10);
  }
}

TEST_CASE("case 101: what can never fit is told apart from what does not fit now") {
  REQUIRE(quire::errc::never_fits != quire::errc::no_blocks);
  REQUIRE_THAT(std::string{quire::message(quire::errc::no_blocks)}, quire_test::ContainsSubstring("retry"));
  REQUIRE_THAT(std::string{quire::message(quire::errc::never_fits)}, !quire_test::ContainsSubstring("retry"));
}
