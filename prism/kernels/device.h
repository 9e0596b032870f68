// Where models run: the CPU, or a GPU whose libraries are loaded when one is asked for.
//
//   const torch::Device device = open_device("cuda");        // before any tensor is made
#pragma once

#include <torch/types.h>

#include <string>

namespace prism {

/// "cpu", "cuda" or "cuda:N".
///
/// For a GPU, LibTorch's CUDA part (libtorch_cuda.so of the same wheel) is loaded into the process; one program serves
/// machines with and without. LibTorch looks for that part once, at its first use of a device: call this before.
/// @throws InputError for another name, FailedError if the library cannot be loaded or there is no such GPU: a sentence
///         that says which.
torch::Device open_device(const std::string& name);

}  // namespace prism
