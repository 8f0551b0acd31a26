// SPDX-License-Identifier: Apache-2.0

/// \file
/// Why eviction orders link nodes by index and not with Boost.Intrusive: the same list operations on the same nodes, once
/// with 4-byte index links (a node is 32 bytes, two a cache line), once with the pointer hooks of `boost::intrusive::list`
/// (40 bytes: some nodes straddle two lines). The row's floor is Boost.Intrusive: a ratio below 1 says that indices win.
/// Timed is what a pin and a release do to the order, and the walk of evicting everything.

#include "support.hpp"

#include <quire/core/types.hpp>
#include <quire/prefix/detail/aligned_vector.hpp>
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/order_list.hpp>

#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using namespace quire_bench;

constexpr std::uint32_t node_count = 65'536;

/// What a node of the run tree holds beside its links.
struct payload {
  std::uint32_t words[6] = {};
};

/// Nodes linked by index.
class indexed {
public:
  indexed() : nodes_(node_count + 1) {}
  [[nodiscard]] auto hook(quire::node_id node) noexcept -> quire::order_hook& { return nodes_[node.value()].links; }
  auto enter(std::uint32_t n) -> void { list_.push_back(*this, quire::node_id{n}); }
  auto leave(std::uint32_t n) -> void { list_.erase(*this, quire::node_id{n}); }
  auto touch(std::uint32_t n) -> void { ++nodes_[n].data.words[4]; }
  /// Takes the front out and returns its number.
  auto pop() -> std::uint32_t {
    auto const n = list_.front();
    list_.erase(*this, n);
    return n.value();
  }

private:
  struct alignas(32) entry {
    payload data;
    quire::order_hook links;
  };
  static_assert(sizeof(entry) == 32);
  quire::detail::aligned_vector<entry> nodes_;
  quire::order_list list_;
};

/// Nodes linked by pointer.
class intrusive {
public:
  intrusive() : nodes_(node_count + 1) {}
  ~intrusive() { list_.clear(); }
  intrusive(intrusive const&) = delete;
  auto operator=(intrusive const&) -> intrusive& = delete;
  auto enter(std::uint32_t n) -> void { list_.push_back(nodes_[n]); }
  auto leave(std::uint32_t n) -> void { list_.erase(list_.iterator_to(nodes_[n])); }
  auto touch(std::uint32_t n) -> void { ++nodes_[n].data.words[4]; }
  auto pop() -> std::uint32_t {
    auto& front = list_.front();
    list_.pop_front();
    return static_cast<std::uint32_t>(&front - nodes_.data());
  }

private:
  struct node : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> {
    payload data;
  };
  static_assert(sizeof(node) == 40);
  quire::detail::aligned_vector<node> nodes_;
  boost::intrusive::list<node, boost::intrusive::constant_time_size<false>> list_;
};

/// A pin and a release: a node is used and moves to the back. Nodes come in random order.
template <class Nodes>
auto use(Nodes& nodes, std::vector<std::uint32_t> const& order) -> double {
  return nanoseconds([&] {
    for (auto const n : order) {
      nodes.leave(n);
      nodes.touch(n);
      nodes.enter(n);
    }
    benchmark::ClobberMemory();
  });
}
/// Eviction of every node, oldest first.
template <class Nodes>
auto evict(Nodes& nodes) -> double {
  return nanoseconds([&] {
    for (std::uint32_t i = 0; i < node_count; ++i) { nodes.touch(nodes.pop()); }
    benchmark::ClobberMemory();
  });
}

auto compare(bool evicting) {
  return [=](benchmark::State& state) {
    std::mt19937_64 random{17};
    auto order = shuffled(random, node_count);
    for (auto& n : order) { ++n; } // node 0 is the sentinel
    indexed a;
    intrusive b;
    for (auto const n : order) {
      a.enter(n);
      b.enter(n);
    }
    auto const run = [&](auto& nodes) {
      if (!evicting) { return use(nodes, order); }
      auto const time = evict(nodes);
      for (auto const n : order) { nodes.enter(n); }
      return time;
    };
    auto const r = alternate(
        state, node_count,
        [&] {
          std::shuffle(order.begin(), order.end(), random);
          return run(a);
        },
        [&] { return run(b); });
    report(state, r, "");
  };
}

[[maybe_unused]] auto const registered = add("order/use_index_links_beside_boost_intrusive", 31, compare(false)) &&
                                         add("order/evict_index_links_beside_boost_intrusive", 31, compare(true));

} // namespace
