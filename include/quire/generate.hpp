// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The whole generate room: the loop that feeds a model through a cache, its clocks, its choice of tokens and its guesses.
/// `quire/quire.hpp` does without it.

#include <quire/generate/concepts.hpp>
#include <quire/generate/forward_batch.hpp>
#include <quire/generate/generation_request.hpp>
#include <quire/generate/generation_result.hpp>
#include <quire/generate/generation_state.hpp>
#include <quire/generate/generator.hpp>
#include <quire/generate/generator_options.hpp>
#include <quire/generate/kept_outputs.hpp>
#include <quire/generate/lookup_drafter.hpp>
#include <quire/generate/manual_clock.hpp>
#include <quire/generate/no_clock.hpp>
#include <quire/generate/no_drafter.hpp>
#include <quire/generate/null_language_model.hpp>
#include <quire/generate/random_state.hpp>
#include <quire/generate/steady_clock.hpp>
#include <quire/generate/stop_rules.hpp>
#include <quire/generate/token_sampler.hpp>
#include <quire/generate/types.hpp>
