// SPDX-License-Identifier: Apache-2.0
// Every role of a cache filled by a model that has nothing but what its concept asks for: one cache lives on all of them at
// once. And a struct of policies is refused as a whole if one of them is.
#include <quire/block/concepts.hpp>
#include <quire/cache/admission.hpp>
#include <quire/cache/concepts.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/cache/policies.hpp>
#include <quire/core/transition_table.hpp>
#include <quire/core/types.hpp>
#include <quire/model/resident_range.hpp>
#include <quire/observe/events.hpp>
#include <quire/prefix/concepts.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/lru_eviction.hpp>
#include <quire/prefix/run_tree.hpp>

#include "storage/group_fixture.hpp"
#include "support/catch_compat.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::group_engine;

// --- one archetype per role --------------------------------------------------------------------------------------------
class first_free {
public:
  explicit first_free(block_count blocks) : taken_(blocks.value()) {}
  first_free(first_free&&) = default; // no copies
  auto operator=(first_free&&) -> first_free& = default;
  auto take() noexcept -> block_id {
    for (std::uint32_t b = 0; b < taken_.size(); ++b) {
      if (!taken_[b]) {
        taken_[b] = true;
        return block_id{b};
      }
    }
    return block_id::none();
  }
  auto take(std::span<block_id> out) noexcept -> block_count {
    std::uint32_t n = 0;
    for (; n < out.size() && available() != block_count{0}; ++n) { out[n] = take(); }
    return block_count{n};
  }
  auto give(block_id block) noexcept -> void { taken_[block.value()] = false; }
  auto available() const noexcept -> block_count {
    std::uint32_t n = 0;
    for (auto const taken : taken_) { n += taken ? 0U : 1U; }
    return block_count{n};
  }

private:
  std::vector<bool> taken_;
};

struct bare_digest {
  struct digest_type {
    std::uint32_t value = 0;
    friend auto operator==(digest_type const&, digest_type const&) -> bool = default;
  };
  static constexpr auto scheme() noexcept -> std::string_view { return "bare"; }
  auto root(std::span<std::byte const> scope) const noexcept -> digest_type {
    return {static_cast<std::uint32_t>(scope.size())};
  }
  auto chain(digest_type parent, std::span<token_id const> unit) const noexcept -> digest_type {
    return {parent.value * 31 + static_cast<std::uint32_t>(unit[0])};
  }
  auto locate(std::uint64_t seed, std::span<token_id const> unit) const noexcept -> std::uint32_t {
    return static_cast<std::uint32_t>(seed) + static_cast<std::uint32_t>(unit[0]);
  }
};

class bare_eviction {
public:
  static constexpr bool leaves_only = false;
  static constexpr bool counts_uses = true;
  static constexpr std::uint32_t max_run = 4;
  explicit bare_eviction(node_count nodes) : order_{nodes} {}
  bare_eviction(bare_eviction&&) = delete;
  auto create(node_id node, node_id parent) noexcept -> void { order_.create(node, parent); }
  auto use(node_id node) noexcept -> void { order_.use(node); }
  template <class Nodes>
  auto enter(Nodes& nodes, node_id node) noexcept -> void {
    order_.enter(nodes, node);
  }
  template <class Nodes>
  auto leave(Nodes& nodes, node_id node) noexcept -> void {
    order_.leave(nodes, node);
  }
  template <class Nodes>
  auto split(Nodes& nodes, node_id suffix, node_id prefix, bool idle) noexcept -> void {
    order_.split(nodes, suffix, prefix, idle);
  }
  template <class Nodes>
  auto merge(Nodes& nodes, node_id parent, node_id child) noexcept -> void {
    order_.merge(nodes, parent, child);
  }
  auto may_extend(node_id node, bool owned) const noexcept -> bool { return order_.may_extend(node, owned); }
  auto may_merge(node_id parent, node_id child) const noexcept -> bool { return order_.may_merge(parent, child); }
  auto victim() const noexcept -> node_id { return order_.victim(); }

private:
  lru_eviction order_;
};

// All that `prefix_index` names, and nothing else.
template <class Eviction, class Digest>
class bare_index {
  using inner = run_tree<Eviction, Digest>;

public:
  using digest_policy_type = Digest;
  bare_index(unit_count units, token_count tokens, Digest digest) : in_{units, tokens, digest} {}
  auto open_root(std::span<std::byte const> scope) -> node_id { return in_.open_root(scope); }
  auto close_root(node_id root) noexcept -> void { in_.close_root(root); }
  auto close_roots() noexcept -> void { in_.close_roots(); }
  auto take_unit() noexcept -> unit_id { return in_.take_unit(); }
  auto share_unit(unit_id unit) -> void { in_.share_unit(unit); }
  auto drop_unit(unit_id unit) -> void { in_.drop_unit(unit); }
  auto drop_units(std::span<unit_id const> units) -> void { in_.drop_units(units); }
  auto holders(unit_id unit) const -> std::uint32_t { return in_.holders(unit); }
  auto published(unit_id unit) const noexcept -> bool { return in_.published(unit); }
  auto free_units() const noexcept -> unit_count { return in_.free_units(); }
  auto capacity() const noexcept -> unit_count { return in_.capacity(); }
  auto match(node_id root, std::span<token_id const> text, std::span<unit_id> out) const noexcept -> prefix_match {
    return in_.match(root, text, out);
  }
  auto would_pin(prefix_match const& match) const noexcept -> unit_count { return in_.would_pin(match); }
  auto would_release(prefix_pin const& pin, unit_count n) const noexcept -> unit_count {
    return in_.would_release(pin, n);
  }
  auto pin(prefix_match const& match) -> prefix_pin { return in_.pin(match); }
  auto pin_back(prefix_pin const& pin, unit_count n) -> prefix_pin { return in_.pin_back(pin, n); }
  auto publish(prefix_pin& pin, std::span<unit_id const> units) -> publish_result { return in_.publish(pin, units); }
  auto adopt(prefix_pin& pin, unit_id unit) -> void { in_.adopt(pin, unit); }
  auto release(prefix_pin&& pin) -> void { in_.release(std::move(pin)); }
  auto evict(std::span<unit_id> out) noexcept -> unit_count { return in_.evict(out); }
  template <class Sink>
  auto remove(std::span<std::uint8_t> doomed, Sink sink) -> void {
    in_.remove(doomed, sink);
  }
  template <class Visit>
  auto for_each_node(Visit visit) const -> void {
    in_.for_each_node(visit);
  }
  auto audit(std::span<std::uint32_t const> pins) const -> std::string { return in_.audit(pins); }
  auto tokens(unit_id unit) noexcept -> std::span<token_id> { return in_.tokens(unit); }
  auto tokens(unit_id unit) const noexcept -> std::span<token_id const> { return in_.tokens(unit); }
  auto token_at(std::int64_t place) noexcept -> token_id& { return in_.token_at(place); }
  auto eviction() noexcept -> Eviction& { return in_.eviction(); }
  auto evictable() const noexcept -> unit_count { return in_.evictable(); }
  auto cached() const noexcept -> unit_count { return in_.cached(); }
  auto hash_collisions() const noexcept -> std::uint64_t { return in_.hash_collisions(); }
  auto metadata_bytes() const noexcept -> byte_count { return in_.metadata_bytes(); }

private:
  inner in_;
};

class bare_admission {
public:
  bare_admission() = default;
  bare_admission(bare_admission&&) = default; // no copies
  auto operator=(bare_admission&&) -> bare_admission& = default;
  auto admits(admission_query const& q) const noexcept -> bool {
    return q.in_total.value() + q.promised.value() <= q.available.value();
  }
};

struct bare_copy {
  static constexpr bool allowed = true;
  static auto copy(group_id group, block_id source, block_id target, token_count valid, token_count) noexcept
      -> action {
    return action::copy_block(group, source, target, valid);
  }
};

struct bare_retention {
  static auto resident(token_pos query, retention const& keeps, token_count block) -> resident_blocks {
    return resident_range(query, keeps, block);
  }
  static auto earliest_resumable(token_pos target, position_interval present, retention const& keeps)
      -> std::optional<token_pos> {
    return quire::earliest_resumable(target, present, keeps);
  }
  static auto peak_blocks(retention const& keeps, token_count length, paging pages) -> block_count {
    return quire::peak_blocks(keeps, length, pages);
  }
};

// A state and an event more than it needs, in another order.
struct bare_block_states {
  enum class state : std::uint8_t { free, published, parked, retiring, private_, writing, count_ };
  enum class event : std::uint8_t { reclaim, retire, evict, park, unpublish, publish, commit, allocate, count_ };
  static constexpr transition<state, event> edges[] = {
      {state::free, event::allocate, state::writing},        {state::writing, event::commit, state::private_},
      {state::writing, event::retire, state::retiring},      {state::private_, event::publish, state::published},
      {state::private_, event::retire, state::retiring},     {state::private_, event::park, state::parked},
      {state::published, event::unpublish, state::private_}, {state::published, event::evict, state::retiring},
      {state::retiring, event::reclaim, state::free},
  };
  static constexpr transition_table<state, event> table{edges};
};

struct bare_request_states {
  enum class state : std::uint8_t { over, running, waiting, count_ };
  enum class event : std::uint8_t { start, decode, preempt, finish, cancel, time_out, release, count_ };
  static constexpr transition<state, event> edges[] = {
      {state::waiting, event::start, state::running}, {state::waiting, event::decode, state::running},
      {state::running, event::start, state::running}, {state::running, event::decode, state::running},
      {state::waiting, event::finish, state::over},   {state::running, event::finish, state::over},
      {state::waiting, event::cancel, state::over},   {state::running, event::cancel, state::over},
      {state::waiting, event::time_out, state::over}, {state::running, event::time_out, state::over},
      {state::running, event::preempt, state::over},  {state::over, event::release, state::over},
  };
  static constexpr transition_table<state, event> table{edges};
};

class bare_fence {
public:
  static constexpr std::size_t timelines = 1;
  auto issue(timeline_id) noexcept -> ticket { return ticket{++issued_}; }
  auto issued(timeline_id) const noexcept -> ticket { return ticket{issued_}; }
  auto reached(timeline_id, ticket until) const noexcept -> bool { return until.value() <= issued_; }

private:
  std::uint64_t issued_ = 0;
};

struct bare_lock {
  inline static int locked = 0;
  inline static int unlocked = 0;
  bare_lock() = default;
  bare_lock(bare_lock&&) = delete;
  void lock() { ++locked; }
  void unlock() { ++unlocked; }
};

class bare_observer {
public:
  inline static int events = 0;
  bare_observer() = default;
  bare_observer(bare_observer&&) = default; // no copies
  auto operator=(bare_observer&&) -> bare_observer& = default;
  auto on_admit(admit_event const&) noexcept -> void { ++events; }
  auto on_commit(commit_event const&) noexcept -> void { ++events; }
  auto on_publish(publish_event const&) noexcept -> void { ++events; }
  auto on_evict(evict_event const&) noexcept -> void { ++events; }
  auto on_release(release_event const&) noexcept -> void { ++events; }
  auto on_refuse(refuse_event const&) noexcept -> void { ++events; }
};

struct bare_policies { // derives from nothing
  using allocation = first_free;
  using digest = bare_digest;
  using eviction = bare_eviction;
  template <class Eviction, class Digest>
  using index = bare_index<Eviction, Digest>;
  using admission = bare_admission;
  using copy = bare_copy;
  using retention = bare_retention;
  using block_states = bare_block_states;
  using request_states = bare_request_states;
  using fence = bare_fence;
  using lock = bare_lock;
  using observer = bare_observer;
};
static_assert(cache_policies<bare_policies>);
static_assert(cache_policies<default_policies>);

// --- a struct of policies is refused as a whole ------------------------------------------------------------------------
static_assert(!cache_policies<int>);
static_assert(!cache_policies<void>);
struct nothing {};
static_assert(!cache_policies<nothing>);
#define QUIRE_TEST_ROLE(role)                   \
  struct wrong_##role : default_policies {      \
    using role = int;                           \
  };                                            \
  struct hidden_##role : default_policies {     \
  private:                                      \
    using role = default_policies::role;        \
  };                                            \
  static_assert(!cache_policies<wrong_##role>); \
  static_assert(!cache_policies<hidden_##role>)
QUIRE_TEST_ROLE(allocation);
QUIRE_TEST_ROLE(digest);
QUIRE_TEST_ROLE(eviction);
QUIRE_TEST_ROLE(admission);
QUIRE_TEST_ROLE(copy);
QUIRE_TEST_ROLE(retention);
QUIRE_TEST_ROLE(block_states);
QUIRE_TEST_ROLE(request_states);
QUIRE_TEST_ROLE(fence);
QUIRE_TEST_ROLE(lock);
QUIRE_TEST_ROLE(observer);
#undef QUIRE_TEST_ROLE

struct index_of_nothing : default_policies {
  template <class, class>
  using index = nothing;
};
struct index_as_a_type : default_policies { // for one eviction and one digest
  using index = run_tree<>;
};
struct index_of_one_parameter : default_policies {
  template <class Eviction>
  using index = run_tree<Eviction>;
};
template <class Eviction, class Digest>
struct index_that_cannot_evict : bare_index<Eviction, Digest> {
  using bare_index<Eviction, Digest>::bare_index;
  auto evict(std::span<unit_id>) noexcept -> unit_count = delete;
};
struct index_incomplete : default_policies {
  template <class Eviction, class Digest>
  using index = index_that_cannot_evict<Eviction, Digest>;
};
struct index_flat : default_policies {
  template <class Eviction, class Digest>
  using index = flat_index<Eviction, Digest>;
};
static_assert(!cache_policies<index_of_nothing>);
static_assert(!cache_policies<index_as_a_type>);
static_assert(!cache_policies<index_of_one_parameter>);
static_assert(!cache_policies<index_incomplete>);
static_assert(cache_policies<index_flat>);

auto options_of(std::uint32_t blocks) -> cache_options {
  auto out = cache_options{};
  out.blocks = block_count{blocks};
  out.block_tokens = token_count{4};
  out.max_append = token_count{32};
  out.groups = {{.keeps = retention::full(), .blocks = {}, .block_tokens = {}, .block_bytes = {}},
                {.keeps = retention::sink_window({.sinks = token_count{4}, .window = token_count{8}}),
                 .blocks = block_count{64},
                 .block_tokens = {},
                 .block_bytes = {}}};
  return out;
}
} // namespace

TEST_CASE("S44: a cache lives on the archetypes of all roles together") {
  bare_lock::locked = bare_lock::unlocked = bare_observer::events = 0;
  {
    auto e = group_engine<bare_policies>{options_of(32)};
    auto r = e.serve(ascending(18), 4, 3); // up to three positions may be taken back
    e.step({{&r, {71}}});                  // decode
    auto twin = e.fork(r, 18);             // and copy
    e.step({{&r, {72}}, {&twin, {81}}});
    e.step({{&twin, {82}}});
    e.truncate(twin, 17);
    e.release(r);
    CHECK(e.hit(ascending(18)) == 16);
    auto again = e.serve(ascending(18), 2);
    REQUIRE(e.cache.preempt(again.seq).has_value());
    e.cache.cancel(std::move(twin.seq));
    for (auto i = 0; i < 12; ++i) { e.keep(ascending(20, 1000 * (i + 1))); } // and evict
    CHECK(e.cache.statistics().evicted_blocks > 0);
    e.cache.advance_epoch(running_requests::finish_privately);
    CHECK(e.hit(ascending(20, 12'000)) == 0);
    quire_test::check(e.cache);
    auto refused = e.ask(e.wanted(ascending(200), 1));
    CHECK_FALSE(refused.has_value());
  }
  CHECK(bare_lock::locked > 0);
  CHECK(bare_lock::locked == bare_lock::unlocked);
  CHECK(bare_observer::events > 0);
}
