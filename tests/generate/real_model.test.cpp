// SPDX-License-Identifier: Apache-2.0
// A trained model through the cache: whatever the schedule, it says what an independent implementation says, and the
// logits are the same to the last bit.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2") // 30 000 positions of a real network
#endif
#include "generate/stories.hpp"
#include "support/catch_compat.hpp"

#include <quire/attention/equivalence_checker.hpp>
#include <quire/generate/lookup_drafter.hpp>
#include <quire/model/work.hpp>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace {
using namespace quire;
using quire_test::base_run;
using quire_test::distance;
using quire_test::stories;
using quire_test::storyteller;

auto tokens(unsigned n) { return token_count{n}; }

/// Golden continuations with every third token wrong: accepted, cut, accepted, …
struct misleading_drafter {
  stories const* data = nullptr;
  unsigned asked = 0;
  auto propose(std::span<token_id const> text, std::span<token_id> guesses) -> std::size_t {
    for (std::size_t i = 0; i < data->cases(); ++i) {
      auto whole = data->prompt(i);
      auto const greedy = data->greedy(i);
      whole.insert(whole.end(), greedy.begin(), greedy.end());
      if (text.size() >= whole.size() || !std::equal(text.begin(), text.end(), whole.begin())) { continue; }
      auto const count = std::min(guesses.size(), whole.size() - text.size());
      std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(text.size()), count, guesses.begin());
      if (auto const wrong = asked++ % (guesses.size() + 1); wrong < count) {
        guesses[wrong] = (guesses[wrong] + 1) % 512;
      }
      return count;
    }
    return 0;
  }
};
} // namespace

TEST_CASE("S4: the real model agrees with its float64 reference: logits, keys, values, tokens and text", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  auto checker = equivalence_checker{{.accumulation = 1e-4}};
  for (std::size_t i = 0; i < data->cases(); ++i) {
    auto const& golden = data->golden["cases"][i];
    INFO(golden["prompt"].get<std::string>());
    CHECK(data->words.encode(golden["prompt"].get<std::string>()) == data->prompt(i));
    auto s = storyteller<>{*data};
    auto const id = s.submit_case(i);
    s.step();
    auto const& shape = data->file.shape();
    auto const at = golden["last_pos"].get<std::size_t>();
    auto const block = s.generator.sequence_of(id)->blocks()[at / 16].value();
    auto const place = (block * std::size_t{16} + at % 16) * shape.kv_dim();
    CHECK(distance(s.memory.keys(0).subspan(place, shape.kv_dim()), golden["k_layer0_last"]) < 1e-5);
    CHECK(distance(s.memory.values(0).subspan(place, shape.kv_dim()), golden["v_layer0_last"]) < 1e-5);
    CHECK(distance(s.memory.keys(shape.layers - 1).subspan(place, shape.kv_dim()), golden["k_lastlayer_last"]) < 1e-5);
    CHECK(distance(s.memory.values(shape.layers - 1).subspan(place, shape.kv_dim()), golden["v_lastlayer_last"]) <
          1e-5);
    s.run();
    auto const& out = s.outputs[id];
    CHECK(distance(out.logits.front(), golden["prompt_logits"]) < 1e-4);
    CHECK(distance(out.logits.back(), golden["final_logits"]) < 1e-4);
    checker.compare(golden["prompt_logits"].get<std::vector<double>>(), out.logits.front());
    checker.compare(golden["final_logits"].get<std::vector<double>>(), out.logits.back());
    auto text = out.tokens;
    text.pop_back();
    CHECK(text == data->greedy(i));
    auto whole = data->prompt(i);
    whole.erase(whole.begin());
    whole.insert(whole.end(), text.begin(), text.end());
    CHECK(data->words.decode(whole) == golden["text"].get<std::string>());
  }
  auto const report = checker.report();
  CHECK(report.verdict == equivalence_verdict::numeric);
  CHECK(report.flips.empty());
  CHECK(report.max_abs < 2e-5);
}

TEST_CASE("S4: cached execution equals a full recompute to the last bit", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  auto const& base = base_run(*data);
  auto work_done = work{};
  for (std::size_t i = 0; i < data->cases(); ++i) {
    auto s = storyteller<>{*data};
    auto whole = data->prompt(i);
    auto const outputs = base[i].tokens.size();
    auto differences = 0U;
    for (std::size_t k = 0; k < outputs; ++k) { // nothing is found, nothing is left behind
      auto const id = s.submit(whole, 1, reuse_rule::none);
      s.run();
      auto const& one = s.outputs[id];
      differences += one.tokens.front() != base[i].tokens[k] || one.logits.front() != base[i].logits[k] ? 1U : 0U;
      whole.push_back(base[i].tokens[k]);
      work_done += s.generator.take(id).computed;
    }
    CHECK(differences == 0);
    CHECK(s.generator.computed() == recompute_work({tokens(static_cast<unsigned>(data->prompt(i).size())),
                                                    tokens(static_cast<unsigned>(outputs))}));
  }
  CHECK(work_done.positions > 29'000); // beside some 520 with the cache: a count of operations
}

TEST_CASE("S26: prefill in chunks of 1 to 17 tokens says the same, token by token included", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  for (unsigned chunk = 1; chunk <= 17; ++chunk) {
    INFO("chunk " << chunk);
    auto s = storyteller<>{*data, 16, {.chunk = tokens(chunk)}};
    auto const ids = s.submit_cases();
    s.run();
    s.check_cases(ids, base_run(*data));
  }
}

TEST_CASE("S14: blocks of 1, 2, 3, 5, 16 and 17 tokens say the same", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  for (auto const block_tokens : {1U, 2U, 3U, 5U, 16U, 17U}) {
    INFO("blocks of " << block_tokens);
    auto s = storyteller<>{*data, block_tokens};
    auto const ids = s.submit_cases();
    s.run();
    s.check_cases(ids, base_run(*data));
    auto const again = s.submit_cases(); // now everything is found
    s.run();
    s.check_cases(again, base_run(*data));
    CHECK(s.generator.result(again[2]).cached == tokens(std::min(16U, 17 / block_tokens * block_tokens)));
  }
}

TEST_CASE("S19: rows permuted and swapped while running say the same", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  auto s = storyteller<>{*data, 5, {.chunk = tokens(4)}};
  auto const ids = s.submit_cases();
  auto random = random_state{4};
  while (!s.generator.idle()) {
    s.step();
    auto order = s.generator.running();
    std::shuffle(order.begin(), order.end(), random);
    s.generator.reorder(order);
  }
  s.check_cases(ids, base_run(*data));
}

TEST_CASE("S23: 24 prompts with shared openings find 90 of their 129 full blocks", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  auto in = std::ifstream{quire_test::data_folder() / "prompts" / "shared_openings.jsonl"};
  auto s = storyteller<>{*data, 16, {}, 512};
  auto blocks = 0U;
  auto hits = 0U;
  auto cached = std::vector<quire_test::said>{};
  auto prompts = std::vector<std::vector<token_id>>{};
  for (auto line = std::string{}; std::getline(in, line);) {
    auto const one = nlohmann::json::parse(line);
    auto const ids = one["ids"].get<std::vector<token_id>>();
    CHECK(data->words.encode(one["prompt"].get<std::string>()) == ids);
    auto const id = s.submit(ids, 8);
    s.run();
    auto const found = s.generator.result(id).cached.value();
    CHECK(found % 16 == 0);
    CHECK(found / 16 == one["hit_blocks"].get<unsigned>());
    blocks += static_cast<unsigned>(ids.size() / 16);
    hits += found / 16;
    cached.push_back(s.outputs[id]);
    prompts.push_back(ids);
  }
  CHECK(prompts.size() == 24);
  CHECK(blocks == 129);
  CHECK(hits == 90);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    auto alone = storyteller<>{*data};
    auto const id = alone.submit(prompts[i], 8, reuse_rule::none);
    alone.run();
    CHECK((alone.outputs[id] == cached[i]));
  }
}

TEST_CASE("B7: forks anywhere say the same as their parent, and so does the parent", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  auto const& base = base_run(*data);
  auto s = storyteller<>{*data, 5, {.chunk = tokens(6)}};
  auto const parent = s.submit_case(3);
  auto forks = std::vector<generation_id>{};
  for (unsigned i = 0; !s.generator.idle(); ++i) {
    s.step();
    if (i % 7 == 2 && s.generator.sequence_of(parent) != nullptr) {
      forks.push_back(s.generator.fork(parent, random_state{}).value());
    }
  }
  s.check_case(3, parent, base);
  CHECK(forks.size() >= 6);
  for (auto const id : forks) { CHECK(s.generator.result(id).state.output == base[3].tokens); }
  auto const samples =
      s.generator
          .submit_samples({.scope = s.scope, .state = {.prompt = data->prompt(4), .stop = {.limit = tokens(58)}}}, 3)
          .value();
  s.run();
  for (auto const id : samples) { s.check_case(4, id, base); }
}

TEST_CASE("S25: cancelled and timed-out neighbours are not noticed", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  auto s = storyteller<>{*data, 3, {.chunk = tokens(5)}};
  auto random = random_state{8};
  auto ids = std::vector<generation_id>{};
  auto noise = std::vector<generation_id>{};
  for (std::size_t i = 0; i < data->cases(); ++i) {
    ids.push_back(s.submit_case(i));
    for (auto k = 0; k < 2; ++k) {
      auto prompt = data->prompt((i + 1) % data->cases());
      prompt.resize(1 + random() % prompt.size());
      noise.push_back(s.submit(prompt, 40));
    }
  }
  while (!s.generator.idle()) {
    s.step();
    auto const id = noise[random() % noise.size()];
    static_cast<void>(random() % 2 == 0 ? s.generator.cancel(id) : s.generator.time_out(id));
  }
  s.check_cases(ids, base_run(*data));
  CHECK(s.cache.live_sequences() == sequence_count{0});
}

TEST_CASE("B6: truncated drafts say the same", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  for (auto const k : {1U, 3U, 6U}) {
    auto s = storyteller<default_policies, misleading_drafter>{*data, 5, {.draft = tokens(k)}, 0, {.data = data}};
    auto const ids = s.submit_cases();
    s.run();
    s.check_cases(ids, base_run(*data));
    auto const& r = s.generator.result(ids[0]);
    CHECK(r.accepted > tokens(0));
    CHECK(r.accepted < r.drafted);
  }
  auto s = storyteller<default_policies, lookup_drafter>{*data, 16, {.draft = tokens(4)}};
  auto const ids = s.submit_cases();
  s.run();
  s.check_cases(ids, base_run(*data));
}

TEST_CASE("S24: preempted and recomputed in a pool that is too small, it says the same", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  auto s = storyteller<quire_test::optimistic_stories>{*data, 4, {.chunk = tokens(8)}, 54};
  auto const ids = s.submit_cases();
  s.run();
  s.check_cases(ids, base_run(*data));
  auto lost = 0U;
  for (auto const id : ids) { lost += s.generator.result(id).preemptions; }
  CHECK(lost > 0);
}

TEST_CASE("S15: blocks moved between steps say the same", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  auto s = storyteller<>{*data, 4};
  auto const ids = s.submit_cases();
  auto moves = std::size_t{0};
  for (unsigned i = 0; !s.generator.idle(); ++i) {
    s.step();
    auto const actions = s.cache.compact();
    REQUIRE(actions.has_value());
    REQUIRE(s.network.run(*actions).has_value());
    moves += actions->size();
  }
  s.check_cases(ids, base_run(*data));
  CHECK(moves > 0);
}

TEST_CASE("S39: what the real model cannot take is refused with a reason", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  auto s = storyteller<>{*data};
  auto const refused = [&](std::vector<token_id> prompt, unsigned outputs) {
    return s.generator
        .submit({.scope = s.scope, .state = {.prompt = std::move(prompt), .stop = {.limit = tokens(outputs)}}})
        .error();
  };
  CHECK(refused({1, 512}, 1).message == "token 512 at place 1 is unknown: the vocabulary has 512 tokens");
  CHECK(refused(std::vector<token_id>(513, 5), 1).message ==
        "513 prompt tokens and 1 outputs need 513 positions and the model has 512: shorten the prompt or ask for fewer "
        "outputs");
  auto const id = s.submit(std::vector<token_id>(511, 5), 2); // to the very last position
  s.run();
  CHECK(s.generator.result(id).covered == tokens(512));
}
