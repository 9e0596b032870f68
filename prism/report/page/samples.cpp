#include "prism/report/page/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "prism/core/progress.h"
#include "prism/report/draw/escape.h"
#include "prism/report/page/parts.h"

namespace prism {
namespace {

struct ShownSample {
  const Run* run;
  const RunSample* sample;
};

/// For a prompt, the last sample at each temperature, from the group's first run that has any.
std::vector<ShownSample> last_samples(const RunGroup& group, const std::string& prompt) {
  for (const auto& run : group.runs) {
    std::map<std::optional<double>, ShownSample> last;
    for (const auto& sample : run.samples)
      if (sample.prompt == prompt) last.insert_or_assign(sample.temperature, ShownSample{&run, &sample});
    if (last.empty()) continue;
    std::vector<ShownSample> shown;
    for (const auto& [temperature, sample] : last) shown.push_back(sample);
    return shown;
  }
  return {};
}

std::vector<std::string> prompts_of(const Comparison& comparison) {
  std::vector<std::string> prompts;
  for (const auto& group : comparison.groups) {
    for (const auto& run : group.runs) {
      for (const auto& sample : run.samples) {
        if (std::find(prompts.begin(), prompts.end(), sample.prompt) == prompts.end()) prompts.push_back(sample.prompt);
      }
    }
  }
  return prompts;
}

/// ", seed 1, after 4.0M tokens, temperature 0.8".
std::string sample_origin(const RunGroup& group, const ShownSample& shown) {
  const std::string seed = group.runs.size() > 1 && shown.run->seed ? fmt::format(", seed {}", *shown.run->seed) : "";
  const auto& temperature = shown.sample->temperature;
  return fmt::format("{}, after {} tokens{}", seed, short_number(static_cast<double>(shown.sample->trained)),
                     temperature ? fmt::format(", temperature {}", *temperature) : "");
}

std::string sample_html(const Comparison& comparison, size_t group, const ShownSample& shown) {
  const std::string origin = sample_origin(comparison.groups[group], shown);
  return fmt::format(
      "<article class=\"sample\">\n<header>{}{}</header>\n<p dir=\"auto\"><span "
      "class=\"prompt\">{}</span>{}</p>\n</article>\n",
      labelled_key(comparison, group), escape_html(origin), escape_html(shown.sample->prompt),
      escape_html(shown.sample->text));
}

}  // namespace

std::string samples_section(const Comparison& comparison) {
  std::string content;
  const auto prompts = prompts_of(comparison);
  for (size_t i = 0; i < prompts.size(); ++i) {
    content += fmt::format("<h3>Prompt {}</h3>\n<div class=\"samples\">\n", i + 1);
    for (size_t group = 0; group < comparison.groups.size(); ++group) {
      for (const auto& shown : last_samples(comparison.groups[group], prompts[i]))
        content += sample_html(comparison, group, shown);
    }
    content += "</div>\n";
  }
  return section_html(kTraining, "Samples", content);
}

std::string samples_markdown(const Comparison& comparison) {
  std::string text;
  for (const auto& prompt : prompts_of(comparison)) {
    for (const auto& group : comparison.groups) {
      for (const auto& shown : last_samples(group, prompt))
        text += fmt::format("{}{}:\n\n{}\n", escape_markdown(group.label), sample_origin(group, shown),
                            markdown_code_block(prompt + shown.sample->text));
    }
  }
  return text.empty() ? "" : "## Samples\n\n" + text;
}

}  // namespace prism
