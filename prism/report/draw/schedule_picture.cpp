#include "prism/report/draw/schedule_picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "prism/report/draw/escape.h"

namespace prism {
namespace {

constexpr double kNumbers = 34, kBoxes = 214, kWords = 104;  // layer numbers, boxes, words; in pixels
constexpr double kRow = 21, kBox = 17, kHead = 22;

/// Consecutive equal layers as text: "layers 0 to 1: 2 x 128".
std::string stages_text(const std::vector<LayerRecord>& layers) {
  std::string text;
  for (size_t first = 0; first < layers.size();) {
    size_t last = first;
    while (last + 1 < layers.size() && layer_text(layers[last + 1]) == layer_text(layers[first])) ++last;
    const std::string which =
        first == last ? fmt::format("layer {}", first) : fmt::format("layers {} to {}", first, last);
    text += fmt::format("{}{}: {}", first == 0 ? "" : "; ", which, layer_text(layers[first]));
    first = last + 1;
  }
  return text;
}

std::string row_svg(const LayerRecord& layer, size_t number, double top, double pixels_per_dim) {
  const double middle = top + kBox / 2 + 4;
  std::string row =
      fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", kNumbers - 8, middle, number);
  const double width = static_cast<double>(layer.head_dim) * pixels_per_dim;
  const double gap = std::min(1.5, width / 4);
  for (int64_t head = 0; head < layer.heads; ++head) {
    row +=
        fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\"/>",
                    head == 0 ? "first" : "head", kNumbers + static_cast<double>(head) * width, top, width - gap, kBox);
  }
  row += fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\">{}</text>\n", kNumbers + kBoxes + 8, middle,
                     escape_html(layer_text(layer)));
  return row;
}

}  // namespace

std::string layer_text(const LayerRecord& layer) {
  const std::string text = fmt::format("{} × {}", layer.heads, layer.head_dim);
  return layer.kv_heads == layer.heads ? text : text + fmt::format(", {} kv", layer.kv_heads);
}

std::string schedule_svg(const std::vector<LayerRecord>& layers, const std::string& label) {
  int64_t widest = 1;
  for (const auto& layer : layers) widest = std::max(widest, layer.heads * layer.head_dim);
  const double pixels_per_dim = kBoxes / static_cast<double>(widest);
  std::string svg =
      fmt::format("<svg class=\"schedule\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n",
                  kNumbers + kBoxes + kWords, kHead + kRow * static_cast<double>(layers.size()),
                  escape_html(fmt::format("Heads of {}. {}.", label, stages_text(layers))));
  svg += fmt::format("<g class=\"heading\"><text x=\"{:.0f}\" y=\"12\" text-anchor=\"end\">layer</text>", kNumbers - 2);
  svg += fmt::format("<text x=\"{:.0f}\" y=\"12\">heads × width</text></g>\n", kNumbers + kBoxes + 8);
  for (size_t i = 0; i < layers.size(); ++i) {
    svg += row_svg(layers[i], i, kHead + kRow * static_cast<double>(i), pixels_per_dim);
  }
  return svg + "</svg>\n";
}

}  // namespace prism
