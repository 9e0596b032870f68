#include "prism/template/template.h"

#include <nlohmann/json.hpp>

#include "prism/core/error.h"
#include "prism/template/evaluator.h"
#include "prism/template/syntax/parser.h"
#include "prism/template/values/from_json.h"

namespace prism {

Template Template::parse(std::string_view text) {
  return Template(std::make_shared<const jinja::Syntax>(jinja::parse_template(text)));
}

std::string Template::render(const Json& values, const RenderOptions& options) const {
  PRISM_CHECK(values.is_object(), "template", "expected an object of variables; found {}; name each of them.",
              values.type_name());
  std::string output;
  jinja::Rendering run(options.limits, options.now.value_or(std::time(nullptr)));
  run.output = &output;
  std::vector<ByteRange> generated;
  if (options.generated) run.generated = &generated;
  jinja::Evaluator(run, *syntax_).render(values);
  if (options.generated) *options.generated = std::move(generated);
  return output;
}

}  // namespace prism
