// SPDX-License-Identifier: Apache-2.0
// Case 19: prompts are token ids, never text.
// expect: could not convert|cannot convert|no match|no viable
#include <quire/cache/requests.hpp>

#include <string_view>
#include <vector>

void ask(quire::admit_request& request, std::string_view words, std::vector<quire::token_id> const& ids) {
#ifdef FIXED
  static_cast<void>(words);
  request.prompt = ids;
#else
  static_cast<void>(ids);
  request.prompt = words;
#endif
}
