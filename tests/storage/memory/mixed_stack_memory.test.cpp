// SPDX-License-Identifier: Apache-2.0
// Real mixed stacks in blocks that are really taken: what they save against one flat pool, and what two-level memory loses
// under a load of mixed lengths. Figures: the table of KV capacities that the presets are checked against.
#include <quire/core/types.hpp>
#include <quire/memory/owner_hint.hpp>
#include <quire/memory/partitioned_memory.hpp>
#include <quire/memory/two_level_memory.hpp>
#include <quire/memory/uniform_memory.hpp>
#include <quire/model/cache_layout.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/model_spec.hpp>
#include <quire/model/presets.hpp>
#include <quire/model/resident_range.hpp>

#include "support/catch_compat.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <utility>
#include <vector>

namespace {
using namespace quire;

constexpr auto block_tokens = token_count{16};

auto block_sizes(model_spec const& model) -> std::vector<byte_count> {
  auto out = std::vector<byte_count>{};
  for (auto const& group : model.groups()) { out.push_back(block_bytes(group, block_tokens)); }
  return out;
}

// The blocks of one sequence, group by group, as an engine would hold them: positions are appended, and what resident_range
// lets go is given back once the step is over.
template <class Memory>
class mixed_sequence {
public:
  mixed_sequence(model_spec const& model, Memory& memory, owner_hint hint)
      : model_{&model}, memory_{&memory}, hint_{hint}, tables_(model.groups().size()) {}

  // Blocks that \p q more positions would take.
  [[nodiscard]] auto needs(std::uint32_t q) const -> std::vector<block_count> {
    auto out = std::vector<block_count>{};
    for (auto const& table : tables_) {
      auto const have = static_cast<std::uint32_t>(table.blocks.size()) + table.gone;
      out.emplace_back(std::max(have, (length_ + q + 15) / 16) - have);
    }
    return out;
  }
  // Appends \p q positions in one step. The caller asked whether they fit.
  void append(std::uint32_t q) {
    auto const wanted = needs(q);
    for (std::uint32_t g = 0; g < tables_.size(); ++g) {
      auto out = std::vector<block_id>(wanted[g].value());
      if (memory_->take(group_id{g}, out, hint_) != wanted[g]) { FAIL("what fitted could not be taken"); }
      tables_[g].blocks.insert(tables_[g].blocks.end(), out.begin(), out.end());
      tables_[g].most = std::max(tables_[g].most, tables_[g].blocks.size());
    }
    length_ += q;
  }
  // The step is over: the next query stands at length().
  void settle() {
    for (std::uint32_t g = 0; g < tables_.size(); ++g) {
      auto const dead = resident_range(token_pos{length_}, model_->groups()[g].keeps, block_tokens).dead;
      auto& table = tables_[g];
      while (table.gone < dead.end.value() && !table.blocks.empty()) { // no sinks in these models: dead from the front
        memory_->give(group_id{g}, table.blocks.front());
        table.blocks.pop_front();
        ++table.gone;
      }
    }
  }
  void release() {
    for (std::uint32_t g = 0; g < tables_.size(); ++g) {
      for (auto const block : tables_[g].blocks) { memory_->give(group_id{g}, block); }
      tables_[g].blocks.clear();
    }
  }
  [[nodiscard]] auto length() const -> std::uint32_t { return length_; }
  [[nodiscard]] auto most(std::size_t g) const -> std::size_t { return tables_[g].most; }

private:
  struct group_table {
    std::deque<block_id> blocks; // behind those that are gone
    std::uint32_t gone = 0;
    std::size_t most = 0; // at once
  };
  model_spec const* model_;
  Memory* memory_;
  owner_hint hint_;
  std::vector<group_table> tables_;
  std::uint32_t length_ = 0;
};

struct peaks {
  std::uint64_t bytes = 0;  // of pages held
  std::size_t windowed = 0; // blocks of the group that does not keep everything
};
// The peaks of `length` positions that arrive q at a time.
auto peaks_of(model_spec const& model, std::uint32_t length, std::uint32_t q) -> peaks {
  auto memory =
      two_level_memory{block_sizes(model), byte_count{naive_sequence_bytes(model, token_count{length}).value() * 2}};
  REQUIRE_FALSE(memory.plan().padded());
  auto sequence = mixed_sequence{model, memory, owner_hint{1}};
  auto out = peaks{};
  while (sequence.length() < length) {
    sequence.append(std::min(q, length - sequence.length()));
    out.bytes = std::max(out.bytes, memory.usage().held.value());
    sequence.settle();
  }
  for (std::size_t g = 0; g < model.groups().size(); ++g) {
    auto const& keeps = model.groups()[g].keeps;
    CHECK(sequence.most(g) <=
          peak_blocks(keeps, token_count{length}, {.block_tokens = block_tokens, .step = token_count{q}}).value());
    if (!keeps.keeps_all()) { out.windowed = sequence.most(g); }
  }
  sequence.release();
  CHECK(memory.usage().held == byte_count{0});
  return out;
}

// One pool whose blocks hold all layers.
auto flat_bytes(model_spec const& model, std::uint32_t length) -> std::uint64_t {
  auto const sizes = std::array{block_bytes(model, block_tokens)};
  auto memory = uniform_memory{sizes, byte_count{sizes[0].value() * (length / 16)}};
  auto blocks = std::vector<block_id>(length / 16);
  REQUIRE(memory.take(group_id{0}, blocks) == block_count{length / 16});
  return memory.usage().held.value();
}

struct headline {
  char const* preset;
  double decode;          // at q = 1, at least
  double full_gib;        // of the flat pool
  std::uint32_t windowed; // blocks of the windowed group in decode
};

struct load_result {
  double mean = 0; // share of held bytes inside blocks in use, over all steps
  std::size_t finished = 0;
};

// Requests of log-normal lengths come as long as their blocks fit, and decode one position a step.
template <class Memory>
auto run_load(model_spec const& model, Memory& memory, std::uint32_t steps) -> load_result {
  auto random = std::mt19937{20260101};
  // own log-normal: the standard one differs between libraries
  auto const next_length = [&] {
    auto sum = 0.0;
    for (auto i = 0; i < 12; ++i) { sum += static_cast<double>(random()) / 4294967296.0; }
    return static_cast<std::uint32_t>(std::min(30'000.0, 16.0 + std::exp(7.0 + (sum - 6.0))));
  };
  struct live {
    mixed_sequence<Memory> sequence;
    std::uint32_t length;
  };
  auto running = std::vector<live>{};
  auto out = load_result{};
  auto used = 0.0;
  auto held = 0.0;
  auto wanted = next_length();
  auto id = std::uint32_t{0};
  for (std::uint32_t step = 0; step < steps; ++step) {
    auto promised = std::vector<block_count>(model.groups().size()); // two more blocks a group for everyone who runs
    for (auto& one : promised) { one += block_count{2 * static_cast<std::uint32_t>(running.size())}; }
    for (auto full = false; !full;) {
      auto sequence = mixed_sequence<Memory>{model, memory, owner_hint{id++}};
      auto const prompt = wanted * 3 / 4 + 1;
      auto needs = sequence.needs(prompt);
      for (std::size_t g = 0; g < needs.size(); ++g) { needs[g] += promised[g]; }
      full = !memory.fits(needs);
      if (full) { break; }
      sequence.append(prompt);
      sequence.settle();
      running.push_back({std::move(sequence), wanted});
      wanted = next_length();
    }
    for (std::size_t i = 0; i < running.size();) {
      auto& one = running[i];
      auto const room = memory.fits(one.sequence.needs(1));
      if (room) {
        one.sequence.append(1);
        one.sequence.settle();
      }
      if (room && one.sequence.length() < one.length) {
        ++i;
        continue;
      }
      out.finished += room ? 1U : 0U; // without room: preempted
      one.sequence.release();
      std::swap(running[i], running.back());
      running.pop_back();
    }
    if (step < steps / 10) { continue; } // filling up
    auto const now = memory.usage();
    used += static_cast<double>(now.used.value());
    held += static_cast<double>(now.held.value());
  }
  for (auto& one : running) { one.sequence.release(); }
  CHECK(memory.usage().used == byte_count{0});
  out.mean = used / held;
  return out;
}
} // namespace

TEST_CASE("B3: mixed stacks at 128 K tokens take a fraction of one flat pool") {
  auto const rows = std::array{headline{"gemma3-27b", 5.9, 62.0, 65}, headline{"llama4-scout", 3.3, 24.0, 512},
                               headline{"gpt-oss-120b", 1.99, 9.0, 9}};
  for (auto const& row : rows) {
    auto const model = presets::find(row.preset);
    REQUIRE(model.has_value());
    constexpr auto length = std::uint32_t{128 * 1024};
    auto const flat = flat_bytes(*model, length);
    CHECK(static_cast<double>(flat) == row.full_gib * 1024 * 1024 * 1024);
    auto const decoding = peaks_of(*model, length, 1);
    auto const prefilling = peaks_of(*model, length, 2500);
    auto const decode = static_cast<double>(flat) / static_cast<double>(decoding.bytes);
    auto const prefill = static_cast<double>(flat) / static_cast<double>(prefilling.bytes);
    CHECK(decoding.windowed == row.windowed);
    CHECK(prefilling.windowed > row.windowed);
    INFO(row.preset << ": " << decode
                    << " times less at q = 1; at the peak of a prefill in steps of 2500: " << prefill);
    CHECK(decode >= row.decode);
    CHECK(prefill >= 1.0);
    CHECK(prefill < decode); // the peak of a prefill is another figure
  }
}

TEST_CASE("B3: under mixed lengths two-level memory keeps 95 percent of its pages inside blocks in use") {
  for (auto const* name : {"gemma3-27b", "gemma3-4b", "llama4-scout", "gpt-oss-120b"}) {
    auto const model = presets::find(name);
    REQUIRE(model.has_value());
    auto memory = two_level_memory{block_sizes(*model), byte_count{300ULL * 1000 * bytes_per_token(*model).value()}};
    auto const result = run_load(*model, memory, 4000);
    INFO(name << ": " << result.mean << ", " << result.finished << " finished");
    CHECK(result.finished > 500);
    CHECK(result.mean >= 0.95);
    CHECK(memory.free_pages() == memory.arena().value() / memory.plan().page.value());
  }
}

TEST_CASE("B3: the same load wastes more in uniform and in partitioned memory") {
  auto const model = presets::find("gemma3-27b");
  auto const budget = byte_count{300ULL * 1000 * bytes_per_token(*model).value()};
  auto two_level = two_level_memory{block_sizes(*model), budget};
  auto uniform = uniform_memory{block_sizes(*model), budget};
  auto partitioned = partitioned_memory{block_sizes(*model), budget};
  auto const best = run_load(*model, two_level, 1500);
  auto const padded = run_load(*model, uniform, 1500);
  auto const fixed = run_load(*model, partitioned, 1500);
  INFO(best.mean << " two-level, " << padded.mean << " uniform, " << fixed.mean << " partitioned");
  CHECK(padded.mean < best.mean);
  CHECK(fixed.mean < best.mean);
  CHECK(padded.finished < best.finished);
}
