// SPDX-License-Identifier: Apache-2.0
// A preset function whose row does not exist does not compile.
// expect: expression .*throw|not a constant expression|is not a constant
#include <quire/model/detail/preset_table.hpp>

#ifdef FIXED
auto row = quire::presets::detail::preset_index("llama3-8b");
#else
auto row = quire::presets::detail::preset_index("llama3-9b");
#endif
