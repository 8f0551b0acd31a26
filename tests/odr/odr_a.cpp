// SPDX-License-Identifier: Apache-2.0
// Every header of the library in two units of one program: a function that lacks `inline` does not link.
#include <quire/quire.hpp>

#include "every_header.hpp" // generated from the list of headers

auto version_in_b() -> int;

auto main() -> int { return QUIRE_VERSION_MINOR == version_in_b() ? 0 : 1; }
