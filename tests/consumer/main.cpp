// SPDX-License-Identifier: Apache-2.0
#include <quire/quire.hpp>

#include <quire/core/checked.hpp>

#include <cstdint>

auto main() -> int { return quire::ceil_div<std::uint32_t>(17, 16) == 2 ? 0 : 1; }
