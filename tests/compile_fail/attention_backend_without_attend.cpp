// SPDX-License-Identifier: Apache-2.0
// expect: constraint.*not satisf|constraints not satisfied
// A backend that only executes and writes cannot stand where one is wanted.
#include <quire/attention/recording_backend.hpp>

struct half_backend : quire::null_backend<> {
  void attend(quire::layer_id, quire::batch_view const&, query_input const&, attention_result const&) {}
};

auto main() -> int {
#ifdef FIXED
  auto recorder = quire::recording_backend<quire::null_backend<>>{};
#else
  auto recorder = quire::recording_backend<half_backend>{};
#endif
  return static_cast<int>(recorder.recorded().size());
}
