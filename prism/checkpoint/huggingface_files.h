// The Python files with which transformers loads a model of prism's own format (trust_remote_code). CMake makes strings
// of the files in checkpoint/huggingface.
#pragma once

namespace prism {

extern const char* const kConfigurationFile;  ///< configuration_prism.py
extern const char* const kModelingFile;       ///< modeling_prism.py

}  // namespace prism
