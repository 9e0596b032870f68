// libFuzzer entry: parses any bytes as a chat template and renders a fixed conversation with it. Input that is wrong
// must end in an InputError; anything else that is thrown, and every finding of the sanitizers, is a fault.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "prism/core/error.h"
#include "prism/template/template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const prism::Json values = prism::Json::parse(R"({
    "messages": [{"role": "system", "content": " Be brief. "},
                 {"role": "user", "content": [{"type": "text", "text": "né 灯🙂 <&>'"}]},
                 {"role": "assistant", "content": "", "tool_calls": [{"id": "call12345", "type": "function",
                  "function": {"name": "look", "arguments": {"place": "A", "days": 2.5, "deep": [1, [2, null]]}}}]},
                 {"role": "tool", "name": "look", "content": "ok\n\nso"}],
    "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object",
              "properties": {"place": {"type": "string", "enum": ["A", "b"]}}, "required": ["place"]}}}],
    "documents": null, "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>", "n": 7, "f": -0.5})");
  std::vector<prism::ByteRange> generated;
  prism::RenderOptions options;
  options.limits = {.steps = 20'000, .value_bytes = 1 << 18, .total_bytes = 1 << 22};
  options.now = 1720256703;
  if (size % 2 == 0) options.generated = &generated;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    prism::Template::parse(text).render(values, options);
  } catch (const prism::InputError&) {
    return 0;
  }
  return 0;
}
