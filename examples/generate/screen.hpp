// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a person sees: streamed text, the blocks of the pool, and the accounts.

#include "generate/equivalence.hpp"
#include "generate/service.hpp"

#include <quire/attention/equivalence_report.hpp>
#include <quire/block/block_state.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/stop_rules.hpp>

#include <fmt/format.h>

#include <algorithm> // std::count, std::count_if, std::min
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator> // std::back_inserter
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <thread>
#include <unistd.h>
#include <utility> // std::exchange
#include <vector>

namespace llama2 {

/// Draws. With animation the same lines are drawn again and again, without it only the last time.
class screen {
public:
  /// Draws what \p s does, in a terminal with animation unless \p plain.
  screen(service& s, bool plain) : service_{&s}, animated_{!plain && isatty(STDOUT_FILENO) != 0} {
    auto size = winsize{};
    if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) {
      width_ = size.ws_col;
    }
    colour_ = isatty(STDOUT_FILENO) != 0;
  }

  /// One picture of a running service, at reading speed.
  auto frame() -> void {
    auto now = picture(quire::group_id{0});
    auto window = service_->cache().groups() > 1 ? picture(quire::group_id{1}) : std::vector<kind>{};
    auto const held = [](auto const& kinds) {
      return std::count_if(kinds.begin(), kinds.end(), [](auto k) { return k == one || k == shared; });
    };
    if (held(now) > held(fullest_)) {
      fullest_ = now;
      fullest_window_ = window;
    }
    if (!animated_) { return; }
    auto out = fmt::memory_buffer{};
    stories(out, true);
    pool(out, "Pool", now);
    pool(out, window_title, window);
    accounts(out);
    show(out);
    std::this_thread::sleep_for(std::chrono::milliseconds{40});
  }
  /// The last picture, texts in full.
  auto finish() -> void {
    auto out = fmt::memory_buffer{};
    stories(out, false);
    pool(out, "Pool at its fullest", fullest_);
    pool(out, window_title, fullest_window_);
    pool(out, "Pool at the end", picture(quire::group_id{0}));
    if (service_->cache().groups() > 1) { pool(out, window_title, picture(quire::group_id{1})); }
    accounts(out);
    show(out);
    times();
  }
  /// The comparison with a run without cache.
  auto verdict(equivalence const& e) const -> void {
    auto const& r = e.report;
    auto const structural = r.verdict == quire::equivalence_verdict::structural;
    fmt::print("\n{}Equivalence with a full recompute: {}{}\n", bold(), quire::name_of(r.verdict), off());
    fmt::print(
        "  {} rows of logits; largest difference {:.2g}, allowed {:.2g}; KL at most {:.1g} nats; arg-max flips {}\n",
        r.rows, r.max_abs, r.bound.total(), r.max_kl, r.flips.size());
    if (r.effect >= 0) {
      fmt::print("  one spoiled block would have changed them by {:.2g}: such a fault would show\n", r.effect);
    }
    fmt::print("  {}\n", structural     ? "The cached run is WRONG: see the worst row in the JSON report."
                         : r.effect < 0 ? "The difference is rounding; no fault was tried."
                         : r.verdict == quire::equivalence_verdict::numeric
                             ? "The cached run computes the same; what differs is rounding."
                             : "The difference is small, but so would be a fault: this run cannot tell.");
  }

private:
  [[nodiscard]] auto bold() const noexcept -> std::string_view { return colour_ ? "\x1b[1m" : ""; }
  [[nodiscard]] auto dim() const noexcept -> std::string_view { return colour_ ? "\x1b[2m" : ""; }
  [[nodiscard]] auto off() const noexcept -> std::string_view { return colour_ ? "\x1b[0m" : ""; }
  [[nodiscard]] auto hue(int number) const -> std::string {
    return colour_ ? fmt::format("\x1b[{}m", number) : std::string{};
  }

  /// The end of \p text that fits \p columns; line breaks become spaces.
  [[nodiscard]] static auto tail(std::string text, std::size_t columns) -> std::string {
    for (auto& c : text) { c = static_cast<unsigned char>(c) < ' ' ? ' ' : c; }
    if (text.size() <= columns) { return text; }
    auto from = text.size() - columns;
    while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0U) == 0x80U) {
      ++from;
    } // not inside a character
    return text.substr(from);
  }
  auto stories(fmt::memory_buffer& out, bool short_lines) const -> void {
    std::size_t number = 0;
    for (auto const& s : service_->stories()) {
      ++number;
      auto const arrived = static_cast<bool>(s.id);
      auto const* const r = arrived ? &service_->result(s) : nullptr;
      auto const output =
          arrived ? service_->words().decode({r->visible().begin(), r->visible().end()}, s.ids.back()) : std::string{};
      auto const mark = r == nullptr ? "." : r->over() ? "*" : r->state.output.empty() ? "-" : ">";
      if (short_lines) {
        auto const columns = width_ - 8;
        auto const text = tail(output, columns);
        auto const before = tail(s.prompt, columns - text.size());
        line(out, fmt::format("{:>3} {} {}{}{}{}", number, mark, dim(), before, off(), text));
      } else {
        line(out, fmt::format("{:>3} {} {}{}{}{}", number, mark, dim(), s.prompt, off(), output));
        line(out, "");
      }
    }
    if (short_lines) { line(out, ""); }
  }
  static constexpr std::string_view window_title = "  of the odd layers";
  enum kind : std::uint8_t { free, one, shared, cached };

  /// What each block is doing.
  [[nodiscard]] auto picture(quire::group_id group) const -> std::vector<kind> {
    auto const holders = service_->holders(group);
    auto out = std::vector<kind>(holders.size(), free);
    for (std::size_t i = 0; i < holders.size(); ++i) {
      auto const state = service_->cache().block_state_of(group, quire::block_id{static_cast<std::uint32_t>(i)});
      if (state == quire::block_state::published) { out[i] = cached; }
      if (holders[i] > 0) { out[i] = holders[i] > 1 ? shared : one; }
    }
    return out;
  }
  auto pool(fmt::memory_buffer& out, std::string_view title, std::vector<kind> const& kinds) const -> void {
    if (kinds.empty()) { return; }
    constexpr std::string_view names[] = {"free", "private", "shared", "cached"};
    constexpr std::string_view marks[] = {"·", "▒", "█", "░"};
    constexpr int hues[] = {2, 36, 33, 32};
    auto text = fmt::format("{}{}{}, {} blocks of {} tokens:", bold(), title, off(), kinds.size(),
                            service_->cache().block_tokens().value());
    for (auto const k : {free, one, shared, cached}) {
      text += fmt::format("  {}{}{} {} {}", hue(hues[k]), marks[k], off(), names[k],
                          std::count(kinds.begin(), kinds.end(), k));
    }
    line(out, text);
    text = "  ";
    auto const per_line = std::min<std::size_t>(width_ - 4, 96);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      text += fmt::format("{}{}{}", hue(hues[kinds[i]]), marks[kinds[i]], off());
      if ((i + 1) % per_line == 0 || i + 1 == kinds.size()) { line(out, std::exchange(text, "  ")); }
    }
  }
  auto accounts(fmt::memory_buffer& out) const -> void {
    auto const [held, unshared] = service_->peak();
    auto const& done = service_->generator().computed();
    auto const& again = service_->generator().recompute();
    line(out, "");
    line(out, fmt::format("{}Blocks{}  at the fullest moment {} held, {} without sharing: {} saved", bold(), off(),
                          held, unshared, unshared - held));
    line(out,
         fmt::format(
             "{}Work{}    {} positions and {} query-key pairs per head; without a cache {} and {} (counts, no times)",
             bold(), off(), done.positions, done.pairs, again.positions, again.pairs));
  }
  auto times() const -> void {
    fmt::print("\n{}{:>3}  {:>6}  {:>5}  {:>7}  {:>9}  {:>9}  {:>9}  {:<13}{}\n", bold(), "", "prompt", "found",
               "outputs", "queue ms", "TTFT ms", "TPOT ms", "ended by", off());
    std::size_t number = 0;
    for (auto const& s : service_->stories()) {
      auto const& r = service_->result(s);
      auto const ms = [](auto const& t) {
        return t ? fmt::format("{:.3f}", static_cast<double>(t->value()) / 1e6) : std::string{"-"};
      };
      fmt::print("{:>3}  {:>6}  {:>5}  {:>7}  {:>9}  {:>9}  {:>9}  {:<13}\n", ++number, s.ids.size(), r.cached.value(),
                 r.state.output.size(), ms(r.times.queue()), ms(r.times.ttft()),
                 r.times.tpot() ? fmt::format("{:.3f}", *r.times.tpot() / 1e6) : "-", quire::name_of(r.reason));
    }
    fmt::print(
        "{}TTFT includes the queue. Times are measured, with {} prompts in one batch; drawing is not counted.{}\n",
        dim(), service_->stories().size(), off());
  }

  auto line(fmt::memory_buffer& out, std::string_view text) const -> void {
    fmt::format_to(std::back_inserter(out), "{}{}\n", text, animated_ ? "\x1b[K" : "");
  }
  auto show(fmt::memory_buffer& out) -> void {
    auto const text = std::string_view{out.data(), out.size()};
    if (animated_) { fmt::print("{}\x1b[J", drawn_ > 0 ? fmt::format("\x1b[{}A\r", drawn_) : ""); }
    fmt::print("{}", text);
    std::fflush(stdout);
    drawn_ = 0;
    for (auto const c : text) { drawn_ += c == '\n' ? 1 : 0; }
  }

  service* service_;
  bool animated_;
  bool colour_ = false;
  std::size_t width_ = 120;
  int drawn_ = 0;
  std::vector<kind> fullest_;
  std::vector<kind> fullest_window_;
};

} // namespace llama2
