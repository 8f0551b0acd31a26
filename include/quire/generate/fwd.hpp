// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Declarations of the generate room, with the default template arguments.

#include <cstdint>

namespace quire {

class manual_clock;
struct no_clock;
struct steady_clock;

class lookup_drafter;
struct no_drafter;

struct forward_batch;
struct null_language_model;

class kept_outputs;
class random_state;
struct sampling_options;
class token_sampler;

enum class last_output_rule : std::uint8_t;
enum class stop_reason : std::uint8_t;
struct stop_rules;

struct emitted_token;
struct generation_refusal;
struct generation_request;
struct generation_result;
struct generation_state;
struct generation_times;
struct generator_options;

template <class Cache, class Model, class Clock = steady_clock, class Drafter = no_drafter>
class generator;

} // namespace quire
