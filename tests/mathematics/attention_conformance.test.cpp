// SPDX-License-Identifier: Apache-2.0
// The suite of attention_conformance.hpp over the models of this room.
#include <quire/attention/oracle_backend.hpp>
#include <quire/attention/recording_backend.hpp>

#include "mathematics/attention_conformance.hpp"
#include "mathematics/oracle_subject.hpp"
#include "support/catch_compat.hpp"

#include <cstddef>

namespace {
using namespace quire;
using namespace quire_test;

// A wrapper passes the same suite.
class recorded_subject {
public:
  using real = double;
  static constexpr auto storage = dtype::f64;
  static constexpr auto tolerance = 1e-12;

  explicit recorded_subject(backend_plan const& plan) : memory_{plan}, backend_{std::move(memory_.backend())} {}
  [[nodiscard]] auto backend() -> recording_backend<oracle_backend>& { return backend_; }
  void fill(std::byte value) { memory_.fill(value); }

private:
  oracle_subject<> memory_;
  recording_backend<oracle_backend> backend_;
};
} // namespace

TEMPLATE_TEST_CASE("S44: attention backend conformance", "", oracle_subject<>,
                   (oracle_subject<dtype::f32, plane_order::hnd>), (oracle_subject<dtype::bf16, plane_order::split>),
                   (oracle_subject<dtype::fp8_e4m3>), recorded_subject) {
  check_attention_backend<TestType>();
}
