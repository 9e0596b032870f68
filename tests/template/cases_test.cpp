// Templates with what jinja2 renders for them, and a way for scripts to render templates of their own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/template/template.h"

namespace prism {
namespace {

/// {"output", "generated"} or {"error"}.
Json rendered(const std::string& text, const Json& values, const RenderOptions& given, bool is_tracked) {
  Json result = Json::object();
  try {
    RenderOptions options = given;
    std::vector<ByteRange> ranges;
    if (is_tracked) options.generated = &ranges;
    result["output"] = Template::parse(text).render(values, options);
    result["generated"] = Json::array();
    for (const auto& range : ranges) result["generated"].push_back({range.begin, range.end});
  } catch (const InputError& error) {
    result = {{"error", error.what()}};
  }
  return result;
}

TEST(ChatTemplates, RenderAsJinja2Does) {
  const auto cases = Json::parse(read_file(PRISM_SOURCE_DIR "/tests/template/fixtures/cases.json"));
  for (const auto& row : cases) {
    const auto text = row["template"].get<std::string>();
    const Json result = rendered(text, row["values"], {}, row.contains("generated"));
    if (row.contains("output")) {
      ASSERT_FALSE(result.contains("error")) << text << "\n" << result["error"];
      EXPECT_EQ(result["output"], row["output"]) << text;
      if (row.contains("generated")) {
        EXPECT_EQ(result["generated"], row["generated"]) << text;
      }
    } else {
      ASSERT_TRUE(result.contains("error")) << text << "\n" << result["output"];
      EXPECT_NE(result["error"].get<std::string>().find("[template] line "), std::string::npos) << result["error"];
    }
  }
  EXPECT_GT(cases.size(), 200u);
}

/// Used by benchmarks/peers/templates.py. Without a file there is nothing to do.
TEST(ChatTemplates, RendersCasesOfAFile) {
  const char* given = std::getenv("PRISM_TEMPLATE_CASES");
  const char* results_path = std::getenv("PRISM_TEMPLATE_RESULTS");
  if (!given || !results_path) GTEST_SKIP() << "PRISM_TEMPLATE_CASES names no file; benchmarks/peers/templates.py does";
  const auto file = Json::parse(read_file(given));
  Json results = Json::array();
  for (const auto& row : file["cases"]) {
    RenderOptions options;
    options.now = row["now"].get<std::time_t>();
    results.push_back(rendered(file["templates"][row["template"].get<std::string>()].get<std::string>(), row["values"],
                               options, row["tracked"].get<bool>()));
  }
  write_file(results_path, results.dump());
}

}  // namespace
}  // namespace prism
