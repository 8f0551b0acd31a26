// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The comparison mode: what independent simulators of these traces count. Every hash id is one block of 512 tokens, the
/// last one too; a prompt of n ids has 512·n + 1 tokens, so that all n can be hit; nothing is generated. A cache of N
/// blocks gets a pool of N + 1: N published ones and one for the last position.

#include "replay/input_error.hpp"
#include "replay/trace.hpp"

#include <string>

namespace replay {

/// Makes \p t a trace of whole blocks. \throws input_error if it has no hash ids
[[nodiscard]] inline auto whole_blocks(trace const& t) -> trace {
  if (!t.has_ids) { throw input_error{t.name + ": --whole-blocks needs a trace with hash_ids"}; }
  auto out = trace{.name = t.name, .has_ids = true};
  out.segments.reserve(t.segments.size() + t.requests.size());
  for (auto r : t.requests) {
    auto const first = out.segments.size();
    for (auto const& s : t.prompt_of(r)) { out.segments.push_back({s.text, trace::tokens_of_id}); }
    out.segments.push_back({own_text(r.number), 1});
    r.first_segment = first;
    r.prompt = trace::tokens_of_id * r.segments + 1;
    ++r.segments;
    r.output = 0;
    out.requests.push_back(r);
  }
  return out;
}

} // namespace replay
