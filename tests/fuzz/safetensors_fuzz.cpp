// Reads any bytes as a safetensors file: all entries and every byte of their data.
#include <cstdlib>

#include "prism/core/error.h"
#include "prism/formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const prism::SafetensorsReader reader(std::as_bytes(std::span(data, size)), "fuzz.safetensors");
    uint64_t sum = 0;
    for (const prism::TensorEntry& entry : reader.entries()) {
      if (reader.find(entry.name).bytes() != static_cast<int64_t>(entry.data.size())) std::abort();
      for (const std::byte byte : entry.data) sum += static_cast<uint64_t>(byte);
    }
    if (sum > 255 * size) std::abort();
  } catch (const prism::InputError&) {
  }
  return 0;
}
