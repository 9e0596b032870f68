// gnuplot as a child process: a script goes in, the drawing comes out.
//
//   const std::string svg = run_gnuplot("gnuplot", "set terminal svg\nplot sin(x)\n");
#pragma once

#include <string>
#include <string_view>

namespace prism {

/// @param program  a name looked up in PATH, or a path.
/// @return         what the script draws with gnuplot's svg terminal.
/// @throws FailedError if the program is missing, fails or draws nothing: a sentence that can stand in the plot's
/// place.
std::string run_gnuplot(const std::string& program, std::string_view script);

/// For long work that ends in a drawing. @throws FailedError as run_gnuplot(), before it begins.
void check_gnuplot(const std::string& program);

}  // namespace prism
