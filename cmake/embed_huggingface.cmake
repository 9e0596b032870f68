# Writes the Python files that saved models carry for transformers as C++ strings.
#
#   cmake -D FOLDER=prism/checkpoint/huggingface -D OUT=build/release/prism/huggingface_files.cpp -P cmake/embed_huggingface.cmake

foreach(name configuration modeling)
  file(READ ${FOLDER}/${name}_prism.py ${name})
endforeach()

file(WRITE ${OUT} "// Made by cmake/embed_huggingface.cmake.
#include \"prism/checkpoint/huggingface_files.h\"

namespace prism {

const char* const kConfigurationFile = R\"py(${configuration})py\";
const char* const kModelingFile = R\"py(${modeling})py\";

}  // namespace prism
")
