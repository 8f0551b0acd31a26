// SPDX-License-Identifier: Apache-2.0
// The second unit: see odr_a.cpp.
#include "every_header.hpp" // generated from the list of headers

auto version_in_b() -> int;

auto version_in_b() -> int { return QUIRE_VERSION_MINOR; }
