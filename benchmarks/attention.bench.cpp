// SPDX-License-Identifier: Apache-2.0

/// \file
/// Attention on the CPU, one core. Decode reads keys and values from a paged cache of bf16, heads of 128 elements, that is
/// 8 times as large as a last-level cache of 32 MiB and more. A round is one row of the step, about 17 MB; its floor goes
/// over as many bytes of another row that was last touched half a cache ago:
///
///     read     every byte once, summed up as integers: what a decode step cannot beat (S9). In the order of the block
///              table, or in the order of addresses, which no reader of a shuffled pool can follow
///     copy     memcpy of every byte
///     convert  every element to float and into one multiply-add per query head, nothing else
///
/// `share` is floor / time, 1 would be the floor itself; `GBps` counts the keys and values that the step must read.

#include "support.hpp"

#include <quire/attention/cpu_backend.hpp>
#include <quire/attention/detail/cpu_codec.hpp>
#include <quire/model/work.hpp>
#include <quire/view/batch_view.hpp>

#if __has_include(<eigen3/Eigen/Core>)
#define QUIRE_BENCH_EIGEN
#include <eigen3/Eigen/Core>
#endif

#include <sys/mman.h> // madvise

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace quire_bench;

constexpr std::uint32_t width = 128;
constexpr std::uint32_t kv_heads = 8;

/// Zeroed memory on large pages where the system has them: no measurement is about the TLB.
class large_memory {
public:
  explicit large_memory(std::size_t bytes)
      : bytes_{(bytes + page - 1) / page * page}, data_{std::aligned_alloc(page, bytes_)} {
    if (data_ == nullptr) { throw std::bad_alloc{}; }
    madvise(data_, bytes_, MADV_HUGEPAGE);
    std::memset(data_, 0, bytes_);
  }
  large_memory(large_memory const&) = delete;
  auto operator=(large_memory const&) -> large_memory& = delete;
  ~large_memory() { std::free(data_); }
  [[nodiscard]] auto bytes() const -> std::span<std::byte> { return {static_cast<std::byte*>(data_), bytes_}; }

private:
  static constexpr std::size_t page = std::size_t{2} << 20;
  std::size_t bytes_;
  void* data_;
};

/// Random bf16 in (−1, 1).
auto fill(std::span<std::byte> bytes, std::uint64_t seed) -> void {
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    seed = seed * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    auto const four = ((seed ^ seed >> 31) & 0x807F'807F'807F'807FU) | 0x3F00'3F00'3F00'3F00U;
    std::memcpy(bytes.data() + at, &four, 8);
  }
}

struct shape {
  std::uint32_t query_heads = kv_heads;
  std::uint32_t rows = 16;
  std::uint32_t cached = 4'223; ///< [tokens] per row before the step.
  std::uint32_t appended = 1;   ///< [tokens] per row.
  std::uint32_t block_tokens = 16;
  bool shuffled = true; ///< Blocks lie anywhere in the pool, as after a while of serving; else in order.
};

/// One layer, its memory, and a step over it.
class scene {
public:
  explicit scene(shape what)
      : what_{what}, blocks_per_row_{(length() + what.block_tokens - 1) / what.block_tokens},
        blocks_{blocks_per_row_ * what.rows},
        layout_{quire::plane_layout::nhd({.blocks = quire::block_count{blocks_},
                                          .block_tokens = quire::token_count{what.block_tokens},
                                          .heads = kv_heads,
                                          .dim = width,
                                          .element_bits = 16})},
        plane_bytes_{(layout_.last_offset() + 1) * 2}, memory_{2 * plane_bytes_} {
    fill(memory_.bytes(), 1);
    std::mt19937_64 random{7};
    auto const order = shuffled(random, blocks_);
    for (std::uint32_t b = 0; b < blocks_; ++b) {
      table_.push_back(static_cast<std::int32_t>(what.shuffled ? order[b] : b));
    }
    for (std::uint32_t row = 0; row < what.rows; ++row) {
      first_.push_back(0);
      length_.push_back(static_cast<std::int32_t>(length()));
      start_.push_back(start_.back() + static_cast<std::int32_t>(what.appended));
    }
    auto const cells = std::size_t{what.rows} * what.appended * what.query_heads;
    for (std::size_t i = 0; i < cells * width; ++i) {
      query_.push_back(static_cast<float>(random() >> 40) * 0x1p-24F - 0.5F);
    }
    output_.resize(cells * width);
    lse_.resize(cells);
    auto const plane = [&](std::size_t number) {
      return quire::cpu_plane{.layout = layout_,
                              .format = {.type = quire::dtype::bf16},
                              .tensor = memory_.bytes().subspan(number * plane_bytes_, plane_bytes_)};
    };
    auto params = quire::attention_params{.query_heads = what.query_heads,
                                          .kv_heads = kv_heads,
                                          .key_width = width,
                                          .value_width = width,
                                          .scale = quire::attention_params::usual_scale(width)};
    std::vector<quire::cpu_layer> layers;
    layers.push_back({.params = std::move(params), .key = plane(0), .value = plane(1)});
    backend_.emplace(std::move(layers));
  }

  /// [ns] of attention of one row, or of the first \p heads KV heads of it.
  auto attend(std::uint32_t row, std::uint32_t heads = kv_heads) -> double {
    auto const only = static_cast<std::int32_t>(row);
    auto const range = quire::cpu_range{.first_row = only, .last_row = only + 1, .last_head = heads};
    return nanoseconds([&] {
      auto const out = quire::output_rows<float>{.output = output_, .lse = lse_};
      expect(backend_->attend(quire::layer_id{0}, view(), {.query = query_}, out, range, workspace_).has_value(),
             "no attention");
      benchmark::ClobberMemory();
    });
  }
  /// Calls `use(bytes)` for every block of one row, keys and values, in the order of the table.
  template <class Use>
  auto for_each_block(std::uint32_t row, Use use) const -> void {
    auto const bytes = layout_.block_stride * 2;
    for (std::size_t plane = 0; plane < 2; ++plane) {
      for (std::uint32_t b = 0; b < blocks_per_row_; ++b) {
        auto const block = static_cast<std::size_t>(table_[row * blocks_per_row_ + b]);
        use(memory_.bytes().subspan(plane * plane_bytes_ + block * bytes, bytes));
      }
    }
  }
  /// As many bytes side by side.
  [[nodiscard]] auto slice(std::uint32_t row) const -> std::span<std::byte> {
    auto const size = 2 * plane_bytes_ / what_.rows / 64 * 64;
    return memory_.bytes().subspan(row * size, size);
  }
  [[nodiscard]] auto rows() const -> std::uint32_t { return what_.rows; }
  /// All keys and values.
  [[nodiscard]] auto bytes() const -> std::span<std::byte> { return memory_.bytes().first(2 * plane_bytes_); }
  [[nodiscard]] auto length() const -> std::uint32_t { return what_.cached + what_.appended; }
  /// [FLOP] of both products over the visible pairs of one row and KV head.
  [[nodiscard]] auto operations() const -> double {
    auto const pairs = quire::forward_work(quire::token_pos{what_.cached}, quire::token_count{what_.appended}).pairs;
    return 4.0 * width * static_cast<double>(pairs) * what_.query_heads / kv_heads;
  }
  [[nodiscard]] auto output() const -> std::vector<float> const& { return output_; }

private:
  [[nodiscard]] auto view() const -> quire::batch_view {
    return {.rows = static_cast<std::int32_t>(what_.rows),
            .max_blocks = static_cast<std::int32_t>(blocks_per_row_),
            .block_tokens = static_cast<std::int32_t>(what_.block_tokens),
            .block_table = table_,
            .first_position = first_,
            .length = length_,
            .query_start = start_};
  }

  shape what_;
  std::uint32_t blocks_per_row_;
  std::uint32_t blocks_;
  quire::plane_layout layout_;
  std::size_t plane_bytes_;
  large_memory memory_;
  std::vector<std::int32_t> table_;
  std::vector<std::int32_t> first_;
  std::vector<std::int32_t> length_;
  std::vector<std::int32_t> start_{0};
  std::vector<float> query_;
  std::vector<float> output_;
  std::vector<float> lse_;
  std::optional<quire::cpu_backend> backend_;
  quire::cpu_workspace workspace_;
};

/// A plain read.
auto read_all(std::span<std::byte const> bytes) -> void {
  quire::detail::cpu_u32 sum[8] = {};
  constexpr auto step = sizeof sum;
  for (std::size_t at = 0; at + step <= bytes.size(); at += step) {
    for (std::size_t i = 0; i < 8; ++i) {
      sum[i] += quire::detail::cpu_load<quire::detail::cpu_u32>(bytes.data() + at + i * sizeof sum[0]);
    }
  }
  for (auto const& part : sum) { keep(part); }
}

/// A copy.
auto copy_all(std::span<std::byte const> bytes, std::span<std::byte> to) -> void {
  std::memcpy(to.data(), bytes.data(), bytes.size());
  benchmark::ClobberMemory();
}

/// Conversion and one multiply-add per query head, for every element.
template <std::size_t Heads>
[[gnu::noinline]] auto converted(std::span<std::byte const> bytes) -> quire::detail::cpu_f32 {
  using namespace quire::detail;
  constexpr std::size_t ways = 4 / Heads; // eight sums, so that their latency does not show
  cpu_f32 sum[ways][Heads][2] = {};
  cpu_f32 factor[Heads];
  for (std::size_t h = 0; h < Heads; ++h) { factor[h] = cpu_splat(1.0F / static_cast<float>(h + 3)); }
  constexpr auto step = ways * cpu_chunk * 2;
  for (std::size_t at = 0; at + step <= bytes.size(); at += step) {
#pragma GCC unroll 4
    for (std::size_t w = 0; w < ways; ++w) {
      cpu_f32 a;
      cpu_f32 b;
      cpu_bf16_codec::chunk(bytes.data() + at + w * cpu_chunk * 2, a, b);
#pragma GCC unroll 4
      for (std::size_t h = 0; h < Heads; ++h) {
        sum[w][h][0] = cpu_fma(factor[h], a, sum[w][h][0]);
        sum[w][h][1] = cpu_fma(factor[h], b, sum[w][h][1]);
      }
    }
  }
  auto all = cpu_f32{};
  for (auto const& way : sum) {
    for (auto const& head : way) { all += head[0] + head[1]; }
  }
  return all;
}

/// Adds how much of the floor is reached.
auto report_share(benchmark::State& state, result const& r, double gigabytes, double goal) -> void {
  report(state, r, "");
  state.counters["share"] = 1.0 / r.ratio;
  state.counters["GBps"] = gigabytes / (r.ns * 1e-9);
  state.counters["floor_GBps"] = gigabytes / (r.floor_ns * 1e-9);
  if (goal > 0.0) {
    state.counters["goal"] = goal;
    auto text = std::to_string(goal);
    state.SetLabel("share>=" + text.substr(0, text.find_last_not_of('0') + 1));
  }
}

enum class floor_kind { read_table, read, copy, convert };

/// How a decode row is measured.
struct decoding {
  floor_kind floor = floor_kind::read;
  bool shuffled = true;
  double goal = 0.0; ///< Least share of the floor; 0 = for information.
};

template <std::size_t PerKvHead>
auto decode(decoding what) {
  return [=](benchmark::State& state) {
    scene step{{.query_heads = kv_heads * PerKvHead, .shuffled = what.shuffled}};
    std::optional<large_memory> target;
    if (what.floor == floor_kind::copy) { target.emplace(step.bytes().size()); }
    auto row = std::uint32_t{0};
    auto const floor = [&] {
      auto const other = (row + step.rows() / 2) % step.rows();
      row = (row + 1) % step.rows();
      auto const slice = step.slice(other);
      switch (what.floor) {
      case floor_kind::read_table: return nanoseconds([&] { step.for_each_block(other, read_all); });
      case floor_kind::read: return nanoseconds([&] { read_all(slice); });
      case floor_kind::copy:
        return nanoseconds([&] { copy_all(slice, target->bytes().subspan(other * slice.size())); });
      case floor_kind::convert: break;
      }
      return nanoseconds([&] { keep(converted<PerKvHead>(slice)); });
    };
    auto const r = alternate(state, 1, [&] { return step.attend(row); }, floor);
    report_share(state, r, static_cast<double>(step.slice(0).size()) * 1e-9, what.goal);
  };
}

/// Blocks of 16 tokens beside one block per row.
template <std::size_t PerKvHead>
auto paged(bool shuffled) {
  return [=](benchmark::State& state) {
    scene pages{{.query_heads = kv_heads * PerKvHead, .shuffled = shuffled}};
    scene whole{{.query_heads = kv_heads * PerKvHead, .block_tokens = 4'224, .shuffled = false}};
    auto row = std::uint32_t{0};
    auto const floor = [&] {
      auto const time = whole.attend(row);
      row = (row + 1) % whole.rows();
      return time;
    };
    report(state, alternate(state, 1, [&] { return pages.attend(row); }, floor), "ratio<=1.1");
  };
}

/// A prompt of 2048 tokens, or its last 512. Per MFLOP over the visible pairs, beside the same two products as matrices.
auto prefill(std::uint32_t cached, std::uint32_t appended) {
  return [=](benchmark::State& state) {
    scene prompt{{.query_heads = kv_heads * 4, .rows = 1, .cached = cached, .appended = appended}};
#if defined(QUIRE_BENCH_EIGEN)
    using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    matrix const query = matrix::Random(appended, width);
    matrix const key = matrix::Random(cached + appended, width);
    matrix const value = matrix::Random(cached + appended, width);
    matrix scores(appended, cached + appended);
    matrix output(appended, width);
    auto const product = 4.0 * width * appended * (cached + appended);
    auto const floor = [&] {
      auto const time = nanoseconds([&] {
        scores.noalias() = query * key.transpose();
        output.noalias() = scores * value;
        benchmark::ClobberMemory();
      });
      return time / product * prompt.operations(); // as long as the visible pairs would take
    };
    auto const* const remark = "";
#else
    auto const floor = [] { return 1.0; };
    auto const* const remark = "no matrix library found: install libeigen3-dev";
#endif
    auto const r = alternate(state, prompt.operations() * 1e-6, [&] { return prompt.attend(0, 1); }, floor);
    report(state, r, "");
    state.counters["GFLOPs"] = 1e6 / r.ns;
    state.counters["gemm_GFLOPs"] = 1e6 / r.floor_ns;
    state.SetLabel(remark);
  };
}

[[maybe_unused]] auto const registered =
    add("attention/decode_1_query_head/shuffled_beside_a_read_of_the_blocks", 96,
        decode<1>({.floor = floor_kind::read_table, .goal = 0.7})) &&
    add("attention/decode_1_query_head/in_order_beside_a_read", 96, decode<1>({.shuffled = false, .goal = 0.7})) &&
    add("attention/decode_1_query_head/shuffled_beside_a_read", 64, decode<1>({})) &&
    add("attention/decode_1_query_head/shuffled_beside_a_copy", 64, decode<1>({.floor = floor_kind::copy})) &&
    add("attention/decode_4_query_heads/shuffled_beside_converting", 64,
        decode<4>({.floor = floor_kind::convert, .goal = 0.7})) &&
    add("attention/decode_4_query_heads/shuffled_beside_a_read", 32, decode<4>({})) &&
    add("attention/paged_beside_contiguous/decode_1_in_order", 64, paged<1>(false)) &&
    add("attention/paged_beside_contiguous/decode_1_shuffled", 64, paged<1>(true)) &&
    add("attention/paged_beside_contiguous/decode_4_shuffled", 64, paged<4>(true)) &&
    add("attention/prefill_2048", 25, prefill(0, 2'048)) &&
    add("attention/append_512_after_1536", 25, prefill(1'536, 512));

} // namespace
