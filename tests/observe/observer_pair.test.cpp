// SPDX-License-Identifier: Apache-2.0
#include <quire/observe/observer_pair.hpp>

#include <quire/observe/counting_observer.hpp>
#include <quire/observe/null_observer.hpp>

#include "support/catch_compat.hpp"

#include <string>
#include <vector>

namespace {
using namespace quire;

// Writes down who was told what.
struct scribe {
  std::vector<std::string>* log = nullptr;
  char name = '?';
  void note(char const* what) noexcept { log->push_back(std::string{name} + what); }
  void on_admit(admit_event const&) noexcept { note(" admit"); }
  void on_commit(commit_event const& e) noexcept { note(e.length == token_count{5} ? " commit 5" : " commit"); }
  void on_publish(publish_event const&) noexcept { note(" publish"); }
  void on_evict(evict_event const&) noexcept { note(" evict"); }
  void on_release(release_event const&) noexcept { note(" release"); }
  void on_refuse(refuse_event const&) noexcept { note(" refuse"); }
};
} // namespace

TEST_CASE("S44: a pair tells both, the first one first, every event") {
  auto log = std::vector<std::string>{};
  auto pair = observer_pair<scribe, observer_pair<scribe, counting_observer>>{scribe{&log, 'a'},
                                                                              {scribe{&log, 'b'}, counting_observer{}}};
  pair.on_admit({});
  pair.on_commit({.length = token_count{5}});
  pair.on_publish({});
  pair.on_evict({});
  pair.on_release({});
  pair.on_refuse({});
  CHECK(log == std::vector<std::string>{"a admit", "b admit", "a commit 5", "b commit 5", "a publish", "b publish",
                                        "a evict", "b evict", "a release", "b release", "a refuse", "b refuse"});
  auto const& counts = pair.second().second().statistics();
  CHECK(counts == cache_statistics{.admissions = 1, .refusals = 1, .releases = 1});
}
