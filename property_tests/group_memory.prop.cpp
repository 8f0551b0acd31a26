// SPDX-License-Identifier: Apache-2.0
// Memories of several groups against a naive map of pages: who has which page, which blocks of it are out. Every count, every
// byte of the report, `fits` and the order of pages are compared after each call.
#include <quire/core/types.hpp>
#include <quire/memory/memory_usage.hpp>
#include <quire/memory/owner_hint.hpp>
#include <quire/memory/partitioned_memory.hpp>
#include <quire/memory/two_level_memory.hpp>
#include <quire/memory/uniform_memory.hpp>

#include "support/rc_prop.hpp"
#include "support/toy_kv.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using quire::block_count;
using quire::block_id;
using quire::byte_count;
using quire::group_id;
using quire::memory_usage;
using quire::owner_hint;
using quire_test::toy_check;
using quire_test::toy_dice;

struct shape {
  std::vector<std::uint64_t> sizes; // [bytes] per group
  std::uint64_t budget = 0;
};
auto bytes_of(shape const& s) -> std::vector<byte_count> {
  auto out = std::vector<byte_count>{};
  for (auto const n : s.sizes) { out.emplace_back(n); }
  return out;
}

// --- naive models: which blocks of which group are out, and what that costs ------------------------------------------

// Pages with the set of blocks out of each, looked through from end to end.
struct two_level_model {
  struct page {
    std::uint32_t group;
    std::uint32_t owner;
    std::set<std::uint32_t> out;
    bool fuller = false; // since it was full, it never had fewer than half of its blocks out
  };
  shape form;
  std::uint64_t page_bytes = 1;
  std::size_t pages = 0;
  std::map<std::size_t, page> held;

  explicit two_level_model(shape s) : form{std::move(s)} {
    auto const divides = [&](std::uint64_t n) { return n != 0 && page_bytes % n == 0; };
    while (!std::all_of(form.sizes.begin(), form.sizes.end(), divides)) { ++page_bytes; }
    pages = static_cast<std::size_t>(form.budget / page_bytes);
  }
  [[nodiscard]] auto per_page(std::uint32_t g) const -> std::uint32_t {
    return static_cast<std::uint32_t>(page_bytes / form.sizes[g]);
  }
  [[nodiscard]] auto own_free(std::uint32_t g) const -> std::uint32_t {
    auto n = std::uint32_t{0};
    for (auto const& [_, p] : held) { n += p.group == g ? per_page(g) - static_cast<std::uint32_t>(p.out.size()) : 0; }
    return n;
  }
  [[nodiscard]] auto available(std::uint32_t g) const -> std::uint32_t {
    return own_free(g) + static_cast<std::uint32_t>(pages - held.size()) * per_page(g);
  }
  [[nodiscard]] auto capacity(std::uint32_t g) const -> std::uint32_t {
    return static_cast<std::uint32_t>(pages) * per_page(g);
  }
  [[nodiscard]] auto fits(std::vector<std::uint32_t> const& needs) const -> bool {
    auto copy = *this; // takes block by block
    for (std::uint32_t g = 0; g < needs.size(); ++g) {
      for (std::uint32_t i = 0; i < needs[g]; ++i) {
        auto const id = copy.any_block(g);
        if (id == UINT32_MAX) { return false; }
        copy.taken(g, id, UINT32_MAX);
      }
    }
    return true;
  }
  [[nodiscard]] auto any_block(std::uint32_t g) const -> std::uint32_t {
    auto fresh = UINT32_MAX;
    for (std::size_t p = 0; p < pages; ++p) {
      auto const at = held.find(p);
      auto const first = static_cast<std::uint32_t>(p) * per_page(g);
      if (at == held.end()) {
        fresh = std::min(fresh, first);
      } else if (at->second.group == g && at->second.out.size() < per_page(g)) {
        for (auto id = first;; ++id) {
          if (at->second.out.count(id) == 0) { return id; }
        }
      }
    }
    return fresh;
  }
  // Is that a block that may be handed out now?
  void check_choice(std::uint32_t g, std::uint32_t id, std::uint32_t hint) const {
    auto const p = id / per_page(g);
    toy_check(p < pages, "a block outside the arena");
    auto const at = held.find(p);
    auto fuller = false;
    auto partial = false;
    for (auto const& [_, other] : held) {
      if (other.group != g || other.out.size() == per_page(g)) { continue; }
      partial = true;
      fuller = fuller || other.fuller;
    }
    toy_check((at == held.end()) == !partial,
              "a fresh page although the group has free blocks, or the other way round");
    if (at == held.end()) { return; }
    toy_check(at->second.group == g, "a page of another group");
    auto const own = hint != UINT32_MAX && at->second.owner == hint;
    toy_check(own || at->second.fuller == fuller, "neither the owner's page nor one of the fuller ones");
  }
  void taken(std::uint32_t g, std::uint32_t id, std::uint32_t hint) {
    auto const p = id / per_page(g);
    auto const [at, fresh] = held.try_emplace(p, page{g, hint, {}, false});
    toy_check(at->second.out.insert(id).second, "a block was handed out twice");
  }
  void given(std::uint32_t g, std::uint32_t id) {
    auto const at = held.find(id / per_page(g));
    auto& p = at->second;
    auto const was_full = p.out.size() == per_page(g);
    p.out.erase(id);
    p.fuller = (was_full || p.fuller) && 2 * p.out.size() >= per_page(g);
    if (p.out.empty()) { held.erase(at); }
  }
  [[nodiscard]] auto usage(std::uint32_t g) const -> memory_usage {
    auto out = std::uint64_t{0};
    auto mine = std::uint64_t{0};
    for (auto const& [_, p] : held) {
      mine += p.group == g ? 1U : 0U;
      out += p.group == g ? p.out.size() : 0;
    }
    return {.held = byte_count{mine * page_bytes},
            .used = byte_count{out * form.sizes[g]},
            .padding = {},
            .external = byte_count{own_free(g) * form.sizes[g]}};
  }
};

// One set of blocks for all groups.
struct uniform_model {
  shape form;
  std::uint64_t largest;
  std::map<std::uint32_t, std::uint32_t> out; // block: group
  explicit uniform_model(shape s)
      : form{std::move(s)}, largest{*std::max_element(form.sizes.begin(), form.sizes.end())} {}
  [[nodiscard]] auto capacity(std::uint32_t) const -> std::uint32_t {
    return static_cast<std::uint32_t>(form.budget / largest);
  }
  [[nodiscard]] auto available(std::uint32_t g) const -> std::uint32_t {
    return capacity(g) - static_cast<std::uint32_t>(out.size());
  }
  [[nodiscard]] auto fits(std::vector<std::uint32_t> const& needs) const -> bool {
    auto n = std::uint64_t{0};
    for (auto const one : needs) { n += one; }
    return n <= available(0);
  }
  void check_choice(std::uint32_t, std::uint32_t id, std::uint32_t) const {
    toy_check(id < capacity(0) && out.count(id) == 0, "a block outside, or taken");
  }
  void taken(std::uint32_t g, std::uint32_t id, std::uint32_t) { out[id] = g; }
  void given(std::uint32_t, std::uint32_t id) { out.erase(id); }
  [[nodiscard]] auto usage(std::uint32_t g) const -> memory_usage {
    auto n = std::uint64_t{0};
    for (auto const& [_, group] : out) { n += group == g ? 1U : 0U; }
    return {.held = byte_count{n * largest},
            .used = byte_count{n * form.sizes[g]},
            .padding = byte_count{n * (largest - form.sizes[g])},
            .external = {}};
  }
};

// A set of blocks per group.
struct partitioned_model {
  shape form;
  std::vector<std::set<std::uint32_t>> out;
  explicit partitioned_model(shape s) : form{std::move(s)}, out(form.sizes.size()) {}
  [[nodiscard]] auto capacity(std::uint32_t g) const -> std::uint32_t {
    auto share = form.budget / form.sizes.size();
    while (share > 256 && share % 256 != 0) { --share; }
    return static_cast<std::uint32_t>(share / form.sizes[g]);
  }
  [[nodiscard]] auto available(std::uint32_t g) const -> std::uint32_t {
    return capacity(g) - static_cast<std::uint32_t>(out[g].size());
  }
  [[nodiscard]] auto fits(std::vector<std::uint32_t> const& needs) const -> bool {
    for (std::uint32_t g = 0; g < needs.size(); ++g) {
      if (needs[g] > available(g)) { return false; }
    }
    return true;
  }
  void check_choice(std::uint32_t g, std::uint32_t id, std::uint32_t) const {
    toy_check(id < capacity(g) && out[g].count(id) == 0, "a block outside, or taken");
  }
  void taken(std::uint32_t g, std::uint32_t id, std::uint32_t) { out[g].insert(id); }
  void given(std::uint32_t g, std::uint32_t id) { out[g].erase(id); }
  [[nodiscard]] auto usage(std::uint32_t g) const -> memory_usage {
    return {.held = byte_count{capacity(g) * form.sizes[g]},
            .used = byte_count{out[g].size() * form.sizes[g]},
            .padding = {},
            .external = byte_count{available(g) * form.sizes[g]}};
  }
};

struct command {
  std::uint32_t verb = 0;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  friend auto operator<<(std::ostream& out, command const& c) -> std::ostream& {
    return out << c.verb << '(' << c.a << ", " << c.b << ')';
  }
};

template <class Memory, class Model>
class world {
public:
  explicit world(shape const& s)
      : memory_{bytes_of(s), byte_count{s.budget}}, model_{s}, out_(s.sizes.size()),
        bytes_(static_cast<std::size_t>(s.budget), none) {}

  void perform(command const& c) {
    auto const g = c.a % static_cast<std::uint32_t>(out_.size());
    auto const hint = c.b % 4 == 3 ? owner_hint::none() : owner_hint{c.b % 4};
    switch (c.verb) {
    case 0: {
      auto const block = memory_.take(group_id{g}, hint);
      toy_check(static_cast<bool>(block) == (model_.available(g) > 0), "refused, or gave what is not there");
      if (block) { took(g, block.value(), hint); }
      break;
    }
    case 1: {
      auto blocks = std::vector<block_id>(c.b % 9);
      auto const n = memory_.take(group_id{g}, blocks, hint).value();
      toy_check(n == std::min<std::size_t>(blocks.size(), model_.available(g)), "another number of blocks");
      for (std::uint32_t i = 0; i < blocks.size(); ++i) {
        if (i < n) {
          took(g, blocks[i].value(), hint);
        } else {
          toy_check(!blocks[i], "the rest was touched");
        }
      }
      break;
    }
    case 2:
    case 3: {
      auto dice = toy_dice{c.b};
      auto back = std::vector<block_id>{};
      for (auto n = c.verb == 2 ? 1U : c.b % 9; n > 0 && !out_[g].empty(); --n) {
        std::swap(out_[g][dice.below(out_[g].size())], out_[g].back());
        back.emplace_back(out_[g].back());
        out_[g].pop_back();
      }
      if (c.verb == 2 && !back.empty()) {
        memory_.give(group_id{g}, back[0]);
      } else {
        memory_.give(group_id{g}, back);
      }
      for (auto const block : back) {
        model_.given(g, block.value());
        mark(g, block.value(), none);
      }
      break;
    }
    default: {
      auto needs = std::vector<std::uint32_t>(out_.size());
      auto counts = std::vector<block_count>{};
      auto dice = toy_dice{c.b};
      for (auto& n : needs) {
        n = static_cast<std::uint32_t>(dice.below(12));
        counts.emplace_back(n);
      }
      toy_check(memory_.fits(counts) == model_.fits(needs), "what fits is another question to the model");
      break;
    }
    }
    compare();
  }

private:
  static constexpr std::uint32_t none = UINT32_MAX;

  void took(std::uint32_t g, std::uint32_t id, owner_hint hint) {
    model_.check_choice(g, id, hint.value());
    model_.taken(g, id, hint.value());
    out_[g].push_back(id);
    mark(g, id, g);
  }
  // Writes over the bytes of a block; they must have been nobody's.
  void mark(std::uint32_t g, std::uint32_t id, std::uint32_t by) {
    auto const at = memory_.base(group_id{g}).value() + id * memory_.stride(group_id{g}).value();
    for (auto i = at; i < at + model_.form.sizes[g]; ++i) {
      toy_check(by == none || bytes_.at(i) == none, "two blocks lie over each other");
      bytes_.at(i) = by;
    }
  }
  void compare() {
    auto sum = memory_usage{};
    for (std::uint32_t g = 0; g < out_.size(); ++g) {
      toy_check(memory_.available(group_id{g}).value() == model_.available(g), "another number is available", g);
      toy_check(memory_.capacity(group_id{g}).value() == model_.capacity(g), "another capacity", g);
      toy_check(memory_.usage(group_id{g}) == model_.usage(g), "other bytes", g);
      sum += model_.usage(g);
    }
    toy_check(memory_.usage() == sum, "other bytes in all");
  }

  Memory memory_;
  Model model_;
  std::vector<std::vector<std::uint32_t>> out_;
  std::vector<std::uint32_t> bytes_;
};

auto number(std::uint32_t from, std::uint32_t below) -> rc::Gen<std::uint32_t> {
  return rc::gen::resize(100, rc::gen::inRange<std::uint32_t>(from, below));
}

template <class Memory, class Model>
void agrees() {
  auto s = shape{};
  auto const groups = *number(1, 5);
  auto multiple = std::uint64_t{1};
  for (std::uint32_t g = 0; g < groups; ++g) {
    s.sizes.push_back(*number(1, 13));
    while (multiple % s.sizes.back() != 0) { // few enough to count: at most 27720
      auto next = multiple;
      while (next % s.sizes.back() != 0) { next += multiple; }
      multiple = next;
    }
  }
  s.budget = multiple * *number(1, 6) + *number(0, 50) + 13 * groups;
  auto const commands =
      *rc::gen::scale(4.0, rc::gen::container<std::vector<command>>(
                               rc::gen::map(rc::gen::tuple(number(0, 5), number(0, 1U << 12U), number(0, 1U << 12U)),
                                            [](std::tuple<std::uint32_t, std::uint32_t, std::uint32_t> const& t) {
                                              return command{std::get<0>(t), std::get<1>(t), std::get<2>(t)};
                                            })));
  auto w = world<Memory, Model>{s};
  for (auto const& c : commands) { w.perform(c); }
}

} // namespace

TEST_CASE("B3: memories of several groups agree with their models", "[block]") {
  quire_test::prop("two-level, any calls", [] { agrees<quire::two_level_memory, two_level_model>(); });
  quire_test::prop("uniform, any calls", [] { agrees<quire::uniform_memory, uniform_model>(); });
  quire_test::prop("partitioned, any calls", [] { agrees<quire::partitioned_memory, partitioned_model>(); });
}
