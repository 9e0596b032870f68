#include "prism/models/device.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>

#include <charconv>

#include "prism/core/error.h"

namespace prism {
namespace {

constexpr const char* kCuda = "cuda";

/// Returns N for "cuda:N" and 0 for "cuda". @throws InputError for any other name.
int parse_index(const std::string& name) {
  const std::string start = std::string(kCuda) + ":";
  int index = 0;
  if (name == kCuda) return index;
  const char* end = name.data() + name.size();
  const bool reads = name.starts_with(start) && [&] {
    const auto [after, code] = std::from_chars(name.data() + start.size(), end, index);
    return code == std::errc() && after == end && index >= 0;
  }();
  PRISM_CHECK(reads, "device", "expected cpu, cuda or cuda:N; found \"{}\"; choose one of them.", name);
  return index;
}

}  // namespace

torch::Device open_device(const std::string& name) {
  if (name == "cpu") return torch::kCPU;
  const int index = parse_index(name);
  // Never closed, because what the library registers must live as long as the process.
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr)
    throw FailedError("device",
                      fmt::format("expected LibTorch's CUDA libraries for --device {}; found none that load ({}); "
                                  "install the wheel's CUDA libraries with scripts/setup.sh --cuda, or leave out "
                                  "--device.",
                                  name, ::dlerror()));
  const auto devices = static_cast<unsigned char>(at::detail::getCUDAHooks().deviceCount());
  if (index >= devices)
    throw FailedError("device", fmt::format("expected a GPU for --device {}; found {}; leave out --device to run on "
                                            "the CPU.",
                                            name, devices == 0 ? "none" : fmt::format("{} of them", devices)));
  return {torch::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

}  // namespace prism
