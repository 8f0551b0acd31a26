// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// `quire_test::prop("text", [](args...) {...})`: one RapidCheck property as a section of a Catch2 test case. It stands
/// in for <rapidcheck/catch.h>, whose packaged version works with Catch2 2 only and cannot print the
/// `RC_PARAMS="reproduce=…"` line that replays a failure.
///
/// Traps: `RC_PRE(a && b)` does not short-circuit, so write two; a command generator given to `rc::state::check`
/// outlives the property, so it must not capture locals by reference.

#include "support/catch_compat.hpp"

#include <rapidcheck.h>

#include <iostream>
#include <sstream>
#include <string>
#include <utility>

namespace quire_test {

/// Checks \p testable on random arguments. \p description is unique within its test case.
template <class Testable>
void prop(std::string const& description, Testable&& testable) {
  SECTION(description) {
    rc::detail::TestMetadata metadata;
    // The test case is part of the id, so that instances of one template do not share a reproduce entry.
    metadata.id = std::string{Catch::getResultCapture().getCurrentTestName()} + " / " + description;
    metadata.description = description;
    auto const result = rc::detail::checkTestable(std::forward<Testable>(testable), metadata);
    auto text = std::ostringstream{};
    rc::detail::printResultMessage(result, text);
    INFO(text.str());
    if (result.template is<rc::detail::SuccessResult>()) {
      if (!result.template get<rc::detail::SuccessResult>().distribution.empty()) { std::cout << text.str() << '\n'; }
      SUCCEED();
    } else {
      FAIL("property failed");
    }
  }
}

} // namespace quire_test
