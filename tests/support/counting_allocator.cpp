// SPDX-License-Identifier: Apache-2.0
// Replaces every form of operator new and delete by malloc and free, which the sanitizers see.
#include "support/counting_allocator.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local constinit std::size_t made = 0;
thread_local constinit std::size_t countdown = 0; // 0 = never; 1 = the next one fails

auto allocate(std::size_t size) noexcept -> void* {
  if (countdown != 0 && --countdown == 0) { return nullptr; }
  ++made;
  return std::malloc(std::max<std::size_t>(size, 1));
}

auto allocate(std::size_t size, std::align_val_t align) noexcept -> void* {
  if (countdown != 0 && --countdown == 0) { return nullptr; }
  ++made;
  auto const to = static_cast<std::size_t>(align);
  return std::aligned_alloc(to, (std::max<std::size_t>(size, 1) + to - 1) / to * to);
}

auto or_throw(void* p) -> void* {
  if (p == nullptr) { throw std::bad_alloc{}; }
  return p;
}

} // namespace

namespace quire_test {
auto allocations() noexcept -> std::size_t { return made; }
void fail_allocation_at(std::size_t n) noexcept { countdown = n; }
void fail_never() noexcept { countdown = 0; }
} // namespace quire_test

// clang-format off
auto operator new(std::size_t n) -> void* { return or_throw(allocate(n)); }
auto operator new[](std::size_t n) -> void* { return or_throw(allocate(n)); }
auto operator new(std::size_t n, std::align_val_t a) -> void* { return or_throw(allocate(n, a)); }
auto operator new[](std::size_t n, std::align_val_t a) -> void* { return or_throw(allocate(n, a)); }
auto operator new(std::size_t n, std::nothrow_t const&) noexcept -> void* { return allocate(n); }
auto operator new[](std::size_t n, std::nothrow_t const&) noexcept -> void* { return allocate(n); }
auto operator new(std::size_t n, std::align_val_t a, std::nothrow_t const&) noexcept -> void* { return allocate(n, a); }
auto operator new[](std::size_t n, std::align_val_t a, std::nothrow_t const&) noexcept -> void* { return allocate(n, a); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::nothrow_t const&) noexcept { std::free(p); }
void operator delete[](void* p, std::nothrow_t const&) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t, std::nothrow_t const&) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t, std::nothrow_t const&) noexcept { std::free(p); }
// clang-format on
