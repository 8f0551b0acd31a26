// SPDX-License-Identifier: Apache-2.0
// Who waits, who runs and who loses its blocks, over a cache that answers as it is told.
#include <quire/cache/refusal.hpp>
#include <quire/generate/detail/generation_queue.hpp>
#include <quire/generate/detail/generation_registry.hpp>

#include "support/catch_compat.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {
using namespace quire;

/// A hold on a cache that only counts.
class hold {
public:
  hold() noexcept = default;
  explicit hold(token_count length) : held_{true}, length_{length} {}
  hold(hold&& other) noexcept : held_{std::exchange(other.held_, false)}, length_{other.length_} {}
  auto operator=(hold&& other) noexcept -> hold& {
    held_ = std::exchange(other.held_, false);
    length_ = other.length_;
    return *this;
  }
  ~hold() = default;
  explicit operator bool() const noexcept { return held_; }
  auto length() const -> token_count { return length_; }
  auto cached() const -> token_count { return length_; }

private:
  bool held_ = false;
  token_count length_{};
};

/// Answers admissions in the order of `answers`, `ok` when there are no more; remembers what it was asked and told.
struct scripted_cache {
  using sequence = hold;
  struct question {
    std::size_t prompt;
    token_count max_output;
    token_count draft;
    reuse_rule reuse;
    bool resumed;
  };
  std::deque<errc> answers{};
  std::vector<question> asked{};
  std::string ends{}; // r: released, c: cancelled, t: timed out, p: preempted
  bool preempts = true;

  auto admit(admit_request const& r) -> expected<hold, refusal> {
    asked.push_back({r.prompt.size(), r.max_output, r.draft, r.reuse, r.resumed});
    auto const answer = answers.empty() ? errc::ok : answers.front();
    if (!answers.empty()) { answers.pop_front(); }
    if (answer != errc::ok) { return tl::unexpected<refusal>{refusal{.code = answer}}; }
    return hold{token_count{2}};
  }
  auto release(hold&& s) -> void { end(std::move(s), 'r'); }
  auto cancel(hold&& s) -> void { end(std::move(s), 'c'); }
  auto time_out(hold&& s) -> void { end(std::move(s), 't'); }
  auto preempt(hold& s) -> expected<void> {
    if (!preempts) { return refuse(errc::illegal_transition); }
    end(std::move(s), 'p');
    return {};
  }

private:
  auto end(hold&& s, char how) -> void {
    auto const gone = std::move(s);
    REQUIRE(static_cast<bool>(gone));
    ends += how;
  }
};

using queue_type = detail::generation_queue<scripted_cache>;
using record = queue_type::record;
using row = detail::step_row<record>;

struct fixture {
  scripted_cache cache{};
  detail::generation_registry<record> names{};
  queue_type queue;

  explicit fixture(generator_options const& options = {}) : queue{cache, options}, draft{options.draft} {}
  fixture(fixture const&) = delete;

  auto made(unsigned limit = 4) -> record& {
    auto request = generation_request{};
    request.state = {.prompt = {1, 2, 3}, .stop = {.limit = token_count{limit}}};
    return names.add(std::move(request), instant{}, draft);
  }
  auto waiting(unsigned limit = 4) -> record& {
    auto& m = made(limit);
    queue.wait(m);
    return m;
  }
  auto running(unsigned limit = 4) -> record& {
    auto& m = waiting(limit);
    REQUIRE(queue.admit_next() == &m);
    return m;
  }
  /// A step that gave \p status to those that run, in order.
  auto step(std::vector<errc> const& status) -> bool {
    auto rows = std::vector<row>{};
    for (auto* const m : queue.running()) {
      rows.push_back({.of = m, .length = 2, .tokens = 1, .outputs = 1, .status = status[rows.size()]});
    }
    return queue.make_room(rows);
  }
  auto order() const -> std::vector<record*> { return {queue.running().begin(), queue.running().end()}; }
  token_count draft;
};
} // namespace

TEST_CASE("S39: who waits is let in in order, as long as there are places") {
  auto f = fixture{{.max_members = 2}};
  auto& a = f.waiting();
  auto& b = f.waiting();
  f.waiting();
  CHECK(f.queue.admit_next() == &a);
  CHECK(a.result.cached == token_count{2});
  CHECK(a.result.covered == token_count{2});
  CHECK(f.queue.admit_next() == &b);
  CHECK_FALSE(f.queue.has_place());
  CHECK(f.queue.admit_next() == nullptr);
  CHECK(f.queue.waiting() == 1);
  CHECK(f.order() == std::vector<record*>{&a, &b});
  CHECK(a.age < b.age);
}

TEST_CASE("S39: the first one waits for room, and nobody overtakes it") {
  for (auto const why : {errc::no_blocks, errc::too_many_sequences}) {
    auto f = fixture{};
    auto& a = f.waiting();
    f.waiting();
    f.cache.answers = {why};
    auto const refused = f.queue.admit_next();
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error() == why);
    CHECK(f.queue.waiting() == 2);
    CHECK(f.queue.admit_next() == &a);
  }
}

TEST_CASE("S39: who can never be let in is over, and the next one has its turn") {
  auto f = fixture{};
  auto& a = f.waiting();
  auto& b = f.waiting();
  f.cache.answers = {errc::never_fits, errc::never_fits};
  CHECK(f.queue.admit_next() == &b);
  CHECK(a.result.reason == stop_reason::failed);
  REQUIRE(f.cache.asked.size() == 3); // once more without what a copy would take
  CHECK(f.cache.asked[0].reuse == reuse_rule::read_and_write);
  CHECK(f.cache.asked[1].reuse == reuse_rule::write_only);
}

TEST_CASE("B6: guesses are part of the budget, never beyond the last output, and given up where they do not fit") {
  auto f = fixture{{.draft = token_count{3}}};
  auto& a = f.waiting(10);
  auto& b = f.waiting(2);
  f.cache.answers = {errc::never_fits};
  CHECK(f.queue.admit_next() == &a);
  CHECK_FALSE(a.drafts);
  CHECK(f.queue.admit_next() == &b);
  CHECK(b.drafts);
  auto const& asked = f.cache.asked;
  REQUIRE(asked.size() == 3);
  CHECK(std::pair{asked[0].max_output, asked[0].draft} == std::pair{token_count{7}, token_count{3}});
  CHECK(std::pair{asked[1].max_output, asked[1].draft} == std::pair{token_count{10}, token_count{0}});
  CHECK(std::pair{asked[2].max_output, asked[2].draft} == std::pair{token_count{1}, token_count{1}});
}

TEST_CASE("S24: without room the youngest goes to the head of the queue, and nobody comes in before somebody leaves") {
  auto f = fixture{};
  auto& a = f.running();
  auto& b = f.running();
  auto& c = f.waiting();
  f.queue.reorder({&b, &a}); // rows say nothing about age
  CHECK(f.step({errc::no_blocks, errc::ok}));
  CHECK(f.order() == std::vector<record*>{&a});
  CHECK_FALSE(static_cast<bool>(b.seq));
  CHECK(b.result.preemptions == 1);
  CHECK(f.queue.admit_next() == nullptr);
  CHECK(f.queue.waiting() == 2);
  f.queue.finish(a, stop_reason::limit);
  CHECK(f.queue.admit_next() == &b);
  CHECK(f.cache.asked.back().resumed); // what it finds is its own work
  CHECK(b.age > a.age);
  CHECK(f.queue.admit_next() == &c);
  CHECK_FALSE(f.cache.asked.back().resumed);
  CHECK(f.cache.ends == "pr");
}

TEST_CASE("S24: a hit is what the first admission found, whatever a later one finds") {
  auto f = fixture{};
  auto& a = f.running();
  a.result.times.admitted = instant{5};
  a.result.cached = token_count{1};
  f.queue.preempt(a);
  CHECK(f.queue.admit_next() == &a);
  CHECK(a.result.cached == token_count{1});
  CHECK(a.result.covered == token_count{2});
}

TEST_CASE("S24: a member without anything computed gives up its place and is no loser") {
  auto f = fixture{};
  auto& a = f.running();
  f.cache.preempts = false;
  f.queue.preempt(a);
  CHECK(a.result.preemptions == 0);
  CHECK_FALSE(a.queued_before);
  CHECK_FALSE(static_cast<bool>(a.seq));
  CHECK(f.queue.waiting() == 1);
}

TEST_CASE("S17: the only member starts again once, and then there is no room for it") {
  auto f = fixture{};
  auto& a = f.running();
  CHECK(f.step({errc::no_blocks}));
  CHECK(f.queue.running().empty());
  CHECK(f.queue.admit_next() == &a);
  CHECK_FALSE(f.step({errc::no_blocks}));
  CHECK(f.order() == std::vector<record*>{&a});
  CHECK(f.step({errc::ok})); // it got on meanwhile
  CHECK(f.step({errc::no_blocks}));
}

TEST_CASE("S17: the only one left is not preempted while the others have just left") {
  auto f = fixture{};
  auto& a = f.running();
  auto& b = f.running();
  auto const rows = std::vector<row>{{.of = &a, .length = 2, .tokens = 1, .outputs = 1},
                                     {.of = &b, .length = 2, .tokens = 1, .outputs = 1, .status = errc::no_blocks}};
  f.queue.finish(a, stop_reason::limit); // its row was its last
  CHECK(f.queue.make_room(rows));
  CHECK(f.order() == std::vector<record*>{&b});
}

TEST_CASE("S35: who is of an old epoch starts again, and who is refused for good fails") {
  auto f = fixture{};
  auto& a = f.running();
  auto& b = f.running();
  auto& c = f.running();
  CHECK(f.step({errc::stale_epoch, errc::never_fits, errc::ok}));
  CHECK(f.order() == std::vector<record*>{&c});
  CHECK(f.queue.waiting() == 1);
  CHECK(a.queued_before);
  CHECK(b.result.reason == stop_reason::failed);
  CHECK(f.cache.ends == "pr");
}

TEST_CASE("S41: who loses its blocks and has said everything is over") {
  auto f = fixture{};
  auto& a = f.running();
  a.closing = stop_reason::end_token;
  f.queue.preempt(a);
  CHECK(a.result.reason == stop_reason::end_token);
  CHECK(f.queue.waiting() == 0);
  auto& b = f.running();
  b.closing = stop_reason::limit;
  CHECK(f.queue.end_early(b, stop_reason::cancelled));
  CHECK(b.result.reason == stop_reason::limit);
  CHECK(f.cache.ends == "rc");
}

TEST_CASE("B6: strays lose their blocks, and what they cover is what was right") {
  auto f = fixture{};
  auto& a = f.running();
  auto& b = f.running();
  auto& c = f.running();
  a.stray = c.stray = true;
  a.result.covered = token_count{1};
  f.queue.preempt_strays();
  CHECK(f.order() == std::vector<record*>{&b});
  CHECK(a.result.covered == token_count{1});
  CHECK_FALSE(a.stray);
  CHECK(f.queue.waiting() == 2);
  CHECK(f.queue.admit_next() == &a); // the order of arrival
}

TEST_CASE("S25: a generation ends early wherever it stands, once") {
  auto f = fixture{};
  auto& runs = f.running();
  auto& late = f.running();
  auto& waits = f.waiting();
  auto& follows = f.made();
  f.queue.follow(runs, follows);
  CHECK(f.queue.end_early(follows, stop_reason::cancelled));
  CHECK(runs.followers.empty());
  CHECK(f.queue.end_early(waits, stop_reason::cancelled));
  CHECK(f.queue.waiting() == 0);
  CHECK(f.queue.end_early(late, stop_reason::timed_out));
  CHECK(f.queue.end_early(runs, stop_reason::cancelled));
  CHECK_FALSE(f.queue.end_early(runs, stop_reason::timed_out));
  CHECK(runs.result.reason == stop_reason::cancelled);
  CHECK(late.result.reason == stop_reason::timed_out);
  CHECK(f.queue.running().empty());
  CHECK(f.cache.ends == "tc");
}

TEST_CASE("B7: followers leave in order, and get on by themselves when their leader is over") {
  auto f = fixture{};
  auto& leader = f.running();
  auto& b = f.made();
  auto& c = f.made();
  auto& d = f.made();
  for (auto* const m : {&b, &c, &d}) { f.queue.follow(leader, *m); }
  CHECK(&f.queue.next_follower(leader) == &b);
  CHECK(b.leader == nullptr);
  f.queue.finish(leader, stop_reason::limit);
  CHECK(f.queue.waiting() == 2);
  CHECK(c.leader == nullptr);
  CHECK(f.queue.admit_next() == &c);
  CHECK(f.queue.admit_next() == &d);
}

TEST_CASE("S19: an order that is no permutation breaks a contract, and changes nothing") {
  auto f = fixture{};
  auto& a = f.running();
  auto& b = f.running();
  auto& c = f.waiting();
  CHECK_THROWS_AS(f.queue.reorder({&a}), quire_test::contract_violation);
  CHECK_THROWS_AS(f.queue.reorder({&a, &a}), quire_test::contract_violation);
  CHECK_THROWS_AS(f.queue.reorder({&a, &c}), quire_test::contract_violation);
  CHECK(f.order() == std::vector<record*>{&a, &b});
  f.queue.reorder({&b, &a});
  CHECK(f.order() == std::vector<record*>{&b, &a});
}
