// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Hit rate over cache size, a line per policy below the dashed bound, as an SVG without any dependency.

#include "replay/report.hpp"
#include "replay/table.hpp" // grouped

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility> // std::pair
#include <vector>

namespace replay {

namespace detail {

/// \p text, safe inside XML.
[[nodiscard]] inline auto escaped(std::string_view text) -> std::string {
  auto out = std::string{};
  for (auto const c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

struct curve {
  std::string name;
  std::string_view colour;
  bool dashed = false;
  std::vector<std::pair<std::uint32_t, double>> points{}; // blocks, rate
};

/// One curve per policy in order of appearance, then the bound.
[[nodiscard]] inline auto curves_of(report const& all) -> std::vector<curve> {
  constexpr std::array<std::string_view, 4> colours{"#0072b2", "#e69f00", "#009e73", "#cc79a7"};
  auto out = std::vector<curve>{};
  auto bound = curve{"bound", "#555555", true};
  for (auto const& run : all.runs) {
    auto const& r = run.result;
    if (r.requests == 0) { continue; }
    auto at = std::find_if(out.begin(), out.end(), [&](auto const& c) { return c.name == r.eviction; });
    if (at == out.end()) {
      at = out.insert(out.end(), curve{std::string{r.eviction}, colours[out.size() % colours.size()]});
    }
    at->points.emplace_back(r.blocks, r.block_rate());
    auto const limit = std::pair{r.blocks, ratio(run.bound, r.references)};
    if (std::find(bound.points.begin(), bound.points.end(), limit) == bound.points.end()) {
      bound.points.push_back(limit);
    }
  }
  out.push_back(std::move(bound));
  for (auto& c : out) { std::sort(c.points.begin(), c.points.end()); }
  return out;
}

} // namespace detail

/// The chart.
[[nodiscard]] inline auto chart_of(report const& all) -> std::string {
  constexpr double width = 760;
  constexpr double height = 440;
  constexpr double left = 64;
  constexpr double right = 130;
  constexpr double top = 56;
  constexpr double bottom = 56;
  auto const curves = detail::curves_of(all);
  auto sizes = std::vector<std::uint32_t>{};
  double most = 0;
  for (auto const& c : curves) {
    for (auto const& [blocks, rate] : c.points) {
      sizes.push_back(blocks);
      most = std::max(most, rate);
    }
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  auto const step = most > 0.4 ? 0.2 : most > 0.2 ? 0.1 : 0.05;
  auto const ceiling = std::max(step, std::ceil(most / step - 1e-9) * step);
  auto const low = sizes.empty() ? 0.0 : std::log(sizes.front());
  auto const high = sizes.empty() ? 1.0 : std::log(sizes.back());
  auto const x = [&](std::uint32_t blocks) {
    return left + (high > low ? (std::log(blocks) - low) / (high - low) : 0.5) * (width - left - right);
  };
  auto const y = [&](double rate) { return height - bottom - rate / ceiling * (height - top - bottom); };

  auto out = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
                         "height=\"{1}\" font-family=\"sans-serif\" "
                         "font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
                         width, height);
  out += fmt::format("<text x=\"{}\" y=\"22\" font-size=\"15\">Blocks found in the cache, by its size</text>\n", left);
  out += fmt::format("<text x=\"{}\" y=\"40\" fill=\"#555555\">{}</text>\n", left, detail::escaped(all.trace_name));
  for (auto rate = 0.0; rate <= ceiling + 1e-9; rate += step) {
    out += fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n", left,
                       width - right, y(rate), y(rate));
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.0f} %</text>\n", left - 8, y(rate) + 4,
                       100 * rate);
  }
  double last = -100;
  for (auto const blocks : sizes) {
    out += fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#555555\"/>\n", x(blocks),
                       height - bottom, height - bottom + 5);
    if (x(blocks) - last < 52) { continue; } // no room for another label
    last = x(blocks);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x(blocks),
                       height - bottom + 19, detail::grouped(blocks));
  }
  out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">blocks of {} tokens</text>\n",
                     (left + width - right) / 2, height - 14, all.block_tokens);

  double legend = top + 6;
  for (auto const& c : curves) {
    auto path = std::string{};
    for (auto const& [blocks, rate] : c.points) { path += fmt::format("{:.1f},{:.1f} ", x(blocks), y(rate)); }
    auto const dash = c.dashed ? " stroke-dasharray=\"6 4\"" : "";
    out += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", path, c.colour,
                       dash);
    for (auto const& [blocks, rate] : c.points) {
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x(blocks), y(rate), c.colour);
    }
    out += fmt::format("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"{3}\" stroke-width=\"2\"{4}/>\n",
                       width - right + 16, width - right + 44, legend, c.colour, dash);
    out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", width - right + 52, legend + 4, detail::escaped(c.name));
    legend += 20;
  }
  return out + "</svg>\n";
}

} // namespace replay
