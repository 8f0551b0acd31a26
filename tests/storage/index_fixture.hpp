// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A prefix index without a cache around it: texts go in, block numbers come out, and every operation is audited.

#include <quire/core/types.hpp>
#include <quire/prefix/concepts.hpp>

#include "isolation/identity_fixtures.hpp"
#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace quire_test {

/// An index of blocks that are handed out in the order 0, 1, 2, … and again once they were evicted.
template <class Index>
class shelf {
public:
  Index index;
  quire::node_id root;

  shelf(unsigned blocks, unsigned block_tokens)
      : index{quire::block_count{blocks}, quire::token_count{block_tokens}}, root{open("tenant")}, unit_{block_tokens} {
    for (auto b = blocks; b-- > 0;) { free_.push_back(quire::block_id{b}); }
  }
  /// The empty prefix of a tenant.
  auto open(std::string_view tenant) -> quire::node_id {
    return index.open_root(scope_of(some_fields(), domain_of(tenant)).bytes());
  }
  /// Blocks of the longest resident prefix of \p tokens below \p below.
  auto find(quire::node_id below, text const& tokens) const -> std::vector<std::uint32_t> {
    auto out = std::vector<quire::block_id>(tokens.size() / unit_);
    auto const found = index.match(below, tokens, out);
    out.resize(found.blocks.value());
    return numbers(out);
  }
  auto find(text const& tokens) const -> std::vector<std::uint32_t> { return find(root, tokens); }
  /// Pins what is resident of \p tokens.
  auto pin(quire::node_id below, text const& tokens) -> quire::prefix_pin {
    auto out = std::vector<quire::block_id>(tokens.size() / unit_);
    auto const found = index.match(below, tokens, out);
    auto const idle = index.evictable();
    auto const would = index.would_pin(found);
    auto got = index.pin(found);
    CHECK(index.evictable() == idle - would);
    note(got, 1);
    return got;
  }
  auto pin(text const& tokens) -> quire::prefix_pin { return pin(root, tokens); }
  /// Pins the whole of \p tokens and publishes what is missing; the blocks come from the front of the free ones.
  auto publish(quire::node_id below, text const& tokens) -> quire::prefix_pin {
    auto got = pin(below, tokens);
    auto const have = find(below, tokens).size();
    auto fresh = std::vector<quire::block_id>{};
    for (auto i = have; i < tokens.size() / unit_; ++i) {
      REQUIRE_FALSE(free_.empty());
      fresh.push_back(free_.back());
      free_.pop_back();
      auto const text_of = index.tokens(fresh.back());
      std::copy_n(tokens.begin() + static_cast<std::ptrdiff_t>(i * unit_), unit_, text_of.begin());
    }
    note(got, -1);
    auto const done = index.publish(got, fresh);
    note(got, 1);
    CHECK(done.published.value() == fresh.size());
    CHECK_FALSE(done.duplicate);
    audit();
    return got;
  }
  auto publish(text const& tokens) -> quire::prefix_pin { return publish(root, tokens); }
  void release(quire::prefix_pin&& pin) {
    note(pin, -1);
    index.release(std::move(pin));
    audit();
  }
  /// Publishes and gives back.
  void use(text const& tokens) { release(publish(tokens)); }
  /// Evicts \p n blocks for good.
  auto evict(std::size_t n) -> std::vector<std::uint32_t> {
    auto const out = claim(n);
    index.confirm();
    for (auto i = out.size(); i-- > 0;) { free_.push_back(quire::block_id{out[i]}); }
    audit();
    return out;
  }
  /// Makes \p n blocks unmatchable; `index.confirm` or `restore` must follow.
  auto claim(std::size_t n) -> std::vector<std::uint32_t> {
    auto out = std::vector<quire::block_id>(n);
    index.reserve_claims(quire::block_count{static_cast<std::uint32_t>(n)});
    out.resize(index.claim(out).value());
    audit();
    return numbers(out);
  }
  /// Puts claims back; returns the blocks that have no place any more.
  auto restore() -> std::vector<std::uint32_t> {
    auto orphans = std::vector<std::uint32_t>{};
    index.restore([&](quire::block_id b) { orphans.push_back(b.value()); });
    audit();
    return orphans;
  }
  /// Requires every invariant of the index.
  void audit() const {
    auto const broken = index.audit(pins_);
    INFO(broken);
    REQUIRE(broken.empty());
  }
  /// Counts \p more pins at the node of \p pin, for a test that uses the index directly.
  void note(quire::prefix_pin const& pin, int more) {
    if (!pin || quire::is_root(pin.node())) { return; }
    auto const n = pin.node().value();
    if (pins_.size() <= n) { pins_.resize(n + std::size_t{1}); }
    pins_[n] = static_cast<std::uint32_t>(static_cast<int>(pins_[n]) + more);
  }

private:
  unsigned unit_;
  std::vector<quire::block_id> free_ = {};
  std::vector<std::uint32_t> pins_ = {};
};

} // namespace quire_test
