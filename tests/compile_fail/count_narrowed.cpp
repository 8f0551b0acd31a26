// SPDX-License-Identifier: Apache-2.0
// A 64-bit size does not slip into a 32-bit count.
// expect: narrowing
#include <quire/core/types.hpp>

#include <cstdint>

constexpr auto many = std::uint64_t{1} << 40;

#ifdef FIXED
auto size = quire::byte_count{many};
#else
auto size = quire::block_count{many};
#endif
