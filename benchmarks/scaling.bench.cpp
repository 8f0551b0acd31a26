// SPDX-License-Identifier: Apache-2.0

/// \file
/// What an operation costs must not depend on how the index looks. Seven indexes of 100 000 nodes each, which differ in
/// fan-out, in the share of pinned leaves and in the number of leaves, take turns, operation by operation. Each operation is
/// timed alone, and between two of one index 28 MB are written elsewhere: all data comes from memory, so that no shape
/// profits from being small or hot. Reported are the medians of the slowest shape (ns) and of the fastest (floor_ns).

#include "prefix_fixture.hpp"
#include "support.hpp"

#include <quire/core/types.hpp>
#include <quire/prefix/prefix_pin.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace quire_bench;

constexpr std::uint32_t all_units = 131'072;
constexpr std::uint32_t wanted_nodes = 100'000;

/// Two units: a parent and a leaf.
using prompt = std::array<quire::token_id, 2 * std::size_t{unit_tokens}>;

struct shape {
  std::string_view name;
  std::uint32_t fan_out = 0;        ///< leaves of each parent
  std::uint32_t pinned_percent = 0; ///< of the leaves
  std::uint32_t chain = 0;          ///< pinned nodes that hang below each parent in one chain, so that leaves are few
};

constexpr shape shapes[] = {
    {"fan_out_2", 2},          {"fan_out_16", 16},      {"fan_out_316", 316},
    {"fan_out_99999", 99'999}, {"pinned_half", 16, 50}, {"pinned_nine_tenths", 16, 90},
    {"leaves_2000", 1, 0, 98},
};

/// One index of one shape. Its idle leaves stand in a ring in the order of their last use.
class grown_index {
public:
  explicit grown_index(shape what) : fixture_{all_units, unit_order::scattered} {
    auto const each = 1 + what.fan_out + what.chain;
    auto const parents = std::max(1U, wanted_nodes / each);
    for (std::uint32_t p = 0; p < parents; ++p) {
      auto const first = random_tokens(random_, unit_tokens);
      if (what.chain > 0) { grow_chain(first, what.chain); }
      for (std::uint32_t c = 0; c < what.fan_out; ++c) { leaves_.push_back(below(first)); }
    }
    std::shuffle(leaves_.begin(), leaves_.end(), random_);
    for (auto const& leaf : leaves_) { fixture_.cache(leaf); }
    auto const pinned = leaves_.size() * what.pinned_percent / 100;
    for (std::size_t i = 0; i < pinned; ++i) { pins_.push_back(fixture_.admit(leaves_[i])); }
    leaves_.erase(leaves_.begin(), leaves_.begin() + static_cast<std::ptrdiff_t>(pinned));
    std::shuffle(leaves_.begin(), leaves_.end(), random_);
    for (auto const& leaf : leaves_) { fixture_.cache(leaf); }
    expect(fixture_.index.nodes().value() > wanted_nodes * 98 / 100, "the index is too small");
  }

  /// Evicts one unit, and puts an equal one back. \returns [ns] of the first
  auto evict() -> double {
    quire::unit_id unit;
    auto const time = nanoseconds([&] { fixture_.evict({&unit, 1}); });
    fixture_.cache(oldest_leaf());
    return time;
  }
  /// Looks up a prompt whose first unit is known and whose second is not. \returns [ns]
  auto miss() -> double {
    auto const unknown = below(leaves_[random_() % leaves_.size()]);
    std::array<quire::unit_id, 2> ids;
    quire::prefix_match found;
    auto const time = nanoseconds([&] { found = fixture_.index.match(fixture_.root, unknown, ids); });
    expect(found.units.value() == 1, "the prompt should be half known");
    return time;
  }
  /// Finds an idle leaf, pins it and lets it go. \returns [ns]
  auto pin() -> double {
    auto const& leaf = oldest_leaf();
    std::array<quire::unit_id, 2> ids;
    return nanoseconds([&] {
      auto const found = fixture_.index.match(fixture_.root, leaf, ids);
      fixture_.index.release(fixture_.index.pin(found));
    });
  }

private:
  /// A prompt that begins with the first unit of \p tokens and ends as no other does.
  auto below(std::span<quire::token_id const> tokens) -> prompt {
    prompt out;
    std::copy_n(tokens.begin(), unit_tokens, out.begin());
    for (auto i = std::size_t{unit_tokens}; i < out.size(); ++i) {
      out[i] = static_cast<quire::token_id>(random_() & 0x1'ffffU);
    }
    return out;
  }
  /// The leaf that was used least recently; the caller uses it.
  auto oldest_leaf() -> prompt const& { return leaves_[next_++ % leaves_.size()]; }
  /// Nodes of one unit each in one chain: a pin ends at each of them, so that they cannot merge.
  auto grow_chain(std::vector<quire::token_id> tokens, std::uint32_t length) -> void {
    for (std::uint32_t i = 0; i < length; ++i) {
      pins_.push_back(fixture_.admit(tokens));
      auto const more = random_tokens(random_, unit_tokens);
      tokens.insert(tokens.end(), more.begin(), more.end());
    }
    pins_.push_back(fixture_.admit(tokens));
  }

  std::mt19937_64 random_{19};
  prefix_fixture<> fixture_;
  std::vector<prompt> leaves_; // that are idle
  std::vector<quire::prefix_pin> pins_;
  std::size_t next_ = 0; // the oldest leaf
};

auto independence(double (grown_index::*operation)()) {
  return [=](benchmark::State& state) {
    std::vector<std::unique_ptr<grown_index>> indexes;
    for (auto const& s : shapes) { indexes.push_back(std::make_unique<grown_index>(s)); }
    constexpr auto line = std::size_t{64};
    std::vector<char> elsewhere(std::size_t{64} << 20);
    std::size_t at = 0;
    auto const forget = [&] { // 4 MB
      for (std::size_t i = 0; i < (std::size_t{4} << 20) / line; ++i, at = (at + line) % elsewhere.size()) {
        ++elsewhere[at];
      }
      benchmark::ClobberMemory();
    };
    std::vector<double> clock;
    for (auto i = 0; i < 1000; ++i) {
      clock.push_back(nanoseconds([] {}));
    }

    std::vector<std::vector<double>> times(std::size(shapes));
    for (auto _ : state) {
      for (std::size_t s = 0; s < std::size(shapes); ++s) {
        forget();
        times[s].push_back(((*indexes[s]).*operation)());
      }
      state.SetIterationTime(1e-9);
    }
    auto slowest = 0.0;
    auto fastest = 1e18;
    for (std::size_t s = 0; s < std::size(shapes); ++s) {
      auto const ns = median(times[s]) - median(clock);
      state.counters[std::string{shapes[s].name}] = ns;
      slowest = std::max(slowest, ns);
      fastest = std::min(fastest, ns);
    }
    report(state, {slowest, fastest, slowest / fastest}, "ratio<=2 slowest of 7 shapes / fastest");
  };
}

[[maybe_unused]] auto const registered =
    add("scaling/evict_one_of_100000_nodes", 500, independence(&grown_index::evict)) &&
    add("scaling/miss_of_100000_nodes", 500, independence(&grown_index::miss)) &&
    add("scaling/pin_and_release_of_100000_nodes", 500, independence(&grown_index::pin));

} // namespace
