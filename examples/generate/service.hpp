// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Everything that serves prompts: a cache, its bytes, a network on them, and the loop.

#include "generate/checkpoint.hpp"
#include "generate/cpu_attention.hpp"
#include "generate/input_error.hpp"
#include "generate/network.hpp"
#include "generate/options.hpp"
#include "generate/paged_memory.hpp"
#include "generate/stopwatch.hpp"
#include "generate/tokenizer.hpp"

#include <quire/attention/cpu_backend.hpp>
#include <quire/cache/cache_options.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/generator.hpp>
#include <quire/generate/lookup_drafter.hpp>
#include <quire/generate/types.hpp>
#include <quire/identity/compute_identity.hpp>
#include <quire/identity/content_digest.hpp>
#include <quire/identity/sharing_domain.hpp>

#include <algorithm> // std::copy_n, std::min
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility> // std::pair
#include <vector>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

namespace llama2 {

/// A digest of content: XXH3 under two seeds. An engine that takes files from strangers uses SHA-256.
[[nodiscard]] inline auto digest_of(std::span<std::byte const> bytes) -> quire::content_digest {
  auto out = std::array<std::byte, quire::content_digest::size>{};
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    auto canonical = XXH128_canonical_t{};
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed + 1));
    std::copy_n(std::as_bytes(std::span{canonical.digest}).begin(), 16,
                out.begin() + static_cast<std::ptrdiff_t>(16 * seed));
  }
  return quire::content_digest{out};
}

/// Everything that cached bytes depend on (S33).
[[nodiscard]] inline auto identity_of(checkpoint const& file, tokenizer const& words,
                                      std::string const& retention = "full") -> quire::compute_identity {
  auto text = std::string{};
  for (auto const& token : words.tokens()) { text += token.text + '\n'; }
  auto const& s = file.shape();
  std::uint32_t const shape[] = {s.dim, s.hidden, s.layers, s.heads, s.kv_heads, s.vocabulary, s.positions};
  return quire::compute_identity{{.weights = quire::weights_digest{digest_of(std::as_bytes(file.values()))},
                                  .structure = quire::structure_digest{digest_of(std::as_bytes(std::span{shape}))},
                                  .tokenizer = quire::tokenizer_digest{digest_of(std::as_bytes(std::span{text}))},
                                  .prompt_template = quire::prompt_template_digest::none(),
                                  .adapters = quire::adapter_list::none(),
                                  .precision = quire::compute_precision{"f32"},
                                  .format = quire::cache_format::exact("f32"),
                                  .positions = quire::position_config{rotation_of(s).canonical_bytes()},
                                  .attention = quire::visibility_rule{"causal, odd layers " + retention},
                                  .conditions = quire::external_conditions::none()}};
}

/// One prompt on its way.
struct story {
  std::string prompt;
  std::vector<quire::token_id> ids = {};
  quire::generation_id id{};              ///< None before it has arrived.
  std::vector<std::vector<float>> rows{}; ///< Logits that its outputs were chosen from.
};

/// The service.
class service {
public:
  using cache_type = quire::kv_cache<>;
  using network_type = network<quire::cpu_backend>;
  using generator_type = quire::generator<cache_type, network_type, stopwatch, quire::lookup_drafter>;

  /// Serves \p file, whose words are \p words; both outlive it. \throws quire::config_error if an option is impossible
  service(checkpoint const& file, tokenizer const& words, options const& wanted)
      : options_{wanted}, words_{&words}, cache_{cache_options_of(wanted, file.shape())},
        scope_{cache_.open_scope(identity_of(file, words, wanted.retention),
                                 quire::sharing_domain::public_grant(quire::grant_id{"demo"}))},
        memory_{file.shape(), cache_.figures(quire::group_id{0}).capacity, cache_.block_tokens()},
        attention_{cpu_attention(file.shape(), memory_, cache_.figures(quire::group_id{0}).capacity)},
        network_{file, attention_},
        generator_{
            cache_, network_, {.chunk = quire::token_count{wanted.chunk}, .draft = quire::token_count{wanted.draft}}} {
    for (auto const& prompt : wanted.prompts) { stories_.push_back({prompt, words.encode(prompt)}); }
  }
  service(service const&) = delete;
  auto operator=(service const&) -> service& = delete;

  /// Generates; calls \p watch() after each step, while the clock stands still. A prompt arrives every step, so that the
  /// later ones find what the earlier ones have computed. \throws input_error if a prompt cannot be served
  template <class Watch>
  auto run(Watch watch) -> void {
    for (std::size_t arrived = 0; arrived < stories_.size() || !generator_.idle();) {
      if (arrived < stories_.size()) { submit(stories_[arrived++]); }
      auto const out = generator_.step();
      if (!out) { throw input_error{"a step was refused: " + std::string{quire::message(out.error())}}; }
      generator_.time_source().pause();
      for (auto const& e : *out) {
        for (auto& s : stories_) {
          if (s.id == e.of) { s.rows.emplace_back(e.logits.begin(), e.logits.end()); }
        }
      }
      note_blocks();
      watch();
      generator_.time_source().resume();
    }
  }

  [[nodiscard]] auto stories() const noexcept -> std::span<story const> { return stories_; }
  [[nodiscard]] auto result(story const& s) const -> quire::generation_result const& { return generator_.result(s.id); }
  [[nodiscard]] auto words() const noexcept -> tokenizer const& { return *words_; }
  [[nodiscard]] auto wanted() const noexcept -> options const& { return options_; }
  [[nodiscard]] auto generator() const noexcept -> generator_type const& { return generator_; }
  [[nodiscard]] auto cache() noexcept -> cache_type& { return cache_; }
  [[nodiscard]] auto memory() noexcept -> paged_memory& { return memory_; }
  [[nodiscard]] auto net() noexcept -> network_type& { return network_; }
  [[nodiscard]] auto scope() const noexcept -> quire::scope_number { return scope_; }

  /// How many sequences hold each block of \p group now.
  [[nodiscard]] auto holders(quire::group_id group = quire::group_id{0}) const -> std::vector<std::uint32_t> {
    auto out = std::vector<std::uint32_t>(cache_.figures(group).capacity.value());
    for (auto const id : generator_.running()) {
      for (auto const block : generator_.sequence_of(id)->blocks(group)) {
        if (block) { ++out[block.value()]; }
      }
    }
    return out;
  }
  /// [blocks] that sequences held at the fullest moment, and that they would have held without sharing.
  [[nodiscard]] auto peak() const noexcept -> std::pair<std::uint32_t, std::uint32_t> { return peak_; }

private:
  static auto cache_options_of(options const& o, network_shape const& shape) -> quire::cache_options {
    auto out = quire::cache_options{};
    out.groups = shape.groups();
    out.blocks = quire::block_count{o.blocks};
    out.block_tokens = quire::token_count{o.block_tokens};
    return out;
  }
  auto submit(story& s) -> void {
    auto const positions = std::size_t{network_.max_positions().value()};
    auto const room = s.ids.size() > positions ? 1 : static_cast<std::uint32_t>(positions + 1 - s.ids.size());
    auto const id = generator_.submit(
        {.scope = scope_,
         .state = {
             .prompt = s.ids,
             .sampling = {.temperature = options_.temperature, .top_k = options_.top_k, .top_p = options_.top_p},
             .random = quire::random_state{options_.seed}.sibling(static_cast<std::uint64_t>(&s - stories_.data())),
             .stop = {.limit = quire::token_count{std::min(options_.outputs, room)}, .end_tokens = {begin_token}}}});
    if (!id) {
      auto const start = s.prompt.size() > 40 ? s.prompt.substr(0, 40) + "…" : s.prompt;
      throw input_error{"prompt \"" + start + "\": " + id.error().message};
    }
    s.id = *id;
  }
  auto note_blocks() -> void {
    std::uint32_t held = 0;
    std::uint32_t unshared = 0;
    for (auto const n : holders()) {
      held += n > 0 ? 1U : 0U;
      unshared += n;
    }
    if (unshared > peak_.second) { peak_ = {held, unshared}; }
  }

  options options_;
  tokenizer const* words_;
  cache_type cache_;
  quire::scope_number scope_;
  paged_memory memory_;
  quire::cpu_backend attention_;
  network_type network_;
  generator_type generator_;
  std::vector<story> stories_;
  std::pair<std::uint32_t, std::uint32_t> peak_{};
};

} // namespace llama2
