#include "prism/template/values/from_json.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "prism/core/text/utf8.h"

namespace prism::jinja {
namespace {

Value text_from_json(Rendering& run, const std::string& bytes) {
  const size_t invalid = find_invalid_utf8(bytes);
  if (invalid != std::string::npos)
    run.refuse("expected values in UTF-8; found another byte at offset {} of a text; convert it.", invalid);
  return run.text(bytes);
}

}  // namespace

Value from_json(Rendering& run, const Json& json, int level) {
  run.deeper(level);
  switch (json.type()) {
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<int64_t>();
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        run.refuse("expected whole numbers within 63 bits; found {}; use a float.", json.get<uint64_t>());
      return static_cast<int64_t>(json.get<uint64_t>());
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return text_from_json(run, json.get_ref<const std::string&>());
    case Json::value_t::array: {
      Values items;
      for (const auto& item : json) items.push_back(from_json(run, item, level + 1));
      return run.list(std::move(items));
    }
    case Json::value_t::object: {
      std::vector<std::pair<Value, Value>> entries;
      for (const auto& [key, value] : json.items())
        entries.emplace_back(text_from_json(run, key), from_json(run, value, level + 1));
      return run.dict(entries);
    }
    default:
      return None{};
  }
}

}  // namespace prism::jinja
