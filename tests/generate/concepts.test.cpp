// SPDX-License-Identifier: Apache-2.0
// What the concepts of the room reject, and the small models.
#include <quire/generate/concepts.hpp>
#include <quire/generate/generation_result.hpp>
#include <quire/generate/kept_outputs.hpp>
#include <quire/generate/lookup_drafter.hpp>
#include <quire/generate/manual_clock.hpp>
#include <quire/generate/no_clock.hpp>
#include <quire/generate/no_drafter.hpp>
#include <quire/generate/null_language_model.hpp>
#include <quire/generate/steady_clock.hpp>

#include "support/catch_compat.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {
using namespace quire;

// Every near-miss drops or changes one expression.
struct model_base {
  auto run(std::span<action const>) -> expected<void> { return {}; }
  auto vocabulary() const noexcept -> std::size_t { return 1; }
  auto max_positions() const noexcept -> token_count { return {}; }
  auto forward(forward_batch const&) -> expected<void> { return {}; }
};
struct no_run : model_base {
  auto run(std::span<action const>) -> expected<void> = delete;
};
struct throwing_vocabulary : model_base {
  auto vocabulary() const -> std::size_t { return 1; }
};
struct signed_vocabulary : model_base {
  auto vocabulary() const noexcept -> int { return 1; }
};
struct mutable_vocabulary : model_base {
  auto vocabulary() noexcept -> std::size_t { return 1; }
};
struct plain_positions : model_base {
  auto max_positions() const noexcept -> std::uint32_t { return 1; }
};
struct throwing_positions : model_base {
  auto max_positions() const -> token_count { return {}; }
};
struct no_forward : model_base {
  auto forward(forward_batch const&) -> expected<void> = delete;
};
struct silent_forward : model_base {
  auto forward(forward_batch const&) -> void {}
};
struct bool_forward : model_base {
  auto forward(forward_batch const&) -> bool { return true; }
};
static_assert(language_model<model_base>);
static_assert(!language_model<int> && !language_model<no_run> && !language_model<throwing_vocabulary>);
static_assert(!language_model<signed_vocabulary> && !language_model<mutable_vocabulary> &&
              !language_model<plain_positions>);
static_assert(!language_model<throwing_positions> && !language_model<no_forward> && !language_model<silent_forward>);
static_assert(!language_model<bool_forward>);

struct throwing_clock {
  auto now() const -> instant { return {}; }
};
struct mutable_clock {
  auto now() noexcept -> instant { return {}; }
};
struct counting_clock {
  auto now() const noexcept -> nanosecond_count { return {}; }
};
struct fixed_clock : no_clock {
  fixed_clock() = default;
  fixed_clock(fixed_clock const&) = delete;
};
static_assert(!quire::clock<int> && !quire::clock<throwing_clock> &&
              !quire::clock<mutable_clock>); // ::clock is a function
static_assert(!quire::clock<counting_clock> && !quire::clock<fixed_clock>);

struct int_drafter {
  auto propose(std::span<token_id const>, std::span<token_id>) -> int { return 0; }
};
struct blind_drafter {
  auto propose(std::span<token_id>) -> std::size_t { return 0; }
};
static_assert(!drafter<int> && !drafter<int_drafter> && !drafter<blind_drafter>);
} // namespace

TEST_CASE("clocks: a manual one goes where it is told, the machine's never back") {
  auto time = manual_clock{instant{5}};
  CHECK(time.now() == instant{5});
  time.advance(nanosecond_count{7});
  CHECK(time.now() == instant{12});
  CHECK(no_clock{}.now() == instant{});
  auto const before = steady_clock{}.now();
  CHECK(steady_clock{}.now() >= before);
  CHECK(before > instant{});
}

TEST_CASE("S40: everything is a difference of four instants") {
  auto t = generation_times{.entry = instant{100}};
  CHECK_FALSE(t.queue());
  t.admitted = instant{130};
  t.first_output = instant{200};
  t.last_output = instant{260};
  t.outputs = token_count{4};
  CHECK(t.queue() == nanosecond_count{30});
  CHECK(t.ttft() == nanosecond_count{100});
  CHECK(t.tpot() == 20.0);
  CHECK(t.end_to_end() == nanosecond_count{160}); // 100 + 3 · 20: the queue is not added again
  CHECK(t == generation_times{t});
}

TEST_CASE("S22: kept outputs are found by scope and every token, the least recently used leave first") {
  auto kept = kept_outputs{2};
  auto const prompt = std::vector<token_id>{1, 2, 3};
  auto const logits = std::vector<float>{0.5F, 0.25F};
  kept.keep(scope_number{1}, prompt, logits);
  CHECK(std::vector<float>(kept.find(scope_number{1}, prompt).begin(), kept.find(scope_number{1}, prompt).end()) ==
        logits);
  CHECK(kept.find(scope_number{2}, prompt).empty());
  CHECK(kept.find(scope_number{1}, std::vector<token_id>{1, 2}).empty());
  CHECK(kept.find(scope_number{1}, std::vector<token_id>{1, 2, 4}).empty());
  kept.keep(scope_number{1}, prompt, std::vector<float>{9.0F}); // again: the newer one
  CHECK(kept.size() == 1);
  CHECK(kept.find(scope_number{1}, prompt).front() == 9.0F);
  kept.keep(scope_number{1}, std::vector<token_id>{7}, logits);
  static_cast<void>(kept.find(scope_number{1}, prompt));
  kept.keep(scope_number{1}, std::vector<token_id>{8}, logits);
  CHECK(kept.size() == 2);
  CHECK(kept.find(scope_number{1}, std::vector<token_id>{7}).empty());
  CHECK_FALSE(kept.find(scope_number{1}, prompt).empty());
  kept.forget();
  CHECK(kept.size() == 0);
  CHECK(kept.find(scope_number{1}, prompt).empty());
  auto none = kept_outputs{};
  none.keep(scope_number{1}, prompt, logits);
  CHECK(none.size() == 0);
}

TEST_CASE("B6: the look-up drafter repeats what followed the same tokens last") {
  auto guesses = std::array<token_id, 3>{};
  auto const propose = [&](std::vector<token_id> const& text, unsigned gram) {
    auto const n = lookup_drafter{token_count{gram}}.propose(text, guesses);
    return std::vector<token_id>(guesses.begin(), guesses.begin() + static_cast<std::ptrdiff_t>(n));
  };
  CHECK(propose({1, 2, 3, 4, 5, 1, 2}, 2) == std::vector<token_id>{3, 4, 5});
  CHECK(propose({1, 2, 3, 1, 2, 4, 1, 2}, 2) == std::vector<token_id>{4, 1, 2});
  CHECK(propose({1, 2, 1}, 1) == std::vector<token_id>{2, 1});
  CHECK(propose({7, 7}, 1) == std::vector<token_id>{7});
  CHECK(propose({1, 2, 3}, 1).empty());
  CHECK(propose({1, 2}, 2).empty());
  CHECK(propose({}, 1).empty());
  CHECK(propose({5, 6, 5}, 0) == std::vector<token_id>{6, 5}); // at least 1
  CHECK(no_drafter{}.propose(guesses, guesses) == 0);
}
