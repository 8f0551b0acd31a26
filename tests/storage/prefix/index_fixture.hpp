// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A prefix index without a cache around it: texts go in, unit numbers come out, and every operation is audited.

#include <quire/core/types.hpp>
#include <quire/prefix/concepts.hpp>

#include "isolation/identity_fixtures.hpp"
#include "support/catch_compat.hpp"
#include "support/texts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire_test {

/// Unit numbers as plain integers, for comparisons.
inline auto numbers(std::span<quire::unit_id const> units) -> std::vector<std::uint32_t> {
  auto out = std::vector<std::uint32_t>{};
  for (auto const unit : units) { out.push_back(unit.value()); }
  return out;
}

/// An index whose units are numbered in the order 0, 1, 2, … of their publication, and again once they were evicted.
template <class Index>
class shelf {
public:
  Index index;
  quire::node_id root;

  shelf(unsigned units, unsigned unit_tokens)
      : index{quire::unit_count{units}, quire::token_count{unit_tokens}}, root{open("tenant")},
        unit_tokens_{unit_tokens} {}
  /// The empty prefix of a tenant.
  auto open(std::string_view tenant) -> quire::node_id { return index.open_root(scope(tenant).bytes()); }
  /// The digest that \p tokens have below the root, computed without the index.
  auto bare_digest(text const& tokens) const {
    auto const policy = typename Index::digest_policy_type{};
    auto digest = policy.root(scope("tenant").bytes());
    for (std::size_t i = 0; i + unit_tokens_ <= tokens.size(); i += unit_tokens_) {
      digest = policy.chain(digest, std::span{tokens}.subspan(i, unit_tokens_));
    }
    return digest;
  }
  /// Units of the longest resident prefix of \p tokens below \p below.
  auto find(quire::node_id below, text const& tokens) const -> std::vector<std::uint32_t> {
    auto out = std::vector<quire::unit_id>(tokens.size() / unit_tokens_);
    auto const found = index.match(below, tokens, out);
    out.resize(found.units.value());
    return numbers(out);
  }
  auto find(text const& tokens) const -> std::vector<std::uint32_t> { return find(root, tokens); }
  /// Pins what is resident of \p tokens.
  auto pin(quire::node_id below, text const& tokens) -> quire::prefix_pin {
    auto out = std::vector<quire::unit_id>(tokens.size() / unit_tokens_);
    auto const found = index.match(below, tokens, out);
    auto const idle = index.evictable();
    auto const would = index.would_pin(found);
    auto got = index.pin(found);
    CHECK(index.evictable() == idle - would);
    note(got, 1);
    return got;
  }
  auto pin(text const& tokens) -> quire::prefix_pin { return pin(root, tokens); }
  /// A second pin on the path of \p held without its last \p back units.
  auto pin_back(quire::prefix_pin const& held, unsigned back) -> quire::prefix_pin {
    auto got = index.pin_back(held, quire::unit_count{back});
    note(got, 1);
    audit();
    return got;
  }
  /// A private unit that holds \p tokens.
  auto write(text const& tokens) -> quire::unit_id {
    auto const unit = index.take_unit();
    REQUIRE(static_cast<bool>(unit));
    std::copy(tokens.begin(), tokens.end(), index.tokens(unit).begin());
    return unit;
  }
  /// Publishes \p units behind \p pin in one call.
  auto publish_units(quire::prefix_pin& pin, std::span<quire::unit_id const> units) -> quire::publish_result {
    note(pin, -1);
    auto const done = index.publish(pin, units);
    note(pin, 1);
    return done;
  }
  /// Publishes full units of \p tokens behind \p pin, whose own units give way to those that exist.
  void extend(quire::prefix_pin& pin, text const& tokens) {
    auto units = std::vector<quire::unit_id>{};
    for (std::size_t i = 0; i + unit_tokens_ <= tokens.size(); i += unit_tokens_) {
      units.push_back(write(head(tail(tokens, i), unit_tokens_)));
    }
    for (auto left = std::span<quire::unit_id const>{units}; !left.empty();) {
      auto const done = publish_units(pin, left);
      left = left.subspan(done.published.value());
      if (!done.existing) { continue; }
      index.drop_unit(left.front());
      left = left.subspan(1);
    }
    audit();
  }
  /// Pins the whole of \p tokens and publishes what is missing.
  auto publish(quire::node_id below, text const& tokens) -> quire::prefix_pin {
    auto got = pin(below, tokens);
    extend(got, tail(tokens, find(below, tokens).size() * unit_tokens_));
    return got;
  }
  auto publish(text const& tokens) -> quire::prefix_pin { return publish(root, tokens); }
  void release(quire::prefix_pin&& pin) {
    note(pin, -1);
    index.release(std::move(pin));
    audit();
  }
  /// Publishes and gives back.
  void use(quire::node_id below, text const& tokens) { release(publish(below, tokens)); }
  void use(text const& tokens) { use(root, tokens); }
  /// Evicts \p n units.
  auto evict(std::size_t n) -> std::vector<std::uint32_t> {
    auto out = std::vector<quire::unit_id>(n);
    out.resize(index.evict(out).value());
    audit();
    return numbers(out);
  }
  /// Nobody will look below \p below again.
  void close(quire::node_id below) {
    index.close_root(below);
    audit();
  }
  /// Requires every invariant of the index, and that every unit is free, private or published.
  void audit() const {
    auto const broken = index.audit(pins_);
    INFO(broken);
    REQUIRE(broken.empty());
    std::uint32_t published = 0;
    std::uint32_t held = 0;
    for (std::uint32_t i = 0; i < index.capacity().value(); ++i) {
      published += index.published(quire::unit_id{i}) ? 1U : 0U;
      held += index.holders(quire::unit_id{i}) > 0 ? 1U : 0U;
    }
    REQUIRE(published == index.cached().value());
    REQUIRE(index.free_units().value() + held + published == index.capacity().value());
  }
  /// Counts \p more pins at the node of \p pin, for a test that uses the index directly.
  void note(quire::prefix_pin const& pin, int more) {
    if (!pin || quire::is_root(pin.node())) { return; }
    auto const n = pin.node().value();
    if (pins_.size() <= n) { pins_.resize(n + std::size_t{1}); }
    pins_[n] = static_cast<std::uint32_t>(static_cast<int>(pins_[n]) + more);
  }

private:
  static auto scope(std::string_view tenant) -> quire::scope_key { return scope_of(some_fields(), domain_of(tenant)); }

  unsigned unit_tokens_;
  std::vector<std::uint32_t> pins_ = {};
};

} // namespace quire_test
