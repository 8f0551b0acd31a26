// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The generations of one generator, by name, from their submission until they are taken.
///
///     id    [ serial : 32 | index : 32 ]     an index is used again, a serial is not

#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/generation_request.hpp>
#include <quire/generate/generation_result.hpp>
#include <quire/generate/types.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility> // std::exchange, std::move
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// Owns the records and makes their names; a record never moves.
template <class Record>
class generation_registry {
public:
  /// A new generation, which neither waits nor runs yet. \param guesses [tokens] at most in one step
  auto add(generation_request request, instant now, token_count guesses) -> Record& {
    auto m = std::make_unique<Record>();
    m->result.times.entry = request.entry.value_or(now);
    m->result.state = std::exchange(request.state, {});
    auto& s = m->result.state;
    m->text.reserve(s.prompt.size() + s.stop.limit.value()); // recording an output must not fail
    m->text.insert(m->text.end(), s.prompt.begin(), s.prompt.end());
    m->text.insert(m->text.end(), s.output.begin(), s.output.end());
    s.output.reserve(s.stop.limit.value());
    m->guesses.reserve(guesses.value());
    m->request = std::move(request);
    if (vacant_.empty()) {
      records_.emplace_back();
      vacant_.push_back(static_cast<std::uint32_t>(records_.size() - 1));
    }
    if (m->request.time_limit) { limited_.push_back(m.get()); }
    auto const index = vacant_.back();
    vacant_.pop_back();
    m->id = generation_id{(++serials_ << 32U) | index};
    records_[index] = std::move(m);
    return *records_[index];
  }
  /// \pre it was not taken
  [[nodiscard]] auto record_of(generation_id id) const -> Record& {
    QUIRE_EXPECTS(index_of(id) < records_.size());
    auto* const m = records_[index_of(id)].get();
    QUIRE_EXPECTS(m != nullptr && m->id == id);
    return *m;
  }
  /// Hands out a result and forgets the generation. \pre it is over and was not taken
  [[nodiscard]] auto take(generation_id id) -> generation_result {
    auto& m = record_of(id);
    QUIRE_EXPECTS(m.result.over());
    if (m.request.time_limit) { std::erase(limited_, &m); }
    auto out = std::move(m.result);
    records_[index_of(id)].reset();
    vacant_.push_back(static_cast<std::uint32_t>(index_of(id)));
    return out;
  }

  /// True if somebody may run out of time: only then is it worth to look at a clock.
  [[nodiscard]] auto has_limits() const noexcept -> bool { return !limited_.empty(); }
  /// One that has had its time; nothing if there is none. Whoever is told ends it.
  [[nodiscard]] auto late(instant now) -> Record* {
    std::erase_if(limited_, [](auto const* m) { return m->result.over(); });
    for (auto* const m : limited_) {
      if (now >= m->result.times.entry + *m->request.time_limit) { return m; }
    }
    return nullptr;
  }

private:
  [[nodiscard]] static auto index_of(generation_id id) noexcept -> std::size_t {
    return static_cast<std::size_t>(id.value() & 0xffff'ffffU);
  }

  std::vector<std::unique_ptr<Record>> records_;
  std::vector<std::uint32_t> vacant_; // indices of those that were taken
  std::vector<Record*> limited_;      // those with a time limit
  std::uint64_t serials_ = 0;
};
/// \endcond

} // namespace quire::detail
