// SPDX-License-Identifier: Apache-2.0
// A number is no lease; only an index makes a pin.
// expect: private
#include <quire/prefix/prefix_pin.hpp>
#include <quire/prefix/run_tree.hpp>

auto make(quire::run_tree<>& tree, quire::prefix_match const& found) -> quire::prefix_pin {
#ifdef FIXED
  return tree.pin(found);
#else
  static_cast<void>(tree);
  return quire::prefix_pin{found.node, found.root, false};
#endif
}
