// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A prefix index beside its naive model, with holders and private units that this file keeps. Every operation is audited
/// and compared: the units of a match, counts, digests, and victims one by one.

#include <quire/core/types.hpp>
#include <quire/prefix/concepts.hpp>
#include <quire/prefix/prefix_pin.hpp>

#include "isolation/identity_fixtures.hpp"
#include "support/model_prefix.hpp"
#include "support/toy_kv.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire_test {

/// What can be done to an index.
enum class index_verb : std::uint8_t {
  request, ///< Pin what is there of a prompt and publish the rest.
  grow,    ///< Publish behind a holder.
  release, ///< A holder leaves.
  shorten, ///< A second holder of a part of a path.
  evict,   ///< Victims leave.
  share,   ///< Several holders of one private unit, which one of them publishes.
  keep,    ///< Private units come and go.
  digest,  ///< Ask for the digest of a path.
  probe,   ///< Look-ups that must miss.
  remove,  ///< Units leave for good, with everything below them.
  close,   ///< A root is closed, and another one opened for its tenant.
  count_
};
/// Names of the verbs.
inline constexpr char const* index_verbs[] = {"request", "grow",   "release", "shorten", "evict", "share",
                                              "keep",    "digest", "probe",   "remove",  "close"};

/// One command; what its numbers mean is up to the verb.
struct index_command {
  index_verb verb = index_verb::request;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  friend auto operator<<(std::ostream& out, index_command const& c) -> std::ostream& {
    return out << index_verbs[static_cast<std::size_t>(c.verb)] << '(' << c.a << ", " << c.b << ')';
  }
};

/// The size of a world.
struct index_size {
  std::uint32_t units = 16;
  std::uint32_t unit_tokens = 4;
  std::uint32_t longest = 8;   ///< [units] of a request.
  std::uint32_t usual = 8;     ///< [units] of nearly all requests.
  std::uint32_t symbols = 2;   ///< Different units at one place.
  std::uint32_t branching = 2; ///< 1 in so many units may be another symbol than 0.
  friend auto operator<<(std::ostream& out, index_size const& s) -> std::ostream& {
    return out << s.units << " units of " << s.unit_tokens << ", longest " << s.longest << ", usual " << s.usual << ", "
               << s.symbols << " symbols, 1 in " << s.branching;
  }
};

/// \tparam Index models `prefix_index`.
template <class Index>
class model_prefix_world {
public:
  using path = model_prefix::path;

  model_prefix_world(index_size const& size, model_order order, bool runs)
      : size_{size}, index_{quire::unit_count{size.units}, quire::token_count{size.unit_tokens}}, model_{order, runs} {
    for (std::uint32_t tenant = 0; tenant < tenants; ++tenant) { open(tenant); }
  }

  /// Performs one command and checks everything.
  void perform(index_command const& c) {
    auto dice = toy_dice{c.b};
    switch (c.verb) {
    case index_verb::request: request(c.a, dice); break;
    case index_verb::grow: grow(c.a, dice); break;
    case index_verb::release:
      if (!holders_.empty()) { release(c.a % holders_.size()); }
      break;
    case index_verb::shorten: shorten(c.a, dice); break;
    case index_verb::evict: evict(1 + c.a % (size_.longest + 1)); break;
    case index_verb::share: share(c.a, dice); break;
    case index_verb::keep: keep(dice); break;
    case index_verb::digest:
      if (!holders_.empty()) { digest(holders_[c.a % holders_.size()]); }
      break;
    case index_verb::probe: probe(make_path(dice)); break;
    case index_verb::remove: remove(dice); break;
    case index_verb::close: close(c.a % tenants, dice); break;
    case index_verb::count_: break;
    }
    audit();
  }
  /// Releases everything, evicts everything in the right order, and checks that nothing is left.
  void finish() {
    while (!holders_.empty()) { release(holders_.size() - 1); }
    while (!private_.empty()) { drop(0); }
    audit();
    while (!model_.all().empty()) {
      evict(7);
      audit();
    }
    toy_check(index_.evictable().value() == 0 && index_.cached().value() == 0, "something is left");
    toy_check(index_.free_units().value() == size_.units, "a unit is missing");
  }
  /// How often units were victims, victims below closed roots, found in place of a new one (idle or not), shared, shared but there
  /// already, removed; digests asked for, roots closed.
  [[nodiscard]] auto coverage() const -> std::map<std::string, std::uint64_t> const& { return coverage_; }

private:
  static constexpr std::uint32_t tenants = 2;
  static constexpr std::size_t most_holders = 8;

  struct holder {
    quire::prefix_pin pin;
    path p;
    bool owned = false;
  };
  struct private_unit {
    quire::unit_id unit;
    std::uint32_t holders = 1;
  };

  // --- tokens and roots ---------------------------------------------------------------------------------------------
  /// Units that differ in one token, the first or the last.
  [[nodiscard]] auto token(std::uint32_t symbol, std::uint32_t i) const -> quire::token_id {
    auto const first = i == 0 && symbol % 2 == 1;
    auto const last = i + 1 == size_.unit_tokens && symbol / 2 % 2 == 1;
    return static_cast<quire::token_id>(symbol / 4 * 8 + (first ? 1U : 0U) + (last ? 2U : 0U));
  }
  [[nodiscard]] auto tokens_of(path const& p) const -> std::vector<quire::token_id> {
    auto out = std::vector<quire::token_id>{};
    for (std::size_t j = 1; j < p.size(); ++j) {
      for (std::uint32_t i = 0; i < size_.unit_tokens; ++i) { out.push_back(token(p[j], i)); }
    }
    return out;
  }
  void write(quire::unit_id unit, std::uint32_t symbol) {
    auto const to = index_.tokens(unit);
    for (std::uint32_t i = 0; i < size_.unit_tokens; ++i) { to[i] = token(symbol, i); }
  }
  [[nodiscard]] auto symbol(toy_dice& dice) const -> std::uint32_t {
    return dice.one_in(size_.branching) ? dice.below(size_.symbols) : 0;
  }
  /// A path below an open root, often one that was used before.
  [[nodiscard]] auto make_path(toy_dice& dice) -> path {
    auto const tenant = dice.one_in(5) ? 1U : 0U;
    auto p = path{open_[tenant]};
    if (!bank_.empty() && dice.below(3) != 0) {
      auto const& old = bank_[dice.below(bank_.size())];
      p.assign(old.begin(), old.begin() + 1 + dice.below(old.size()));
      p.front() = open_[p.front() % tenants];
    }
    auto const length = 1 + dice.below(dice.one_in(10) ? size_.longest : size_.usual);
    while (p.size() <= length) { p.push_back(symbol(dice)); }
    if (bank_.size() < 16) {
      bank_.push_back(p);
    } else {
      bank_[dice.below(bank_.size())] = p;
    }
    return p;
  }
  static auto scope(std::uint32_t root) -> quire::scope_key {
    return scope_of(some_fields(), domain_of(root % tenants == 0 ? std::string_view{"a"} : std::string_view{"b"}));
  }
  /// Opens the next root of \p tenant: its number is the tenant modulo their count.
  void open(std::uint32_t tenant) {
    while (roots_.size() % tenants != tenant) { roots_.push_back(quire::node_id::none()); }
    open_[tenant] = static_cast<std::uint32_t>(roots_.size());
    roots_.push_back(index_.open_root(scope(tenant).bytes()));
  }
  void close(std::uint32_t tenant, toy_dice& dice) {
    if (!dice.one_in(3)) { return; }
    model_.close(open_[tenant]);
    index_.close_root(roots_[open_[tenant]]);
    open(tenant);
    ++coverage_["closed"];
  }

  // --- checks -------------------------------------------------------------------------------------------------------
  /// \param counted holders at \p at that have not adopted it yet
  void audit(quire::node_id at = {}, std::uint32_t counted = 0) {
    auto pins = std::vector<std::uint32_t>(size_.units + std::size_t{1});
    for (auto const& h : holders_) {
      if (!quire::is_root(h.pin.node())) { ++pins[h.pin.node().value()]; }
    }
    if (counted > 0) { pins[at.value()] += counted; }
    if (auto const broken = index_.audit(pins); !broken.empty()) { throw toy_failure{"audit: " + broken}; }
    toy_check(index_.cached().value() == model_.all().size(), "another number of cached units");
    toy_check(index_.evictable().value() == model_.evictable(), "another number of idle units");
    // The whole content: which unit has which path, and is it pinned?
    std::size_t seen = 0;
    index_.for_each_node([&](quire::node_id, quire::node_id, auto units, std::uint32_t busy) {
      seen += units.size();
      for (auto const u : units) { busy_[u] = busy > 0; }
    });
    toy_check(seen == model_.all().size(), "the nodes hold another number of units");
    for (auto const& [p, e] : model_.all()) {
      toy_check(busy_[e.unit] == (e.pins > 0), "a unit is pinned, or idle, without reason");
      toy_check(index_.published(quire::unit_id{e.unit}), "a cached unit is not published");
    }
    // Every unit is free, private or published.
    for (auto const& one : private_) { toy_check(index_.holders(one.unit) == one.holders, "holders are miscounted"); }
    toy_check(index_.free_units().value() + private_.size() + model_.all().size() == size_.units,
              "free, private and published units are not all");
  }
  auto find(path const& p, quire::prefix_match& found) -> std::vector<std::uint32_t> {
    auto const tokens = tokens_of(p);
    auto out = std::vector<quire::unit_id>(p.size() - 1);
    found = index_.match(roots_[p.front()], tokens, out);
    auto const want = model_.match(p);
    toy_check(found.units.value() == want.size(), "a hit of another length", want.size());
    for (std::size_t i = 0; i < want.size(); ++i) { toy_check(out[i].value() == want[i], "a hit on another unit", i); }
    auto const hit = path(p.begin(), p.begin() + 1 + static_cast<std::ptrdiff_t>(want.size()));
    toy_check(index_.would_pin(found).value() == model_.idle_on(hit), "would_pin is wrong");
    return want;
  }
  void probe(path const& p) {
    auto found = quire::prefix_match{};
    static_cast<void>(find(p, found));
    // One token short, or one token off: never a hit on the last unit.
    auto tokens = tokens_of(p);
    auto out = std::vector<quire::unit_id>(p.size());
    tokens.back() += 1000;
    toy_check(index_.match(found.root, tokens, out).units.value() <= p.size() - 2, "a hit with one token off");
    tokens.pop_back();
    toy_check(index_.match(found.root, tokens, out).units.value() <= p.size() - 2, "a hit on a partial unit");
  }
  /// Whatever was split, joined, evicted and grown again since somebody asked before.
  void digest(holder const& h) {
    auto const policy = typename Index::digest_policy_type{};
    auto const tokens = tokens_of(h.p);
    auto bare = policy.root(scope(h.p.front()).bytes());
    for (std::size_t i = 0; i < tokens.size(); i += size_.unit_tokens) {
      bare = policy.chain(bare, std::span{tokens}.subspan(i, size_.unit_tokens));
    }
    toy_check(index_.digest(h.pin) == bare, "another digest than the bare chain");
    ++coverage_["digests"];
  }

  // --- units --------------------------------------------------------------------------------------------------------
  /// A private unit: free, or the next victim.
  [[nodiscard]] auto take() -> std::optional<quire::unit_id> {
    if (index_.free_units().value() == 0) { evict(1); }
    auto const free = index_.free_units().value();
    auto const unit = index_.take_unit();
    toy_check(static_cast<bool>(unit) == (free > 0), "a free unit is not given, or more than there are");
    if (!unit) { return std::nullopt; }
    toy_check(index_.holders(unit) == 1 && !index_.published(unit), "a taken unit is not new");
    return unit;
  }
  void evict(std::size_t n) {
    auto out = std::vector<quire::unit_id>(n);
    auto const free = index_.free_units().value();
    auto const got = index_.evict(out).value();
    toy_check(index_.free_units().value() == free + got, "victims are not free");
    for (std::size_t i = 0; i < got; ++i) {
      auto const first = model_.some_leave_first();
      auto const p = first ? model_.path_of(out[i].value()) : model_.victim();
      toy_check(!p.empty(), "more victims than idle units");
      toy_check(!first || model_.leaves_first(p, model_.at(p)), "a victim although others nobody can find", i);
      toy_check(model_.at(p).unit == out[i].value(), "another victim", i);
      model_.take(p);
      ++coverage_[first ? "lost victims" : "victims"];
    }
    toy_check(got == n || model_.evictable() == 0, "fewer victims than there are");
  }
  /// Takes, shares or drops a private unit that is never published.
  void keep(toy_dice& dice) {
    if (private_.size() < 2 && dice.one_in(2)) {
      if (auto const unit = take()) { private_.push_back({*unit, 1}); }
    } else if (!private_.empty() && dice.one_in(2)) {
      auto& one = private_[dice.below(private_.size())];
      index_.share_unit(one.unit);
      ++one.holders;
    } else if (!private_.empty()) {
      drop(dice.below(private_.size()));
    }
  }
  void drop(std::size_t which) {
    index_.drop_unit(private_[which].unit);
    if (--private_[which].holders == 0) { private_.erase(private_.begin() + static_cast<std::ptrdiff_t>(which)); }
  }

  // --- holders ------------------------------------------------------------------------------------------------------
  void request(std::uint32_t a, toy_dice& dice) {
    if (holders_.size() >= most_holders) { release(a % holders_.size()); }
    auto const p = make_path(dice);
    auto found = quire::prefix_match{};
    auto const hit = find(p, found).size();
    auto h = holder{index_.pin(found), path(p.begin(), p.begin() + 1 + static_cast<std::ptrdiff_t>(hit)), false};
    model_.pin(h.p, true);
    auto const rest = path(p.begin() + 1 + static_cast<std::ptrdiff_t>(hit), p.end());
    publish(h, std::span<std::uint32_t const>{rest}.first(dice.one_in(3) ? dice.below(rest.size() + 1) : rest.size()));
    holders_.push_back(std::move(h));
  }
  void grow(std::uint32_t a, toy_dice& dice) {
    if (holders_.empty()) { return; }
    auto& h = holders_[a % holders_.size()];
    auto more = path(1 + dice.below(dice.one_in(4) ? size_.usual : 3));
    for (auto& s : more) { s = symbol(dice); }
    publish(h, more);
  }
  /// Publishes \p symbols behind a holder, as far as units go.
  void publish(holder& h, std::span<std::uint32_t const> symbols) {
    auto units = std::vector<quire::unit_id>{};
    for (auto const s : symbols) {
      auto const unit = take();
      if (!unit) { break; }
      write(*unit, s);
      units.push_back(*unit);
    }
    for (std::size_t done = 0; done < units.size();) {
      done += publish_once(h, std::span{units}.subspan(done), symbols.subspan(done));
    }
  }
  auto publish_once(holder& h, std::span<quire::unit_id const> units, std::span<std::uint32_t const> symbols)
      -> std::size_t {
    auto const result = index_.publish(h.pin, units);
    auto const n = std::size_t{result.published.value()};
    toy_check(n <= units.size(), "published more than there was");
    auto const fresh = n - (result.replaced ? 1U : 0U);
    for (std::size_t i = 0; i < fresh; ++i) {
      h.p.push_back(symbols[i]);
      toy_check(!model_.has(h.p), "published what was there");
      model_.publish(h.p, units[i].value(), h.owned, i == 0);
      h.owned = true;
    }
    if (result.replaced) { // an equal unit that nobody used gave its place
      h.p.push_back(symbols[fresh]);
      toy_check(model_.has(h.p), "replaced what is not there");
      auto& twin = model_.at(h.p);
      toy_check(result.replaced.value() == twin.unit, "replaced another unit");
      toy_check(twin.pins == 0, "replaced what is in use");
      twin.unit = units[fresh].value();
      ++twin.pins;
      h.owned = false;
      ++coverage_["existing idle"];
      return n;
    }
    if (!result.existing) {
      toy_check(n == units.size(), "stopped without reason");
      return n;
    }
    h.p.push_back(symbols[n]);
    toy_check(model_.has(h.p), "found what is not there");
    auto& twin = model_.at(h.p);
    toy_check(result.existing.value() == twin.unit, "found another unit");
    toy_check(twin.pins > 0, "moved onto what nobody uses");
    ++twin.pins;
    h.owned = false;
    index_.drop_unit(units[n]);
    ++coverage_["existing"];
    return n + 1;
  }
  void release(std::size_t which) {
    auto h = std::move(holders_[which]);
    holders_.erase(holders_.begin() + static_cast<std::ptrdiff_t>(which));
    index_.release(std::move(h.pin));
    toy_check(!h.pin, "a released pin still holds");
    model_.release(h.p);
  }
  /// A second pin on a part of a path; sometimes instead of the first.
  void shorten(std::uint32_t a, toy_dice& dice) {
    if (holders_.empty() || holders_.size() >= most_holders) { return; }
    auto const which = a % holders_.size();
    auto& h = holders_[which];
    auto const back = dice.below(h.p.size());
    toy_check(index_.would_release(h.pin, quire::unit_count{back}).value() == model_.only_one_on(h.p, back),
              "would_release is wrong");
    auto other = holder{index_.pin_back(h.pin, quire::unit_count{back}), path(h.p.begin(), h.p.end() - back), false};
    model_.pin(other.p, false);
    holders_.push_back(std::move(other));
    if (dice.one_in(2)) { release(which); }
  }
  /// Two or three holders reach one private unit: one of them publishes it, the others adopt it.
  void share(std::uint32_t a, toy_dice& dice) {
    auto const others = 1 + dice.below(2);
    if (holders_.empty() || holders_.size() + others > most_holders) { return; }
    auto const unit = take();
    if (!unit) { return; }
    auto const which = a % holders_.size();
    for (std::uint32_t i = 0; i < others; ++i) {
      auto const& first = holders_[which];
      auto other = holder{index_.pin_back(first.pin, quire::unit_count{0}), first.p, false};
      model_.pin(other.p, false);
      index_.share_unit(*unit);
      holders_.push_back(std::move(other));
    }
    auto& first = holders_[which];
    auto const s = symbol(dice);
    write(*unit, s);
    auto const size = first.p.size();
    static_cast<void>(publish_once(first, {&*unit, 1}, {&s, 1}));
    auto const published = path(first.p.begin(), first.p.begin() + static_cast<std::ptrdiff_t>(size) + 1);
    auto& entry = model_.at(published);
    if (entry.unit != unit->value()) { // it exists: each holder drops the private one
      for (std::uint32_t i = 0; i < others; ++i) { index_.drop_unit(*unit); }
      ++coverage_["shared too late"];
      return;
    }
    entry.pins += others;
    for (auto left = others; left > 0; --left) {
      audit(first.pin.node(), left);
      auto& other = holders_[holders_.size() - left];
      index_.adopt(other.pin, *unit);
      other.p = published;
    }
    ++coverage_["shared"];
  }

  /// Dooms some idle units; everything below them goes too.
  void remove(toy_dice& dice) {
    auto doomed = std::vector<std::uint8_t>(size_.units);
    std::vector<path> gone;
    for (auto const& [p, e] : model_.all()) {
      auto const below = !gone.empty() && model_prefix::is_prefix(gone.back(), p); // paths come in order, parents first
      if (e.pins == 0 && (below || dice.one_in(6))) {
        if (!below || dice.one_in(2)) { doomed[e.unit] = 1; }
        if (!below) { gone.push_back(p); }
      }
    }
    std::set<std::uint32_t> sunk;
    index_.remove(doomed, [&](quire::unit_id u) { toy_check(sunk.insert(u.value()).second, "removed twice"); });
    std::vector<path> leaving;
    for (auto const& [p, e] : model_.all()) {
      auto const goes =
          std::any_of(gone.begin(), gone.end(), [&](auto const& g) { return model_prefix::is_prefix(g, p); });
      toy_check(goes == sunk.contains(e.unit), "removed too much or too little");
      if (goes) { leaving.push_back(p); }
    }
    for (; !leaving.empty(); leaving.pop_back()) { model_.take(leaving.back()); } // deepest first
    coverage_["removed"] += sunk.size();
  }

  index_size size_;
  Index index_;
  model_prefix model_;
  std::vector<quire::node_id> roots_;
  std::uint32_t open_[tenants] = {}; // numbers of the open roots
  std::vector<path> bank_;
  std::vector<holder> holders_;
  std::vector<private_unit> private_;
  std::map<std::uint32_t, bool> busy_;
  std::map<std::string, std::uint64_t> coverage_;
};

} // namespace quire_test
