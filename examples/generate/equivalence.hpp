// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Does the cached run say what a run without any cache says? Asked by numbers (S4).
///
/// Every finished text is computed once more from its first token, in blocks of its own, and the logits behind each
/// position are compared with those that its outputs were chosen from. Then one block is spoiled on purpose: if that
/// made no difference, the comparison would prove nothing.

#include "generate/input_error.hpp"
#include "generate/service.hpp"

#include <quire/attention/accumulation_error.hpp>
#include <quire/attention/equivalence_checker.hpp>
#include <quire/attention/equivalence_report.hpp>
#include <quire/cache/requests.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/forward_batch.hpp>
#include <quire/generate/steady_clock.hpp>
#include <quire/generate/types.hpp>
#include <quire/model/dtype.hpp>

#include <algorithm> // std::fill_n, std::max, std::min
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility> // std::move
#include <vector>

namespace llama2 {

/// The comparison of one run.
struct equivalence {
  quire::equivalence_report report = {};
  quire::nanosecond_count time{}; ///< Measured: computing every text once more, in one pass each.
};

/// Compares everything that \p s has said. \pre it has said something
[[nodiscard]] inline auto check_equivalence(service& s, network_shape const& shape) -> equivalence {
  auto largest = 0.0F;
  for (auto const& one : s.stories()) {
    for (auto const& row : one.rows) {
      for (auto const logit : row) { largest = std::max(largest, std::fabs(logit)); }
    }
  }
  auto const sums = quire::accumulation_error{.arithmetic = quire::dtype::f32,
                                              .terms = std::max(shape.hidden, shape.positions),
                                              .stages = 4 * std::uint64_t{shape.layers} + 1,
                                              .magnitude = static_cast<double>(largest)};
  auto checker = quire::equivalence_checker{{.accumulation = sums.bound()}}; // keys are stored as computed: no rounding
  auto const begin = quire::steady_clock{}.now();
  for (auto const& one : s.stories()) {
    if (one.rows.empty()) { continue; }
    auto text = one.ids;
    auto const& output = s.result(one).state.output;
    text.insert(text.end(), output.begin(), output.end() - 1);
    auto seq = s.cache().admit({.scope = s.scope(),
                                .prompt = text,
                                .max_output = quire::token_count{1},
                                .draft = quire::token_count{1}, // taken back below
                                .reuse = quire::reuse_rule::none});
    if (!seq) { throw input_error{"no room to compute a text once more: " + seq.error().message()}; }
    auto logits = std::vector<float>(one.rows.size() * s.net().vocabulary());
    auto wanted = std::vector<std::uint32_t>{};
    for (auto at = one.ids.size() - 1; at < text.size(); ++at) { wanted.push_back(static_cast<std::uint32_t>(at)); }
    auto const pass = [&](std::span<quire::token_id const> tokens, std::span<std::uint32_t const> rows,
                          std::span<float> out) {
      auto const item = service::cache_type::step_item{*seq, tokens};
      auto plan = s.cache().plan_step({&item, 1});
      auto const ready = plan && plan->results()[0].status == quire::errc::ok && s.net().run(plan->launch());
      auto views = std::vector<quire::batch_view>{};
      for (std::uint32_t g = 0; ready && g < s.cache().groups(); ++g) {
        views.push_back(plan->view(quire::group_id{g}));
      }
      if (!ready ||
          !s.net().forward({.view = plan->view(), .groups = views, .tokens = tokens, .wanted = rows, .logits = out}) ||
          !s.cache().commit(std::move(*plan))) {
        throw input_error{"a text could not be computed once more"};
      }
    };
    pass(text, wanted, logits);
    auto const width = s.net().vocabulary();
    for (std::size_t i = 0; i < one.rows.size(); ++i) {
      checker.compare(std::span<float const>{logits}.subspan(i * width, width), std::span<float const>{one.rows[i]});
    }
    if (text.size() < 2) { continue; }
    auto const spoiled = std::size_t{seq->blocks()[0].value()} * s.memory().block_tokens() * s.memory().width();
    auto const count = std::min<std::size_t>(s.memory().block_tokens(), text.size() - 1) * s.memory().width();
    for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
      if (shape.group(layer) != quire::group_id{0}) { continue; }
      std::fill_n(s.memory().keys(layer).begin() + static_cast<std::ptrdiff_t>(spoiled), count, 0.0F);
      std::fill_n(s.memory().values(layer).begin() + static_cast<std::ptrdiff_t>(spoiled), count, 0.0F);
    }
    if (!s.cache().drop_last(*seq, quire::token_count{1})) { throw input_error{"a text could not be cut"}; }
    auto faulty = std::vector<float>(width);
    std::uint32_t const last[] = {0};
    pass(std::span{text}.last(1), last, faulty);
    auto const exact = std::vector<double>(logits.end() - static_cast<std::ptrdiff_t>(width), logits.end());
    auto const wrong = std::vector<double>(faulty.begin(), faulty.end());
    checker.look_for(exact, wrong);
  }
  return {checker.report(), quire::steady_clock{}.now() - begin};
}

} // namespace llama2
