// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Identities, domains and digests that the tests of the identity room share.

#include <quire/identity/compute_identity.hpp>
#include <quire/identity/scope_key.hpp>
#include <quire/identity/xxh3_128_digest.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quire_test {

/// A digest of consecutive bytes from \p first; \p first > 0 keeps it from being all 0.
inline auto some_digest(unsigned first) -> quire::content_digest {
  auto value = std::array<std::byte, quire::content_digest::size>{};
  for (std::size_t i = 0; i < value.size(); ++i) { value[i] = static_cast<std::byte>((first + i) & 0xFFU); }
  return quire::content_digest{value};
}

/// An adapter whose content is told apart by \p first.
inline auto some_adapter(unsigned first, double scale) -> quire::adapter {
  return {.digest = quire::adapter_digest{some_digest(first)}, .scale = quire::adapter_scale{scale}};
}

/// One complete set of fields; tests change one member at a time.
inline auto some_fields() -> quire::compute_identity_fields {
  return {.weights = quire::weights_digest{some_digest(1)},
          .structure = quire::structure_digest{some_digest(2)},
          .tokenizer = quire::tokenizer_digest{some_digest(3)},
          .prompt_template = quire::prompt_template_digest::none(),
          .adapters = quire::adapter_list::none(),
          .precision = quire::compute_precision{"bf16"},
          .format = quire::cache_format::exact("bf16"),
          .positions = quire::position_config{"rope base=500000"},
          .attention = quire::visibility_rule{"causal"},
          .conditions = quire::external_conditions::none()};
}

/// The domain of \p tenant without a salt.
inline auto domain_of(std::string_view tenant) -> quire::sharing_domain {
  return quire::sharing_domain::isolated(quire::tenant_id{tenant}, quire::authorisation_domain{"project"},
                                         quire::domain_salt::none());
}

/// The scope of \p fields and \p domain, with blocks of \p block_tokens.
template <class Policy = quire::xxh3_128_digest>
auto scope_of(quire::compute_identity_fields const& fields, quire::sharing_domain const& domain,
              unsigned block_tokens = 4) -> quire::scope_key {
  return {quire::digest_scheme::of<Policy>(), quire::token_count{block_tokens}, quire::compute_identity{fields},
          domain};
}

/// \p bytes in lower-case hexadecimal digits.
inline auto to_hex(std::span<std::byte const> bytes) -> std::string {
  auto out = std::string{};
  for (auto const b : bytes) {
    out += "0123456789abcdef"[std::to_integer<unsigned>(b) >> 4U];
    out += "0123456789abcdef"[std::to_integer<unsigned>(b) & 15U];
  }
  return out;
}

/// A name and the encoding that an independent implementation gives.
struct golden_encoding {
  std::string_view name;
  std::string_view hex;
};

/// See golden/make_key_encoding.py.
inline constexpr golden_encoding golden_encodings[] = {
#include "golden/key_encoding.txt"
};

/// The golden encoding called \p name; empty if there is none.
inline auto golden(std::string_view name) -> std::string {
  for (auto const& g : golden_encodings) {
    if (g.name == name) { return std::string{g.hex}; }
  }
  return {};
}

/// The fields that golden/make_key_encoding.py encodes.
inline auto golden_fields() -> quire::compute_identity_fields {
  auto fields = some_fields();
  fields.adapters = quire::adapter_list::of({some_adapter(4, 0.5), some_adapter(5, -2.0)});
  fields.positions = quire::position_config{std::vector{std::byte{0}, std::byte{1}, std::byte{2}}};
  fields.conditions = quire::external_conditions::of(some_digest(9));
  return fields;
}

} // namespace quire_test
