// The classes that labels name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace prism {

/// A label as it is written, and where it was first found.
struct FoundLabel {
  std::string text, place;
  bool in_training = false;
  int64_t rows = 1;  ///< with the label; those that may be a CSV's row of names do not count
};

/// Maps labels to classes.
struct ClassMap {
  std::vector<std::string> names;       ///< of the classes, in order
  std::vector<int32_t> class_of_label;  ///< the class of each found label
};

/// Whole numbers count classes from 0 or 1: from 0 if a training text has 0, from 1 if one has the number of classes.
/// Words are the classes' names.
/// @param labels  all labels found, each once.
/// @param names   names of the classes in order; empty: the training texts have all classes, numbers name themselves,
///                and words are ordered by their bytes.
/// @throws InputError naming the place: a label that is none of the classes; numbers that do not show where they begin,
///         or have gaps; without names, a label that only stands where a CSV may have its row of names, while each
///         other one has two rows or more, or all others are whole numbers and it is none; without names, labels that
///         are none and stand in one row each, among whole numbers; fewer than two classes; a
///         name twice.
ClassMap map_classes(const std::vector<FoundLabel>& labels, std::vector<std::string> names);

/// Reads names of classes, one a line. @throws InputError for a file without names or one that cannot be read.
std::vector<std::string> read_class_names(const std::filesystem::path& file);

}  // namespace prism
