// SPDX-License-Identifier: Apache-2.0
#include <quire/identity/compute_identity.hpp>

#include "isolation/identity_fixtures.hpp"
#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using quire::compute_identity;
using quire::compute_identity_fields;
using quire_test::some_adapter;
using quire_test::some_digest;
using quire_test::some_fields;

// None of the members has a default, so none can be left out of the braces (compile_fail/identity_missing_field.cpp).
static_assert(!std::is_default_constructible_v<compute_identity_fields>);
static_assert(!std::is_default_constructible_v<compute_identity>);
static_assert(!std::is_default_constructible_v<quire::weights_digest>);
static_assert(!std::is_default_constructible_v<quire::structure_digest>);
static_assert(!std::is_default_constructible_v<quire::tokenizer_digest>);
static_assert(!std::is_default_constructible_v<quire::prompt_template_digest>);
static_assert(!std::is_default_constructible_v<quire::adapter_list>);
static_assert(!std::is_default_constructible_v<quire::adapter>);
static_assert(!std::is_default_constructible_v<quire::adapter_scale>);
static_assert(!std::is_default_constructible_v<quire::compute_precision>);
static_assert(!std::is_default_constructible_v<quire::cache_format>);
static_assert(!std::is_default_constructible_v<quire::position_config>);
static_assert(!std::is_default_constructible_v<quire::visibility_rule>);
static_assert(!std::is_default_constructible_v<quire::external_conditions>);

// No two members have one type, and none converts into another.
template <class... Members>
struct distinct {
  template <class From>
  static constexpr int reachable = ((std::is_convertible_v<From, Members> ? 1 : 0) + ...);
  static constexpr bool value = ((reachable<Members> == 1) && ...);
};
static_assert(
    distinct<quire::weights_digest, quire::structure_digest, quire::tokenizer_digest, quire::prompt_template_digest,
             quire::adapter_list, quire::compute_precision, quire::cache_format, quire::position_config,
             quire::visibility_rule, quire::external_conditions>::value);
static_assert(!std::is_convertible_v<std::string, quire::compute_precision>);
static_assert(!std::is_convertible_v<double, quire::adapter_scale>);

// S34: what a request samples with has no place in the identity.
template <class T>
concept names_sampling = requires(T t) { t.temperature; } || requires(T t) { t.top_p; } || requires(T t) { t.top_k; } ||
                         requires(T t) { t.seed; } || requires(T t) { t.stop; } || requires(T t) { t.max_output; };
// S35: nor have names and places.
template <class T>
concept names_location = requires(T t) { t.name; } || requires(T t) { t.model; } || requires(T t) { t.path; } ||
                         requires(T t) { t.branch; } || requires(T t) { t.revision; };

// Number of members, by how many values the braces take.
struct anything {
  template <class T>
  operator T() const; // NOLINT(google-explicit-constructor): converts in braces only, never called
};
template <class T, std::size_t... I>
concept takes = requires(std::index_sequence<I...>) { T{(static_cast<void>(I), anything{})...}; };

// Every way to change one field, with what it shows.
struct change {
  char const* what;
  void (*apply)(compute_identity_fields&);
};
constexpr change changes[] = {
    {"weights", [](compute_identity_fields& f) { f.weights = quire::weights_digest{some_digest(11)}; }},
    {"structure", [](compute_identity_fields& f) { f.structure = quire::structure_digest{some_digest(12)}; }},
    {"tokenizer", [](compute_identity_fields& f) { f.tokenizer = quire::tokenizer_digest{some_digest(13)}; }},
    {"template",
     [](compute_identity_fields& f) { f.prompt_template = quire::prompt_template_digest::of(some_digest(14)); }},
    {"another template",
     [](compute_identity_fields& f) { f.prompt_template = quire::prompt_template_digest::of(some_digest(15)); }},
    {"adapter", [](compute_identity_fields& f) { f.adapters = quire::adapter_list::of({some_adapter(16, 1.0)}); }},
    {"another adapter",
     [](compute_identity_fields& f) { f.adapters = quire::adapter_list::of({some_adapter(17, 1.0)}); }},
    {"adapter scale",
     [](compute_identity_fields& f) { f.adapters = quire::adapter_list::of({some_adapter(16, 0.5)}); }},
    {"two adapters",
     [](compute_identity_fields& f) {
       f.adapters = quire::adapter_list::of({some_adapter(16, 1.0), some_adapter(17, 1.0)});
     }},
    {"their order",
     [](compute_identity_fields& f) {
       f.adapters = quire::adapter_list::of({some_adapter(17, 1.0), some_adapter(16, 1.0)});
     }},
    {"one twice",
     [](compute_identity_fields& f) {
       f.adapters = quire::adapter_list::of({some_adapter(16, 1.0), some_adapter(16, 1.0)});
     }},
    {"precision", [](compute_identity_fields& f) { f.precision = quire::compute_precision{"fp32"}; }},
    {"exact format", [](compute_identity_fields& f) { f.format = quire::cache_format::exact("fp16"); }},
    {"approximate format", [](compute_identity_fields& f) { f.format = quire::cache_format::approximate("fp8"); }},
    {"approximate format with the name of the exact one",
     [](compute_identity_fields& f) { f.format = quire::cache_format::approximate("bf16"); }},
    {"positions", [](compute_identity_fields& f) { f.positions = quire::position_config{"rope base=10000"}; }},
    {"attention", [](compute_identity_fields& f) { f.attention = quire::visibility_rule{"window 4096"}; }},
    {"conditions", [](compute_identity_fields& f) { f.conditions = quire::external_conditions::of(some_digest(18)); }},
    {"other conditions",
     [](compute_identity_fields& f) { f.conditions = quire::external_conditions::of(some_digest(19)); }},
};

auto text_of(std::span<std::byte const> bytes) -> std::string { return quire_test::to_hex(bytes); }

// Reads an encoding without knowing how it was written: that this is possible is what makes it injective.
auto decode(std::span<std::byte const> bytes) -> std::optional<std::vector<std::pair<unsigned, std::string>>> {
  auto out = std::vector<std::pair<unsigned, std::string>>{};
  while (!bytes.empty()) {
    if (bytes.size() < 9) { return std::nullopt; }
    auto length = std::uint64_t{0};
    for (auto i = 8U; i > 0; --i) { length = (length << 8U) | std::to_integer<std::uint64_t>(bytes[i]); }
    if (length > bytes.size() - 9) { return std::nullopt; }
    out.emplace_back(std::to_integer<unsigned>(bytes[0]), text_of(bytes.subspan(9, length)));
    bytes = bytes.subspan(9 + length);
  }
  return out;
}

// Random fields from a small alphabet, so that equal and nearly equal ones are common.
class field_source {
public:
  explicit field_source(unsigned seed) : random_{seed} {}

  auto fields() -> compute_identity_fields {
    return {.weights = quire::weights_digest{digest()},
            .structure = quire::structure_digest{digest()},
            .tokenizer = quire::tokenizer_digest{digest()},
            .prompt_template =
                coin() ? quire::prompt_template_digest::none() : quire::prompt_template_digest::of(digest()),
            .adapters = adapters(),
            .precision = quire::compute_precision{text()},
            .format = coin() ? quire::cache_format::exact(text()) : quire::cache_format::approximate(text()),
            .positions = quire::position_config{text()},
            .attention = quire::visibility_rule{text()},
            .conditions = coin() ? quire::external_conditions::none() : quire::external_conditions::of(digest())};
  }

private:
  auto coin() -> bool { return random_() % 2 == 0; }
  auto digest() -> quire::content_digest { return some_digest(1 + random_() % 2); }
  auto text() -> std::string {
    auto out = std::string{};
    // Text that looks like the headers of the encoding, too.
    for (auto n = 1 + random_() % 2; n > 0; --n) { out += std::string_view{"\x08\x09\x01\0", 4}[random_() % 4]; }
    return out;
  }
  auto adapters() -> quire::adapter_list {
    auto out = std::vector<quire::adapter>{};
    for (auto n = random_() % 3; n > 0; --n) { out.push_back(some_adapter(1 + random_() % 2, coin() ? 1.0 : 0.5)); }
    return quire::adapter_list::of(out);
  }

  std::minstd_rand random_;
};

auto same(compute_identity_fields const& a, compute_identity_fields const& b) -> bool {
  return a.weights == b.weights && a.structure == b.structure && a.tokenizer == b.tokenizer &&
         a.prompt_template == b.prompt_template && a.adapters == b.adapters && a.precision == b.precision &&
         a.format == b.format && a.positions == b.positions && a.attention == b.attention &&
         a.conditions == b.conditions;
}

} // namespace

TEST_CASE("S33: equal fields give equal identities, one other field gives another") {
  auto identities = std::vector<compute_identity>{compute_identity{some_fields()}};
  CHECK(identities.front() == compute_identity{some_fields()});
  for (auto const& change : changes) {
    CAPTURE(change.what);
    auto fields = some_fields();
    change.apply(fields);
    auto again = some_fields();
    change.apply(again);
    auto const identity = compute_identity{fields};
    CHECK(identity == compute_identity{again});
    for (auto const& other : identities) { CHECK_FALSE(identity == other); }
    identities.push_back(identity);
  }
}

TEST_CASE("S33: every member of the fields is tested") {
  // One more member does not fit: whoever adds one adds it to `changes`, to the encoding and to this number.
  STATIC_REQUIRE(takes<compute_identity_fields, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9>);
  STATIC_REQUIRE_FALSE(takes<compute_identity_fields, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10>);
  STATIC_REQUIRE_FALSE(takes<compute_identity_fields, 0, 1, 2, 3, 4, 5, 6, 7, 8>);
}

TEST_CASE("S33: the encoding is that of an independent implementation") {
  auto const identity = compute_identity{quire_test::golden_fields()};
  CHECK(quire_test::to_hex(identity.bytes()) == quire_test::golden("compute identity"));
}

TEST_CASE("S33: different fields never share an encoding") {
  auto source = field_source{2024};
  auto samples = std::vector<std::pair<compute_identity_fields, compute_identity>>{};
  for (auto i = 0; i < 600; ++i) {
    auto fields = source.fields();
    auto identity = compute_identity{fields};
    auto const decoded = decode(identity.bytes());
    REQUIRE(decoded.has_value());
    REQUIRE(decoded->size() == 11);
    CHECK((*decoded)[6].second == text_of(fields.precision.bytes()));
    CHECK((*decoded)[8].second == text_of(fields.positions.bytes()));
    CHECK((*decoded)[9].second == text_of(fields.attention.bytes()));
    samples.emplace_back(std::move(fields), std::move(identity));
  }
  auto wrong = 0;
  for (auto const& a : samples) {
    for (auto const& b : samples) { wrong += same(a.first, b.first) != (a.second == b.second) ? 1 : 0; }
  }
  CHECK(wrong == 0);
}

TEST_CASE("S33: no byte of a field counts for its neighbour") {
  auto const identity_of = [](std::string_view precision, std::string_view format, std::string_view positions,
                              std::string_view attention) {
    auto fields = some_fields();
    fields.precision = quire::compute_precision{precision};
    fields.format = quire::cache_format::exact(format);
    fields.positions = quire::position_config{positions};
    fields.attention = quire::visibility_rule{attention};
    return compute_identity{fields};
  };
  auto const base = identity_of("ab", "cd", "ef", "gh");
  CHECK_FALSE(base == identity_of("abc", "d", "ef", "gh"));
  CHECK_FALSE(base == identity_of("a", "bcd", "ef", "gh"));
  CHECK_FALSE(base == identity_of("ab", "cde", "f", "gh"));
  CHECK_FALSE(base == identity_of("ab", "cd", "efg", "h"));
  CHECK_FALSE(base == identity_of("ab", "cd", "gh", "ef"));
  CHECK_FALSE(base == identity_of("ef", "cd", "ab", "gh"));
}

TEST_CASE("S34: tokenizer and template belong to the identity") {
  auto const base = compute_identity{some_fields()};
  auto tokenizer = some_fields();
  tokenizer.tokenizer = quire::tokenizer_digest{some_digest(40)};
  auto prompt = some_fields();
  prompt.prompt_template = quire::prompt_template_digest::of(some_digest(40));
  CHECK_FALSE(compute_identity{tokenizer} == base);
  CHECK_FALSE(compute_identity{prompt} == base);
  CHECK_FALSE(compute_identity{tokenizer} == compute_identity{prompt});
}

TEST_CASE("S34: sampling parameters are not part of the key") {
  STATIC_REQUIRE_FALSE(names_sampling<compute_identity_fields>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<compute_identity, compute_identity_fields, double>);
}

TEST_CASE("S35: names, branches and paths are not part of the key") {
  STATIC_REQUIRE_FALSE(names_location<compute_identity_fields>);
  // The same artifact elsewhere is the same identity: there is nothing by which the place could be told.
  CHECK(compute_identity{some_fields()} == compute_identity{some_fields()});
}

TEST_CASE("S32: requests with other resolved position parameters never share") {
  auto const with = [](std::string_view factors) {
    auto fields = some_fields();
    fields.positions = quire::position_config{factors};
    return compute_identity{fields};
  };
  CHECK_FALSE(with("longrope short=1.0") == with("longrope long=32.0"));
  CHECK(with("longrope short=1.0") == with("longrope short=1.0"));
}

TEST_CASE("S6: exact and approximate formats never mix") {
  CHECK(quire::cache_format::exact("fp8").is_exact());
  CHECK_FALSE(quire::cache_format::approximate("fp8").is_exact());
  CHECK_FALSE(quire::cache_format::exact("fp8") == quire::cache_format::approximate("fp8"));
  CHECK_FALSE(quire::cache_format::approximate("h2o keep=512") == quire::cache_format::approximate("h2o keep=1024"));
}

TEST_CASE("case 5: base and adapters share nothing") {
  auto base = some_fields();
  auto first = some_fields();
  first.adapters = quire::adapter_list::of({some_adapter(1, 1.0)});
  auto second = some_fields();
  second.adapters = quire::adapter_list::of({some_adapter(2, 1.0)});
  CHECK_FALSE(compute_identity{base} == compute_identity{first});
  CHECK_FALSE(compute_identity{first} == compute_identity{second});
  CHECK(compute_identity{first} == compute_identity{first});
  // An empty list says what none() says.
  base.adapters = quire::adapter_list::of({});
  CHECK(compute_identity{base} == compute_identity{some_fields()});
}

TEST_CASE("case 6: an adapter is its weights, whatever it is called") {
  STATIC_REQUIRE_FALSE(names_location<quire::adapter>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<quire::adapter_digest, char const*>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<quire::adapter_digest, int>);
  auto before = some_fields();
  before.adapters = quire::adapter_list::of({some_adapter(1, 1.0)});
  auto after = some_fields(); // loaded again under the same name with other weights
  after.adapters = quire::adapter_list::of({some_adapter(2, 1.0)});
  CHECK_FALSE(compute_identity{before} == compute_identity{after});
}

TEST_CASE("case 8: conditions that differ in one high bit differ") {
  auto const with = [](std::size_t byte) {
    auto value = std::array<std::byte, 32>{};
    value.back() = std::byte{1};
    value[byte] |= std::byte{0x80};
    auto fields = some_fields();
    fields.conditions = quire::external_conditions::of(quire::content_digest{value});
    return compute_identity{fields};
  };
  for (std::size_t a = 0; a < 32; ++a) {
    for (std::size_t b = 0; b < a; ++b) { CHECK_FALSE(with(a) == with(b)); }
  }
}

TEST_CASE("case 7: equal placeholder tokens with another image, or another mask, never match") {
  auto with_image = some_fields();
  with_image.conditions = quire::external_conditions::of(some_digest(50));
  auto with_other = some_fields();
  with_other.conditions = quire::external_conditions::of(some_digest(51));
  CHECK_FALSE(compute_identity{with_image} == compute_identity{with_other});
  CHECK_FALSE(compute_identity{with_image} == compute_identity{some_fields()});
  // The same digest in another role is something else.
  auto as_template = some_fields();
  as_template.prompt_template = quire::prompt_template_digest::of(some_digest(50));
  CHECK_FALSE(compute_identity{with_image} == compute_identity{as_template});
}

TEST_CASE("case 17: new weights give another identity") {
  auto updated = some_fields();
  updated.weights = quire::weights_digest{some_digest(2)};
  CHECK_FALSE(compute_identity{updated} == compute_identity{some_fields()});
}

TEST_CASE("S33: values that say nothing are refused") {
  CHECK_THROWS_AS(quire::compute_precision{""}, quire::config_error);
  CHECK_THROWS_AS(quire::position_config{std::span<std::byte const>{}}, quire::config_error);
  CHECK_THROWS_AS(quire::cache_format::exact(""), quire::config_error);
  CHECK_THROWS_AS(quire::cache_format::approximate(""), quire::config_error);
  CHECK_THROWS_AS(quire::adapter_scale{std::nan("")}, quire::config_error);
  CHECK_THROWS_AS(quire::adapter_scale{std::numeric_limits<double>::infinity()}, quire::config_error);
  CHECK_THROWS_AS(quire::adapter_scale{-std::numeric_limits<double>::infinity()}, quire::config_error);
  CHECK(quire::adapter_scale{std::numeric_limits<double>::max()}.bits() ==
        std::bit_cast<std::uint64_t>(std::numeric_limits<double>::max()));
  CHECK_FALSE(quire::adapter_scale{0.0} == quire::adapter_scale{-0.0});
  CHECK(quire::adapter_scale{0.5} == quire::adapter_scale{0.5});
}

TEST_CASE("S33: a scale is encoded in full") {
  auto const with = [](double scale) {
    auto fields = some_fields();
    fields.adapters = quire::adapter_list::of({some_adapter(1, scale)});
    return compute_identity{fields};
  };
  CHECK_FALSE(with(1.0) == with(std::nextafter(1.0, 2.0)));
  CHECK_FALSE(with(1.0) == with(-1.0));
  CHECK_FALSE(with(1.0) == with(0x1p64));
}

TEST_CASE("S33: an identity that cannot be built leaves nothing behind") {
  auto const fields = quire_test::golden_fields();
  auto const refused = quire_test::fail_each_allocation([] { return std::optional<compute_identity>{}; },
                                                        [&](auto& made) { made.emplace(fields); },
                                                        [](auto const& made) { CHECK_FALSE(made.has_value()); });
  CHECK(refused > 0);
}
