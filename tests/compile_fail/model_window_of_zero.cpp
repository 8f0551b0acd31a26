// SPDX-License-Identifier: Apache-2.0
// A rule that is known when compiling is also checked then.
// expect: expression .*throw|not a constant expression|must be initialized by a constant expression
#include <quire/model/attention_rule.hpp>

#ifdef FIXED
constexpr auto rule = quire::attention_rule::sliding_window(quire::token_count{1});
#else
constexpr auto rule = quire::attention_rule::sliding_window(quire::token_count{0});
#endif
