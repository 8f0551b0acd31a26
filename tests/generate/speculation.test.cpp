// SPDX-License-Identifier: Apache-2.0
// For whom guesses are made, which ones hold, and what a cache is told.
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/detail/generation_record.hpp>
#include <quire/generate/detail/speculation.hpp>

#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace {
using namespace quire;
using text = std::vector<token_id>;

/// Proposes what it was given, and counts how often it was asked.
struct scripted_drafter {
  text proposal{};
  unsigned asked = 0;
  auto propose(std::span<token_id const>, std::span<token_id> guesses) -> std::size_t {
    ++asked;
    std::copy_n(proposal.begin(), std::min(proposal.size(), guesses.size()), guesses.begin());
    return proposal.size(); // more than fits is no reason to read beyond
  }
};
struct hold {
  token_count at{};
  auto length() const -> token_count { return at; }
};
using record = detail::generation_record<hold>;

/// Remembers what was cut off and told.
struct scripted_cache {
  token_count dropped{};
  text told{};
  bool drops = true;
  bool resolves = true;
  auto drop_last(hold const&, token_count count) -> expected<void> {
    dropped = count;
    return drops ? expected<void>{} : refuse(errc::no_blocks);
  }
  auto resolve(hold const&, std::span<token_id const> ids) -> expected<void> {
    told.assign(ids.begin(), ids.end());
    return resolves ? expected<void>{} : refuse(errc::plan_open);
  }
};

/// A decode behind prompt {1, 2} and output {3}, of which at most \p limit outputs are wanted.
auto decoding(unsigned limit = 20) -> record {
  auto m = record{};
  m.result.state = {.prompt = {1, 2}, .output = {3}, .stop = {.limit = token_count{limit}}};
  m.text = {1, 2, 3};
  m.seq.at = token_count{2};
  m.guesses = {9, 9}; // of the step before
  return m;
}
auto guessing(unsigned most, text proposal) {
  return detail::speculation<scripted_drafter>{token_count{most}, 50, scripted_drafter{std::move(proposal)}};
}
} // namespace

TEST_CASE("B6: a decode is guessed for, up to the option, the drafter's count and the limit") {
  auto m = decoding();
  auto s = guessing(3, {4, 5});
  CHECK(s.guess(m) == 2);
  CHECK(m.guesses == text{4, 5});
  CHECK(guessing(3, {4, 5, 6, 7}).guess(m) == 3);
  m = decoding(3); // two outputs are left: one may be fed as a guess, the last one never
  CHECK(guessing(3, {4, 5, 6}).guess(m) == 1);
  CHECK(m.guesses == text{4});
  m = decoding(2);
  auto idle = guessing(3, {4});
  CHECK(idle.guess(m) == 0);
  CHECK(idle.guesser().asked == 0);
}

TEST_CASE("B6: nobody guesses for a prompt, for a last output, without room to take back, or without the option") {
  auto const none = [](record m, unsigned most = 3) {
    auto s = guessing(most, {4, 5});
    CHECK(s.guess(m) == 0);
    CHECK(m.guesses.empty()); // those of the step before neither
    CHECK(s.guesser().asked == 0);
  };
  none(decoding(), 0);
  auto m = decoding();
  m.seq.at = token_count{1}; // two positions to feed
  none(std::move(m));
  m = decoding();
  m.result.state.output.clear();
  none(std::move(m));
  m = decoding();
  m.closing = stop_reason::limit;
  none(std::move(m));
  m = decoding();
  m.drafts = false;
  none(std::move(m));
}

TEST_CASE("B6: guesses end before the first token that the model does not know") {
  auto m = decoding();
  CHECK(guessing(4, {4, 50, 5}).guess(m) == 1);
  CHECK(guessing(4, {-1, 5}).guess(m) == 0);
  CHECK(m.guesses.empty());
}

TEST_CASE("B6: an output confirms the guess in its place, and behind the last guess there is nothing to confirm") {
  auto m = decoding();
  m.guesses = {4, 5};
  auto const s = guessing(2, {});
  m.text.push_back(4);
  CHECK(s.confirmed(m, 1));
  m.text.push_back(6);
  CHECK_FALSE(s.confirmed(m, 2));
  CHECK(s.confirmed(m, 3));
}

TEST_CASE("B6: n outputs hold n positions: their ids are told, the rest is cut off") {
  for (unsigned n = 1; n <= 3; ++n) {
    auto m = decoding();
    m.guesses = {4, 5};
    m.text.insert(m.text.end(), {4, 5, 6});
    m.text.resize(3 + n);
    auto cache = scripted_cache{};
    guessing(2, {}).keep_verified(cache, m, token_count{2}, token_count{n});
    CHECK(cache.dropped == token_count{3 - n});
    CHECK(cache.told == text(m.text.begin() + 2, m.text.begin() + 2 + n));
    CHECK(m.result.drafted == token_count{2});
    CHECK(m.result.accepted == token_count{n - 1});
    CHECK(m.result.covered == token_count{2 + n});
    CHECK_FALSE(m.stray);
  }
}

TEST_CASE("B6: where the cache refuses to cut, or to be told, wrong guesses stand in the sequence") {
  for (auto const drops : {true, false}) {
    auto m = decoding();
    m.guesses = {4, 5};
    m.text.push_back(7);
    auto cache = scripted_cache{.drops = drops, .resolves = !drops};
    guessing(2, {}).keep_verified(cache, m, token_count{2}, token_count{1});
    CHECK(m.stray);
    CHECK(m.result.covered == token_count{3}); // what is right, all the same
  }
}
