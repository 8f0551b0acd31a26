// SPDX-License-Identifier: Apache-2.0

/// \file
/// Publishing the 512 full units of a new prompt while nobody reads digests: token copies, the node and its place in the
/// index. The floor copies the same tokens and unit numbers into place and does nothing else.

#include "prefix_fixture.hpp"
#include "support.hpp"

#include <quire/core/types.hpp>
#include <quire/identity/xxh3_128_digest.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace quire_bench;

constexpr std::uint32_t prompts = 100;
constexpr std::uint32_t all_units = 65'536;
constexpr std::size_t prompt_tokens = std::size_t{prompt_units} * unit_tokens;

using token_span = std::span<quire::token_id const>;

/// 100 prompts, new in every round.
class new_prompts {
public:
  auto renew() -> void { tokens_ = random_tokens(random_, prompts * prompt_tokens); }
  [[nodiscard]] auto at(std::uint32_t p) const -> token_span {
    return token_span{tokens_}.subspan(p * prompt_tokens, prompt_tokens);
  }

private:
  std::mt19937_64 random_{5};
  std::vector<quire::token_id> tokens_;
};

/// What cannot be left out: tokens where look-ups compare them (unless they were decoded there), numbers in a row.
class bare_copy {
public:
  auto place(token_span prompt, std::span<quire::unit_id const> units, bool written) -> void {
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (!written) {
        auto const from = prompt.subspan(i * unit_tokens, unit_tokens);
        std::copy(from.begin(), from.end(), tokens_.begin() + std::ptrdiff_t{units[i].value()} * unit_tokens);
      }
      numbers_[next_ + i] = units[i].value();
    }
    next_ = (next_ + prompt_units) % numbers_.size();
    benchmark::ClobberMemory();
  }

private:
  std::vector<quire::token_id> tokens_ = std::vector<quire::token_id>(std::size_t{all_units} * unit_tokens);
  std::vector<std::uint32_t> numbers_ = std::vector<std::uint32_t>(all_units);
  std::size_t next_ = 0;
};

auto goal(result const& r) -> std::string {
  std::ostringstream text;
  text << "ns<=" << std::fixed << std::setprecision(1) << 1.2 * r.floor_ns + 3 << " = 1.2 copies + 3";
  return text.str();
}

/// \param written the tokens are in their units already, as after decoding
auto publishing(bool written, unit_order order) {
  return [=](benchmark::State& state) {
    prefix_fixture<> fixture{all_units, order};
    bare_copy bare;
    new_prompts source;
    std::vector<quire::unit_id> units(prompt_units);
    std::vector<std::vector<quire::unit_id>> used(prompts);
    auto const work = [&] {
      source.renew();
      auto time = 0.0;
      for (std::uint32_t p = 0; p < prompts; ++p) {
        auto const prompt = source.at(p);
        auto pin = fixture.index.pin(fixture.index.match(fixture.root, prompt, units));
        fixture.allocate(units);
        used[p] = units;
        if (written) { fixture.write(prompt, units); }
        time += nanoseconds([&] {
          if (!written) { fixture.write(prompt, units); }
          fixture.publish(pin, units);
        });
        fixture.index.release(std::move(pin));
      }
      fixture.flush();
      if (order == unit_order::scattered) { fixture.scatter(); }
      return time;
    };
    auto const floor = [&] {
      auto time = 0.0;
      for (std::uint32_t p = 0; p < prompts; ++p) {
        time += nanoseconds([&] { bare.place(source.at(p), used[p], written); });
      }
      return time;
    };
    auto const r = alternate(state, prompts * prompt_units, work, floor);
    report(state, r, goal(r));
  };
}

/// The digest of a published path that nobody has asked for before, per unit, beside the bare chain.
auto digests(benchmark::State& state) {
  prefix_fixture<> fixture{all_units, unit_order::consecutive};
  new_prompts source;
  std::vector<quire::unit_id> units(prompt_units);
  auto const work = [&] {
    source.renew();
    auto time = 0.0;
    for (std::uint32_t p = 0; p < prompts; ++p) {
      auto const prompt = source.at(p);
      auto pin = fixture.index.pin(fixture.index.match(fixture.root, prompt, units));
      fixture.allocate(units);
      fixture.write(prompt, units);
      fixture.publish(pin, units);
      time += nanoseconds([&] { keep(fixture.index.digest(pin)); });
      fixture.index.release(std::move(pin));
    }
    fixture.flush();
    return time;
  };
  auto const floor = [&] {
    quire::xxh3_128_digest const policy;
    auto time = 0.0;
    for (std::uint32_t p = 0; p < prompts; ++p) {
      time += nanoseconds([&] {
        auto digest = policy.root({});
        for (std::size_t i = 0; i < prompt_units; ++i) {
          digest = policy.chain(digest, source.at(p).subspan(i * unit_tokens, unit_tokens));
        }
        keep(digest);
      });
    }
    return time;
  };
  report(state, alternate(state, prompts * prompt_units, work, floor), "ratio<=1.3 of the bare chain");
}

[[maybe_unused]] auto const registered =
    add("publish/new_prompt", 21, publishing(false, unit_order::consecutive)) &&
    add("publish/new_prompt_scattered", 21, publishing(false, unit_order::scattered)) &&
    add("publish/decoded_units", 21, publishing(true, unit_order::consecutive)) &&
    add("publish/digests_on_demand", 21, digests);

} // namespace
