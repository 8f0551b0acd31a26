// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One include for Catch2 2.13 (Debian 12) and Catch2 3 (Ubuntu 24.04). Tests include this and never Catch2 itself.
/// Floating-point comparison: `quire_test::approx(x)`.

#include <string>

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_adapters.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/interfaces/catch_interfaces_capture.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace quire_test {
/// Matches a string that contains the given one.
using Catch::Matchers::ContainsSubstring;
/// A floating-point value, compared with a tolerance.
using approx = Catch::Approx;
} // namespace quire_test
#else
#include <catch2/catch.hpp>

namespace quire_test {
/// Matches a string that contains the given one.
inline auto ContainsSubstring(std::string const& text) { return Catch::Matchers::Contains(text); }
/// A floating-point value, compared with a tolerance.
using approx = Catch::Detail::Approx;
} // namespace quire_test
#endif
