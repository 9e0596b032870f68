// Runs gnuplot as a child process: takes a script, returns the drawing.
//
//   const std::string svg = run_gnuplot("gnuplot", "set terminal svg\nplot sin(x)\n");
#pragma once

#include <string>
#include <string_view>

namespace prism {

/// @param program  a name looked up in PATH, or a path.
/// @return         what the script draws with gnuplot's svg terminal.
/// @throws FailedError if the program is missing, fails or draws nothing. The message can be shown in place of the
///         plot.
std::string run_gnuplot(const std::string& program, std::string_view script);

/// Checks that gnuplot works, before long work that ends in a drawing. @throws FailedError like run_gnuplot().
void check_gnuplot(const std::string& program);

}  // namespace prism
