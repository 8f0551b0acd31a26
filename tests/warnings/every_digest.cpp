// SPDX-License-Identifier: Apache-2.0
// Every path by which quire reaches inlined xxHash, in a program with warnings of its own as errors: static_tests.cmake
// builds it at -O3 for several processors, and as a whole program. The lengths are not known to the compiler, so that
// the vector loops for long inputs are in it.
#include <immintrin.h> // first, as engines do: g++ 12 warns of what it includes

#include <quire/cache/scope_table.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/compute_identity.hpp>
#include <quire/identity/scope_key.hpp>
#include <quire/identity/sharing_domain.hpp>
#include <quire/identity/xxh3_128_digest.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace quire;

auto scope_of(std::string const& tenant) -> scope_key {
  auto const digest = [](char c) { return content_digest::from_hex(std::string(64, c)).value(); };
  auto const identity = compute_identity{{.weights = weights_digest{digest('1')},
                                          .structure = structure_digest{digest('2')},
                                          .tokenizer = tokenizer_digest{digest('3')},
                                          .prompt_template = prompt_template_digest::none(),
                                          .adapters = adapter_list::none(),
                                          .precision = compute_precision{"bf16"},
                                          .format = cache_format::exact("bf16"),
                                          .positions = position_config{"rope base=500000"},
                                          .attention = visibility_rule{"causal"},
                                          .conditions = external_conditions::none()}};
  return {digest_scheme::of<xxh3_128_digest>(), token_count{16}, identity,
          sharing_domain::isolated(tenant_id{tenant}, authorisation_domain{"all"}, domain_salt::none())};
}

} // namespace

auto main(int argc, char** argv) -> int {
  auto const digest = xxh3_128_digest{static_cast<std::uint64_t>(argc)};
  auto const tokens = std::vector<token_id>(static_cast<std::size_t>(argc) * 100, 1);
  auto const block = std::span{tokens};
  auto const key = scope_of(argv[0]);
  auto const root = digest.root(key.bytes());
  auto const chained = digest.chain(digest.chain(root, block), block.first(16));
  auto places = 0U;
  for (std::size_t n = 0; n < block.size(); ++n) { places |= digest.locate(n, block.first(n)); }
  auto scopes = scope_table{};
  return chained == root && places == 0 ? static_cast<int>(scopes.open(key).value()) : 0;
}
