// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What the parts of a generator share: one generation on its way, and what one step does for it.
///
/// ```text
///   text     [ prompt ………………… | output ………… ]        side by side, as steps want them
///   seq      [ length ………………………… ]                    committed
///   pending                      [ … ]              at least the last output, which no step has fed yet
///   guesses                            [ g g g ]    fed behind it, by count: nothing unverified is text
/// ```

#include <quire/core/errc.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/generation_request.hpp>
#include <quire/generate/generation_result.hpp>
#include <quire/generate/stop_rules.hpp>
#include <quire/generate/types.hpp>

#include <algorithm> // std::max, std::min
#include <cstdint>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// One generation, from its submission until it is taken. \tparam Sequence its hold on the cache
template <class Sequence>
struct generation_record {
  generation_id id{};
  generation_request request; // its state is in `result`
  generation_result result;
  Sequence seq{}; // while it runs
  std::vector<token_id> text{};
  std::vector<token_id> guesses{};
  std::vector<generation_record*> followers{}; // samples that wait for this one's prompt
  generation_record* leader = nullptr;         // whose prompt it waits for
  stop_reason closing = stop_reason::none;     // has all its outputs, forwards the last one
  std::uint64_t age = 0;
  bool queued_before = false; // its blocks were taken away
  bool drafts = true;         // the cache has room to take guesses back
  bool stray = false;         // wrong guesses stand in its sequence, and the cache refuses to cut them off

  /// [tokens] it may still say, at least 1.
  [[nodiscard]] auto outputs_left() const noexcept -> std::uint32_t {
    auto const limit = result.state.stop.limit.value();
    return limit - std::min(static_cast<std::uint32_t>(result.state.output.size()), limit - 1);
  }
  /// [tokens] of the text that no step has fed. \pre it runs
  [[nodiscard]] auto pending() const -> std::uint32_t {
    return static_cast<std::uint32_t>(text.size()) - seq.length().value();
  }
};

/// What one step does for one generation.
template <class Record>
struct step_row {
  Record* of;
  std::uint32_t length;    // before the step
  std::uint32_t tokens;    // q, guesses included
  std::uint32_t outputs;   // logits wanted: 0, 1, or 1 + guesses
  std::uint32_t first = 0; // number of the first of them
  errc status = errc::ok;
};
/// \endcond

} // namespace quire::detail
