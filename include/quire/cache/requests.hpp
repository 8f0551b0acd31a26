// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a caller asks for at admission.

#include <quire/core/types.hpp>

#include <cstdint>
#include <span>

namespace quire {

/// What a request may take from and give to the prefix index.
enum class reuse_rule : std::uint8_t {
  read_and_write, ///< Attach what is there, publish what is new.
  write_only,     ///< Compute every position (the caller needs all outputs), publish what is new.
  none,           ///< Neither.
};

/// What of its own work a request lets others find.
enum class publish_rule : std::uint8_t {
  all,    ///< Every full block.
  prompt, ///< Blocks that end in the prompt: outputs are private.
  none,   ///< Nothing.
};

/// A request for admission. Scope and prompt have no useful default: without a scope from `open_scope` the admission breaks
/// a contract, without a prompt it is refused.
struct admit_request {
  scope_number scope;                            ///< For whom and under which conditions; from `open_scope`.
  std::span<token_id const> prompt;              ///< P tokens, at least 1; read during the call only.
  token_count max_output{};                      ///< G, at least 1. P + G + draft positions are the budget.
  token_count draft{};                           ///< Speculative positions beyond that (B6).
  reuse_rule reuse = reuse_rule::read_and_write; ///< What it shares.
  publish_rule publish = publish_rule::all;      ///< What it gives; nothing anyway with `reuse_rule::none`.
  bool resumed = false;                          ///< It was preempted before: what it finds is its own work.
};

} // namespace quire
