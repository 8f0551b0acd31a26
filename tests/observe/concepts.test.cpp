// SPDX-License-Identifier: Apache-2.0
#include <quire/observe/concepts.hpp>

#include <quire/observe/counting_observer.hpp>
#include <quire/observe/null_observer.hpp>
#include <quire/observe/observer_pair.hpp>

#include "support/catch_compat.hpp"

#include <type_traits>
#include <utility>

namespace {
using namespace quire;

// The least that an observer can be: movable, nothing else.
struct observer_archetype {
  explicit observer_archetype(int) {}
  observer_archetype(observer_archetype&&) = default;
  auto operator=(observer_archetype&&) -> observer_archetype& = default;
  void on_admit(admit_event const&) noexcept { ++told; }
  void on_commit(commit_event const&) noexcept { ++told; }
  void on_publish(publish_event const&) noexcept { ++told; }
  void on_evict(evict_event const&) noexcept { ++told; }
  void on_release(release_event const&) noexcept { ++told; }
  void on_refuse(refuse_event const&) noexcept { ++told; }
  int told = 0;
};

// Near misses: a model with one hook replaced. The hook that is named is hidden by the wrong one.
struct admit_may_throw : null_observer {
  void on_admit(admit_event const&) {}
};
struct commit_may_throw : null_observer {
  void on_commit(commit_event const&) {}
};
struct publish_may_throw : null_observer {
  void on_publish(publish_event const&) {}
};
struct evict_may_throw : null_observer {
  void on_evict(evict_event const&) {}
};
struct release_may_throw : null_observer {
  void on_release(release_event const&) {}
};
struct refuse_may_throw : null_observer {
  void on_refuse(refuse_event const&) {}
};
struct admit_missing : null_observer {
  void on_admit() noexcept {}
};
struct commit_missing : null_observer {
  void on_commit() noexcept {}
};
struct publish_missing : null_observer {
  void on_publish() noexcept {}
};
struct evict_missing : null_observer {
  void on_evict() noexcept {}
};
struct release_missing : null_observer {
  void on_release() noexcept {}
};
struct refuse_missing : null_observer {
  void on_refuse() noexcept {}
};
struct admit_returns : null_observer {
  auto on_admit(admit_event const&) noexcept -> bool { return true; }
};
struct commit_returns : null_observer {
  auto on_commit(commit_event const&) noexcept -> bool { return true; }
};
struct publish_returns : null_observer {
  auto on_publish(publish_event const&) noexcept -> bool { return true; }
};
struct evict_returns : null_observer {
  auto on_evict(evict_event const&) noexcept -> bool { return true; }
};
struct release_returns : null_observer {
  auto on_release(release_event const&) noexcept -> bool { return true; }
};
struct refuse_returns : null_observer {
  auto on_refuse(refuse_event const&) noexcept -> bool { return true; }
};
struct takes_mutable_event : null_observer {
  void on_commit(commit_event&) noexcept {}
};
struct takes_another_event : null_observer {
  void on_publish(evict_event const&) noexcept {}
};
struct not_movable : null_observer {
  not_movable() = default;
  not_movable(not_movable&&) = delete;
};

template <class O>
struct tell {
  static void all(O& o) {
    o.on_admit({});
    o.on_commit({});
    o.on_publish({});
    o.on_evict({});
    o.on_release({});
    o.on_refuse({});
  }
};
} // namespace

TEST_CASE("S44: observer accepts its models and the minimal archetype") {
  STATIC_REQUIRE(observer<null_observer>);
  STATIC_REQUIRE(observer<counting_observer>);
  STATIC_REQUIRE(observer<observer_pair<null_observer, counting_observer>>);
  STATIC_REQUIRE(observer<observer_archetype>);
  STATIC_REQUIRE(observer<observer_pair<observer_archetype, observer_pair<counting_observer, observer_archetype>>>);
}

TEST_CASE("S44: observer rejects near misses") {
  STATIC_REQUIRE_FALSE(observer<int>);
  STATIC_REQUIRE_FALSE(observer<admit_may_throw>);
  STATIC_REQUIRE_FALSE(observer<commit_may_throw>);
  STATIC_REQUIRE_FALSE(observer<publish_may_throw>);
  STATIC_REQUIRE_FALSE(observer<evict_may_throw>);
  STATIC_REQUIRE_FALSE(observer<release_may_throw>);
  STATIC_REQUIRE_FALSE(observer<refuse_may_throw>);
  STATIC_REQUIRE_FALSE(observer<admit_missing>);
  STATIC_REQUIRE_FALSE(observer<commit_missing>);
  STATIC_REQUIRE_FALSE(observer<publish_missing>);
  STATIC_REQUIRE_FALSE(observer<evict_missing>);
  STATIC_REQUIRE_FALSE(observer<release_missing>);
  STATIC_REQUIRE_FALSE(observer<refuse_missing>);
  STATIC_REQUIRE_FALSE(observer<admit_returns>);
  STATIC_REQUIRE_FALSE(observer<commit_returns>);
  STATIC_REQUIRE_FALSE(observer<publish_returns>);
  STATIC_REQUIRE_FALSE(observer<evict_returns>);
  STATIC_REQUIRE_FALSE(observer<release_returns>);
  STATIC_REQUIRE_FALSE(observer<refuse_returns>);
  STATIC_REQUIRE_FALSE(observer<takes_mutable_event>);
  STATIC_REQUIRE_FALSE(observer<takes_another_event>);
  STATIC_REQUIRE_FALSE(observer<not_movable>);
}

TEST_CASE("S44: the null observer takes no room") {
  STATIC_REQUIRE(std::is_empty_v<null_observer>);
  struct holder {
    [[no_unique_address]] null_observer watch = {};
    int value = 0;
  };
  STATIC_REQUIRE(sizeof(holder) == sizeof(int));
  STATIC_REQUIRE(sizeof(observer_pair<null_observer, counting_observer>) == sizeof(counting_observer));
  STATIC_REQUIRE(sizeof(observer_pair<counting_observer, null_observer>) == sizeof(counting_observer));
}

TEMPLATE_TEST_CASE("S44: observer conformance", "", null_observer, counting_observer,
                   (observer_pair<counting_observer, null_observer>),
                   (observer_pair<null_observer, observer_pair<counting_observer, null_observer>>)) {
  auto subject = TestType{};
  tell<TestType>::all(subject); // hooks take every event, empty ones too
  auto moved = std::move(subject);
  tell<TestType>::all(moved);
  SUCCEED();
}

TEST_CASE("S44: the minimal archetype works wherever an observer is taken") {
  using pair = observer_pair<observer_archetype, observer_archetype>;
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<pair>);
  auto both = pair{observer_archetype{1}, observer_archetype{2}};
  tell<pair>::all(both);
  CHECK(both.first().told == 6);
  CHECK(both.second().told == 6);
}
