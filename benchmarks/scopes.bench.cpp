// SPDX-License-Identifier: Apache-2.0

/// \file
/// Opening scopes among 100 000 whose keys have one length, beside the hash of the key: whoever looks for a key without
/// knowing it reads it once. `beyond` is what the table takes on top of that.
///
/// ```text
///   known_64, known_1000   the same ones in turn, as the tenants of an hour are
///   known_100K             all in random order, each out of the caches: beside the hash and a comparison with an equal key
///                          that lies elsewhere, which is the least that an exact look-up reads
///   new_100K               all from an empty table on, growth included; keys in the order in which they were made
/// ```

#include "cache_fixture.hpp"
#include "support.hpp"

#include <quire/cache/scope_table.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/compute_identity.hpp>
#include <quire/identity/digest_scheme.hpp>
#include <quire/identity/scope_key.hpp>
#include <quire/identity/sharing_domain.hpp>
#include <quire/identity/xxh3_128_digest.hpp>

#include <cstdint>
#include <cstring> // std::memcmp
#include <numeric> // std::iota
#include <random>
#include <string>
#include <vector>

namespace {

using namespace quire_bench;

constexpr std::uint32_t scopes = 100'000;

/// Keys of as many tenants.
auto keys() -> std::vector<quire::scope_key> const& {
  static auto const all = [] {
    std::vector<quire::scope_key> made;
    made.reserve(scopes);
    auto const identity = some_identity();
    for (std::uint32_t i = 0; i < scopes; ++i) {
      auto const domain = quire::sharing_domain::isolated(quire::tenant_id{std::to_string(scopes + i)},
                                                          quire::authorisation_domain{std::string{"project"}},
                                                          quire::domain_salt::none());
      made.emplace_back(quire::digest_scheme::of<quire::xxh3_128_digest>(), quire::token_count{16}, identity, domain);
    }
    return made;
  }();
  return all;
}

template <class Table>
auto open_all(Table& table) -> void {
  for (auto const& key : keys()) { keep(table.open(key)); }
}

/// What the rounds took beyond the hash of the key.
auto report_beyond(benchmark::State& state, result const& r, std::string const& goal) -> void {
  state.counters["beyond"] = r.ns - r.floor_ns;
  report(state, r, goal);
}

template <class Visit>
auto each(std::vector<std::uint32_t> const& order, Visit visit) -> double {
  return nanoseconds([&] {
    for (auto const i : order) { visit(i); }
  });
}
auto hash(std::uint32_t i) -> void { keep(quire::scope_hash{}(keys()[i].bytes())); }

/// Opens \p count of the scopes again, \p laps times a round.
auto known(std::uint32_t count, std::uint32_t laps, std::string goal) {
  return [=](benchmark::State& state) {
    quire::scope_table table;
    open_all(table);
    std::mt19937_64 random{count};
    auto const chosen = shuffled(random, scopes);
    std::vector<std::uint32_t> order;
    for (std::uint32_t lap = 0; lap < laps; ++lap) {
      order.insert(order.end(), chosen.begin(), chosen.begin() + count);
    }
    for (auto const i : order) { expect(table.open(keys()[i]).value() == i, "a scope has another number"); }
    auto const r = alternate(
        state, static_cast<double>(order.size()),
        [&] { return each(order, [&](auto i) { keep(table.open(keys()[i])); }); }, [&] { return each(order, hash); });
    report_beyond(state, r, goal);
  };
}

/// Opens every scope again, in random order.
auto known_cold(std::string goal) {
  return [=](benchmark::State& state) {
    quire::scope_table table;
    open_all(table);
    auto const copies = keys();
    std::mt19937_64 random{1};
    auto const order = shuffled(random, scopes);
    auto const r = alternate(
        state, scopes, [&] { return each(order, [&](auto i) { keep(table.open(keys()[i])); }); },
        [&] {
          return each(order, [&](auto i) {
            hash(i);
            keep(std::memcmp(keys()[i].bytes().data(), copies[i].bytes().data(), copies[i].bytes().size()));
          });
        });
    report_beyond(state, r, goal);
  };
}

/// Opens all scopes of an empty table.
auto fresh(std::string goal) {
  return [=](benchmark::State& state) {
    std::vector<std::uint32_t> order(scopes);
    std::iota(order.begin(), order.end(), 0U);
    auto const r = alternate(
        state, scopes,
        [&] {
          quire::scope_table table;
          return each(order, [&](auto i) { keep(table.open(keys()[i])); });
        },
        [&] { return each(order, hash); });
    report_beyond(state, r, goal);
  };
}

/// [bytes] a scope beside those of its key.
auto memory(std::string goal) {
  return [=](benchmark::State& state) {
    auto bytes = 0.0;
    for (auto _ : state) {
      quire::scope_table table;
      open_all(table);
      bytes = static_cast<double>(table.metadata_bytes().value()) / scopes;
      state.SetIterationTime(1e-9);
    }
    auto const key = static_cast<double>(keys()[0].bytes().size());
    state.counters["B_key"] = key;
    state.counters["B"] = bytes - key;
    set_goal(state, goal);
  };
}

[[maybe_unused]] auto const registered = add("scopes/known_64", 41, known(64, 1'000, "beyond<=100")) &&
                                         add("scopes/known_1000", 41, known(1'000, 64, "beyond<=100")) &&
                                         add("scopes/known_100K", 21, known_cold("ratio<=1.5")) &&
                                         add("scopes/new_100K", 21, fresh("ns<=2000")) &&
                                         add("scopes/memory_100K", 1, memory("B<=80"));

} // namespace
