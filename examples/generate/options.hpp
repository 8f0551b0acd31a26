// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What the user asked for.

#include <cstdint>
#include <string>
#include <vector>

namespace llama2 {

/// Options of the program.
struct options {
  std::string model = {};                ///< Checkpoint; empty = the built-in network.
  std::string tokenizer = {};            ///< Its vocabulary.
  std::vector<std::string> prompts = {}; ///< Texts to go on with.
  std::string json = {};                 ///< Where to write the report for machines.
  std::string retention = "full";        ///< What the odd layers see and keep: full, window:W, sinks:S:W or chunk:C.
  std::uint32_t block_tokens = 8;        ///< p_b.
  std::uint32_t blocks = 192;            ///< Blocks of the pool.
  std::uint32_t outputs = 64;            ///< G, at most.
  std::uint32_t chunk = 0;               ///< [tokens] of a prompt per step; 0 = all.
  std::uint32_t draft = 0;               ///< [tokens] guessed per step.
  double temperature = 0.0;
  std::uint32_t top_k = 0;
  double top_p = 1.0;
  std::uint64_t seed = 1;
  bool plain = false; ///< No animation.
};

} // namespace llama2
