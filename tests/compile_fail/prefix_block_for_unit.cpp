// SPDX-License-Identifier: Apache-2.0
// A unit is no block: what holds its bytes is up to each layer group.
// expect: cannot convert|could not convert|no viable conversion
#include <quire/prefix/run_tree.hpp>

auto drop(quire::run_tree<>& index) -> void {
#ifdef FIXED
  index.drop_unit(quire::unit_id{0});
#else
  index.drop_unit(quire::block_id{0});
#endif
}
