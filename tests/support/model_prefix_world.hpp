// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A prefix index beside its naive model: holders, claims and blocks of a pool that this file keeps. Every operation is
/// audited and compared: ids of a match, counts, and victims one by one.

#include <quire/core/types.hpp>
#include <quire/prefix/concepts.hpp>
#include <quire/prefix/prefix_match.hpp>
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
#include <utility>
#include <vector>

namespace quire_test {

/// What can be done to an index.
enum class index_verb : std::uint8_t {
  request,
  grow,
  release,
  shorten,
  claim,
  confirm,
  restore,
  share,
  probe,
  remove,
  relocate,
  count_
};
/// Names of the verbs.
inline constexpr char const* index_verbs[] = {"request", "grow",  "release", "shorten", "claim",   "confirm",
                                              "restore", "share", "probe",   "remove",  "relocate"};

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
  std::uint32_t blocks = 16;
  std::uint32_t block_tokens = 4;
  std::uint32_t longest = 8;   ///< [blocks] of a request.
  std::uint32_t usual = 8;     ///< [blocks] of nearly all requests.
  std::uint32_t symbols = 2;   ///< Different blocks at one place.
  std::uint32_t branching = 2; ///< 1 in so many blocks may be another symbol than 0.
  friend auto operator<<(std::ostream& out, index_size const& s) -> std::ostream& {
    return out << s.blocks << " blocks of " << s.block_tokens << ", longest " << s.longest << ", usual " << s.usual
               << ", " << s.symbols << " symbols, 1 in " << s.branching;
  }
};

/// \tparam Index models `prefix_index`.
template <class Index>
class model_prefix_world {
public:
  using path = model_prefix::path;

  model_prefix_world(index_size const& size, model_order order, bool runs)
      : size_{size}, index_{quire::block_count{size.blocks}, quire::token_count{size.block_tokens}},
        model_{order, runs} {
    for (auto b = size.blocks; b-- > 0;) { free_.push_back(b); }
    for (auto const* const tenant : {"a", "b"}) {
      roots_.push_back(index_.open_root(scope_of(some_fields(), domain_of(tenant)).bytes()));
    }
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
    case index_verb::claim:
      if (claimed_.empty() || !used_since_claim_) { claim(1 + c.a % (size_.longest + 1)); }
      break;
    case index_verb::confirm: confirm(); break;
    case index_verb::restore: restore(); break;
    case index_verb::share: share(c.a, dice); break;
    case index_verb::probe: probe(make_path(dice)); break;
    case index_verb::remove: remove(dice); break;
    case index_verb::relocate: relocate(dice); break;
    case index_verb::count_: break;
    }
    audit();
  }
  /// Releases everything, evicts everything in the right order, and checks that nothing is left.
  void finish() {
    if (!claimed_.empty()) { restore(); }
    while (!holders_.empty()) { release(holders_.size() - 1); }
    audit();
    while (!model_.all().empty()) {
      claim(7);
      confirm();
      audit();
    }
    toy_check(index_.evictable().value() == 0 && index_.cached().value() == 0, "something is left");
    toy_check(free_.size() == size_.blocks, "a block is missing");
  }
  /// Number of claims that were put back, orphans, duplicates, replaced blocks, removed blocks, shared blocks, victims.
  [[nodiscard]] auto coverage() const -> std::map<std::string, std::uint64_t> const& { return coverage_; }

private:
  struct holder {
    quire::prefix_pin pin;
    path p;
    bool owned = false;
  };
  struct claimed_block {
    path p;
    model_prefix::entry e;
  };

  // --- tokens -------------------------------------------------------------------------------------------------------
  /// Blocks that differ in one token, the first or the last.
  [[nodiscard]] auto token(std::uint32_t symbol, std::uint32_t i) const -> quire::token_id {
    auto const first = i == 0 && symbol % 2 == 1;
    auto const last = i + 1 == size_.block_tokens && symbol / 2 % 2 == 1;
    return static_cast<quire::token_id>(symbol / 4 * 8 + (first ? 1U : 0U) + (last ? 2U : 0U));
  }
  [[nodiscard]] auto tokens_of(path const& p) const -> std::vector<quire::token_id> {
    auto out = std::vector<quire::token_id>{};
    for (std::size_t j = 1; j < p.size(); ++j) {
      for (std::uint32_t i = 0; i < size_.block_tokens; ++i) { out.push_back(token(p[j], i)); }
    }
    return out;
  }
  void write(std::uint32_t block, std::uint32_t symbol) {
    auto const to = index_.tokens(quire::block_id{block});
    for (std::uint32_t i = 0; i < size_.block_tokens; ++i) { to[i] = token(symbol, i); }
  }
  [[nodiscard]] auto symbol(toy_dice& dice) const -> std::uint32_t {
    return dice.one_in(size_.branching) ? dice.below(size_.symbols) : 0;
  }
  [[nodiscard]] auto make_path(toy_dice& dice) -> path {
    auto p = path{dice.one_in(5) ? 1U : 0U};
    if (!bank_.empty() && dice.below(3) != 0) {
      auto const& old = bank_[dice.below(bank_.size())];
      p.assign(old.begin(), old.begin() + 1 + dice.below(old.size()));
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
  [[nodiscard]] auto root_of(path const& p) const -> quire::node_id { return roots_[p.front()]; }

  // --- checks -------------------------------------------------------------------------------------------------------
  void audit() {
    auto pins = std::vector<std::uint32_t>(size_.blocks + std::size_t{1});
    auto const count = [&](quire::prefix_pin const& pin) {
      if (!quire::is_root(pin.node())) { ++pins[pin.node().value()]; }
    };
    for (auto const& h : holders_) { count(h.pin); }
    if (auto const broken = index_.audit(pins); !broken.empty()) { throw toy_failure{"audit: " + broken}; }
    toy_check(index_.cached().value() == model_.all().size(), "another number of cached blocks");
    toy_check(index_.evictable().value() == model_.evictable(), "another number of idle blocks");
    // The whole content: which block has which path, and is it pinned?
    std::size_t seen = 0;
    std::map<std::uint32_t, std::pair<quire::node_id, std::vector<std::uint32_t>>> nodes;
    index_.for_each_node([&](quire::node_id node, quire::node_id parent, auto blocks, std::uint32_t busy) {
      nodes[node.value()] = {parent, {blocks.begin(), blocks.end()}};
      seen += blocks.size();
      for (auto const b : blocks) { busy_[b] = busy > 0; }
    });
    toy_check(seen == model_.all().size(), "the nodes hold another number of blocks");
    for (auto const& [p, e] : model_.all()) {
      toy_check(busy_[e.block] == (e.pins > 0), "a block is pinned, or idle, without reason");
    }
  }
  auto find(path const& p, quire::prefix_match& found) -> std::vector<std::uint32_t> {
    auto const tokens = tokens_of(p);
    auto out = std::vector<quire::block_id>(p.size() - 1);
    found = index_.match(root_of(p), tokens, out);
    auto const want = model_.match(p);
    toy_check(found.blocks.value() == want.size(), "a hit of another length", want.size());
    for (std::size_t i = 0; i < want.size(); ++i) { toy_check(out[i].value() == want[i], "a hit on another block", i); }
    auto const hit = path(p.begin(), p.begin() + 1 + static_cast<std::ptrdiff_t>(want.size()));
    toy_check(index_.would_pin(found).value() == model_.idle_on(hit), "would_pin is wrong");
    return want;
  }
  void probe(path const& p) {
    auto found = quire::prefix_match{};
    static_cast<void>(find(p, found));
    // One token short, or one token off: never a hit on the last block.
    auto tokens = tokens_of(p);
    auto out = std::vector<quire::block_id>(p.size());
    tokens.back() += 1000;
    toy_check(index_.match(root_of(p), tokens, out).blocks.value() <= p.size() - 2, "a hit with one token off");
    tokens.pop_back();
    toy_check(index_.match(root_of(p), tokens, out).blocks.value() <= p.size() - 2, "a hit on a partial block");
  }

  // --- blocks -------------------------------------------------------------------------------------------------------
  /// A block to write: free, or the next victim at once.
  [[nodiscard]] auto take() -> std::optional<std::uint32_t> {
    if (free_.empty()) {
      if (!claimed_.empty()) { return std::nullopt; }
      claim(1);
      confirm();
    }
    if (free_.empty()) { return std::nullopt; }
    auto const b = free_.back();
    free_.pop_back();
    return b;
  }
  void claim(std::size_t n) {
    index_.reserve_claims(quire::block_count{static_cast<std::uint32_t>(n)});
    auto out = std::vector<quire::block_id>(n);
    auto const got = index_.claim(out).value();
    for (std::size_t i = 0; i < n; ++i) {
      auto const want = model_.victim();
      toy_check((i < got) == !want.empty(), "more or fewer victims");
      if (want.empty()) { break; }
      toy_check(out[i].value() == model_.at(want).block, "another victim", i);
      claimed_.push_back({want, model_.take(want)});
      ++coverage_["victims"];
    }
    used_since_claim_ = false;
  }
  void confirm() {
    index_.confirm();
    for (auto const& c : claimed_) { free_.push_back(c.e.block); }
    claimed_.clear();
  }
  void restore() {
    std::set<std::uint32_t> orphans;
    index_.restore([&](quire::block_id b) { toy_check(orphans.insert(b.value()).second, "orphaned twice"); });
    if (!used_since_claim_) { toy_check(orphans.empty(), "an orphan although nothing happened"); }
    for (auto i = claimed_.size(); i-- > 0;) {
      auto const& c = claimed_[i];
      auto above = c.p;
      above.pop_back();
      auto const has_place = (above.size() == 1 || model_.has(above)) && !model_.has(c.p);
      if (orphans.contains(c.e.block)) {
        free_.push_back(c.e.block);
        ++coverage_["orphans"];
        continue;
      }
      toy_check(has_place, "put back where there is no place");
      model_.put(c.p, c.e);
      ++coverage_["restored"];
    }
    claimed_.clear();
  }
  /// True if a block that is claimed hangs on the very block at \p p.
  [[nodiscard]] auto claimed_below(path const& p) const -> bool {
    auto const is_claimed = [&](path const& q) {
      return std::any_of(claimed_.begin(), claimed_.end(), [&](auto const& c) { return c.p == q; });
    };
    return !is_claimed(p) && std::any_of(claimed_.begin(), claimed_.end(), [&](auto const& c) {
      return c.p.size() == p.size() + 1 && model_prefix::is_prefix(p, c.p);
    });
  }

  // --- holders ------------------------------------------------------------------------------------------------------
  void request(std::uint32_t a, toy_dice& dice) {
    if (holders_.size() >= 8) { release(a % holders_.size()); }
    auto const p = make_path(dice);
    auto found = quire::prefix_match{};
    auto const hit = find(p, found).size();
    auto h = holder{index_.pin(found), path(p.begin(), p.begin() + 1 + static_cast<std::ptrdiff_t>(hit)), false};
    model_.pin(h.p, true);
    used_since_claim_ = true;
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
  /// Publishes \p symbols behind a holder, as far as blocks go.
  void publish(holder& h, std::span<std::uint32_t const> symbols) {
    auto blocks = std::vector<quire::block_id>{};
    for (auto const s : symbols) {
      auto const b = take();
      if (!b) { break; }
      write(*b, s);
      blocks.push_back(quire::block_id{*b});
    }
    used_since_claim_ = true;
    for (std::size_t done = 0; done < blocks.size();) {
      done += publish_once(h, std::span{blocks}.subspan(done), symbols.subspan(done));
    }
  }
  auto publish_once(holder& h, std::span<quire::block_id const> blocks, std::span<std::uint32_t const> symbols)
      -> std::size_t {
    auto const result = index_.publish(h.pin, blocks);
    auto const n = std::size_t{result.published.value()};
    toy_check(n <= blocks.size(), "published more than there was");
    auto const fresh = result.replaced ? n - 1 : n;
    for (std::size_t i = 0; i < fresh; ++i) {
      auto const frozen = claimed_below(h.p);
      h.p.push_back(symbols[i]);
      toy_check(!model_.has(h.p), "published what was there");
      model_.publish(h.p, blocks[i].value(), h.owned && !frozen, i == 0 || frozen);
      h.owned = true;
    }
    if (n == blocks.size() && !result.replaced) {
      toy_check(!result.duplicate, "a duplicate of nothing");
      return n;
    }
    h.p.push_back(symbols[fresh]);
    toy_check(model_.has(h.p), "a duplicate of what is not there");
    auto& twin = model_.at(h.p);
    h.owned = false;
    ++twin.pins;
    if (result.replaced) {
      toy_check(twin.pins == 1, "took the place of a block in use");
      toy_check(result.replaced.value() == twin.block, "took the place of another block");
      free_.push_back(std::exchange(twin.block, blocks[fresh].value()));
      ++coverage_["replaced"];
    } else {
      toy_check(result.duplicate && twin.pins > 1, "shares what nobody uses");
      free_.push_back(blocks[fresh].value());
      ++coverage_["duplicates"];
    }
    return fresh + 1;
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
    if (holders_.empty() || holders_.size() >= 8) { return; }
    auto const which = a % holders_.size();
    auto& h = holders_[which];
    auto const back = dice.below(h.p.size());
    toy_check(index_.would_release(h.pin, quire::block_count{back}).value() == model_.only_one_on(h.p, back),
              "would_release is wrong");
    auto other = holder{index_.pin_back(h.pin, quire::block_count{back}), path(h.p.begin(), h.p.end() - back), false};
    model_.pin(other.p, false);
    used_since_claim_ = true;
    holders_.push_back(std::move(other));
    if (dice.one_in(2)) { release(which); }
  }
  /// Two holders reach one unpublished block: one of them publishes it, the other adopts it.
  void share(std::uint32_t a, toy_dice& dice) {
    if (holders_.empty() || holders_.size() >= 8) { return; }
    auto const b = take();
    if (!b) { return; }
    auto& first = holders_[a % holders_.size()];
    auto second = holder{index_.pin_back(first.pin, quire::block_count{0}), first.p, false};
    model_.pin(second.p, false);
    used_since_claim_ = true;
    auto const s = symbol(dice);
    write(*b, s);
    auto const block = quire::block_id{*b};
    auto const size = first.p.size();
    static_cast<void>(publish_once(first, {&block, 1}, {&s, 1}));
    auto const published = path(first.p.begin(), first.p.begin() + static_cast<std::ptrdiff_t>(size) + 1);
    if (model_.at(published).block == *b) { // not a duplicate
      index_.hold(first.pin, 1);
      ++model_.at(published).pins;
      index_.adopt(second.pin, block);
      second.p = published;
      ++coverage_["shared"];
    }
    holders_.push_back(std::move(second));
  }

  // --- rare things --------------------------------------------------------------------------------------------------
  void remove(toy_dice& dice) {
    if (!claimed_.empty()) { return; }
    auto doomed = std::vector<std::uint8_t>(size_.blocks);
    std::vector<path> gone;
    for (auto const& [p, e] : model_.all()) {
      auto const below = !gone.empty() && model_prefix::is_prefix(gone.back(), p); // paths come in order, parents first
      if (e.pins == 0 && (below || dice.one_in(6))) {
        if (!below || dice.one_in(2)) { doomed[e.block] = 1; }
        if (!below) { gone.push_back(p); }
      }
    }
    std::set<std::uint32_t> sunk;
    index_.remove(doomed, [&](quire::block_id b) { toy_check(sunk.insert(b.value()).second, "removed twice"); });
    std::vector<path> leaving;
    for (auto const& [p, e] : model_.all()) {
      auto const goes =
          std::any_of(gone.begin(), gone.end(), [&](auto const& g) { return model_prefix::is_prefix(g, p); });
      toy_check(goes == sunk.contains(e.block), "removed too much or too little");
      if (goes) { leaving.push_back(p); }
    }
    for (; !leaving.empty(); leaving.pop_back()) {
      free_.push_back(model_.take(leaving.back()).block);
    } // deepest first
    coverage_["removed"] += sunk.size();
  }
  void relocate(toy_dice& dice) {
    if (!claimed_.empty() || free_.empty()) { return; }
    auto to = std::vector<quire::block_id>(size_.blocks);
    auto left = std::vector<std::uint32_t>{}; // no target in this round
    for (auto const& entry : model_.all()) {
      if (free_.empty() || dice.one_in(2)) { continue; }
      auto& e = model_.at(entry.first);
      std::swap(free_[dice.below(free_.size())], free_.back());
      to[e.block] = quire::block_id{free_.back()};
      left.push_back(std::exchange(e.block, free_.back()));
      free_.pop_back();
      ++coverage_["moved"];
    }
    free_.insert(free_.end(), left.begin(), left.end());
    index_.relocate(to);
  }

  index_size size_;
  Index index_;
  model_prefix model_;
  std::vector<quire::node_id> roots_;
  std::vector<std::uint32_t> free_;
  std::vector<path> bank_;
  std::vector<holder> holders_;
  std::vector<claimed_block> claimed_;
  std::map<std::uint32_t, bool> busy_;
  bool used_since_claim_ = false;
  std::map<std::string, std::uint64_t> coverage_;
};

} // namespace quire_test
