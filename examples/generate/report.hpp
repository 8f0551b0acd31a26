// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The same for machines.

#include "generate/equivalence.hpp"
#include "generate/input_error.hpp"
#include "generate/service.hpp"

#include <quire/attention/equivalence_report.hpp>
#include <quire/generate/stop_rules.hpp>
#include <quire/model/work.hpp>

#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

namespace llama2 {

/// Writes the report of a finished run. \throws input_error if the file cannot be written
inline auto write_report(std::string const& path, service& s, network_shape const& shape, equivalence const& e)
    -> void {
  auto const work_json = [](quire::work const& w) {
    return nlohmann::json{{"positions", w.positions}, {"pairs", w.pairs}};
  };
  auto const& o = s.wanted();
  auto out = nlohmann::json{{"schema", 1}};
  out["model"] = {{"file", o.model.empty() ? "built-in" : o.model},
                  {"dim", shape.dim},
                  {"hidden", shape.hidden},
                  {"layers", shape.layers},
                  {"heads", shape.heads},
                  {"kv_heads", shape.kv_heads},
                  {"vocabulary", shape.vocabulary},
                  {"positions", shape.positions}};
  out["options"] = {{"block_tokens", o.block_tokens},
                    {"blocks", o.blocks},
                    {"outputs", o.outputs},
                    {"chunk", o.chunk},
                    {"draft", o.draft},
                    {"temperature", o.temperature},
                    {"top_k", o.top_k},
                    {"top_p", o.top_p},
                    {"seed", o.seed}};
  for (auto const& one : s.stories()) {
    auto const& r = s.result(one);
    auto row = nlohmann::json{{"prompt", one.prompt}, {"prompt_ids", one.ids}, {"output_ids", r.state.output}};
    row["text"] = s.words().decode({r.visible().begin(), r.visible().end()}, one.ids.back());
    row["ended_by"] = quire::name_of(r.reason);
    row["found"] = r.cached.value();
    row["covered"] = r.covered.value();
    row["computed"] = work_json(r.computed);
    row["recompute"] = work_json(r.recompute);
    row["drafted"] = r.drafted.value();
    row["accepted"] = r.accepted.value();
    auto const& t = r.times;
    row["measured_ns"] = {{"queue", t.queue() ? nlohmann::json(t.queue()->value()) : nlohmann::json()},
                          {"ttft", t.ttft() ? nlohmann::json(t.ttft()->value()) : nlohmann::json()},
                          {"tpot", t.tpot() ? nlohmann::json(*t.tpot()) : nlohmann::json()},
                          {"end_to_end", t.end_to_end() ? nlohmann::json(t.end_to_end()->value()) : nlohmann::json()}};
    out["prompts"].push_back(row);
  }
  auto const stats = s.cache().statistics();
  auto const [held, unshared] = s.peak();
  auto const pool = s.cache().figures(quire::group_id{0});
  out["pool"] = {{"capacity", pool.capacity.value()},   {"peak_held", held},
                 {"peak_unshared", unshared},           {"cached", pool.published.value()},
                 {"hit_tokens", stats.hit_tokens},      {"evicted_blocks", stats.evicted_blocks},
                 {"copied_blocks", stats.copied_blocks}};
  out["computed"] = work_json(s.generator().computed());
  out["recompute"] = work_json(s.generator().recompute());
  auto const& r = e.report;
  out["equivalence"] = {{"verdict", quire::name_of(r.verdict)},
                        {"rows", r.rows},
                        {"max_abs", r.max_abs},
                        {"max_rel", r.max_rel},
                        {"max_kl", r.max_kl},
                        {"flips", r.flips.size()},
                        {"bound", r.bound.total()},
                        {"effect", r.effect},
                        {"worst_row", r.worst_row},
                        {"measured_ns", e.time.value()}};
  auto file = std::ofstream{path};
  file << out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  if (!file.flush()) { throw input_error{path + ": cannot be written"}; }
}

} // namespace llama2
