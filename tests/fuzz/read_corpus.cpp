// Runs a fuzz target once on every file of a folder, where libFuzzer is missing.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "prism/core/files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int count, char** arguments) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(count == 2 ? arguments[1] : "")) {
    const std::string content = prism::read_file(entry.path());
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(content.data()), content.size());
    ++files;
  }
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;  // a test of nothing must not pass
}
