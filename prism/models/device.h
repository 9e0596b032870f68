// The device models run on: the CPU, or a GPU, whose libraries are loaded on demand.
//
//   const torch::Device device = open_device("cuda");        // before any tensor is created
#pragma once

#include <torch/types.h>

#include <string>

namespace prism {

/// Opens "cpu", "cuda" or "cuda:N".
///
/// For a GPU, this loads LibTorch's CUDA library (libtorch_cuda.so of the same wheel) into the process, so that one
/// program runs on machines with and without a GPU. LibTorch looks for that library only once, at its first use of a
/// device, so call this function before any other use.
/// @throws InputError for another name; FailedError if the library cannot be loaded or there is no such GPU.
torch::Device open_device(const std::string& name);

}  // namespace prism
