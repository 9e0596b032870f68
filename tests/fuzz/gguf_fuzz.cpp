// Reads any bytes as a GGUF file: all metadata, and the values of all tensors.
#include <cstdlib>
#include <vector>

#include "prism/core/error.h"
#include "prism/formats/gguf.h"
#include "prism/kernels/quant/quant.h"

namespace prism {
namespace {

/// Asks for the value in every way. Kinds that it does not have are refused.
void read_key(const GgufMetadata& metadata, const std::string& key) {
  const auto attempt = [](auto&& call) {
    try {
      call();
    } catch (const InputError&) {
    }
  };
  attempt([&] { (void)metadata.text(key); });
  attempt([&] { (void)metadata.integer(key); });
  attempt([&] { (void)metadata.find_real(key); });
  attempt([&] { (void)metadata.find_flag(key); });
  attempt([&] { (void)metadata.texts(key); });
  attempt([&] { (void)metadata.integers(key); });
  attempt([&] { (void)metadata.find_reals(key); });
  (void)gguf_type_name(*metadata.find(key));
}

void read_tensor(const GgufTensor& tensor) {
  const auto bytes = block_tensor_bytes(tensor.type, tensor.shape);
  if (!bytes || *bytes != static_cast<int64_t>(tensor.data.size())) std::abort();
  const BlockLayout& layout = block_layout(tensor.type);
  std::vector<float> values(static_cast<size_t>(*bytes / layout.bytes * layout.elements));
  dequantise(tensor.type, tensor.data, values);
}

}  // namespace
}  // namespace prism

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const prism::GgufReader reader(std::as_bytes(std::span(data, size)), "fuzz.gguf");
    for (const auto& [key, value] : reader.metadata().values()) prism::read_key(reader.metadata(), key);
    for (const prism::GgufTensor& tensor : reader.tensors()) {
      if (reader.find(tensor.name).data.data() != tensor.data.data()) std::abort();
      prism::read_tensor(tensor);
    }
  } catch (const prism::InputError&) {
  }
  return 0;
}
