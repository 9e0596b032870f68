# prism_torch: LibTorch from the Python wheel in .venv (or from PRISM_PYTHON's torch), as one imported target.
# Not find_package(Torch): with the CUDA wheel it requires a CUDA toolkit, which a CPU program does not need.
set(PRISM_PYTHON "${PROJECT_SOURCE_DIR}/.venv/bin/python" CACHE FILEPATH "the Python whose torch wheel to link")
execute_process(
  COMMAND ${PRISM_PYTHON} -c "import importlib.util as u, os; print(os.path.dirname(u.find_spec('torch').origin))"
  OUTPUT_VARIABLE PRISM_TORCH_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
if(NOT status EQUAL 0 OR NOT EXISTS "${PRISM_TORCH_ROOT}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "[cmake] expected the torch wheel in ${PRISM_PYTHON}'s packages; found none; run scripts/setup.sh first.")
endif()

# The wheel carries headers of a different fmt version than the one that is linked, so the system's must be found first.
# They need a separate folder, because compilers search the system's include folder last.
find_path(PRISM_FMT_INCLUDE fmt/format.h REQUIRED NO_CMAKE_PATH)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/system_fmt)
file(CREATE_LINK ${PRISM_FMT_INCLUDE}/fmt ${PROJECT_BINARY_DIR}/system_fmt/fmt SYMBOLIC)

add_library(prism_torch INTERFACE)
target_include_directories(prism_torch SYSTEM INTERFACE
  ${PROJECT_BINARY_DIR}/system_fmt
  ${PRISM_TORCH_ROOT}/include ${PRISM_TORCH_ROOT}/include/torch/csrc/api/include)
target_compile_options(prism_torch INTERFACE -fopenmp)
# Links the wheel's own libgomp by path: two OpenMP run times in one process would start two thread teams.
target_link_libraries(prism_torch INTERFACE
  ${PRISM_TORCH_ROOT}/lib/libtorch_cpu.so ${PRISM_TORCH_ROOT}/lib/libc10.so ${PRISM_TORCH_ROOT}/lib/libgomp.so.1)
target_link_options(prism_torch INTERFACE -Wl,--allow-shlib-undefined)
set(CMAKE_BUILD_RPATH ${PRISM_TORCH_ROOT}/lib)
set(CMAKE_INSTALL_RPATH ${PRISM_TORCH_ROOT}/lib)
