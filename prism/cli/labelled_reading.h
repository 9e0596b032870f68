// What commands that run a classifier read: labelled examples, and single texts given on the command line.
//
//   const LabelledDataset data("data/snli", "test");
//   const auto model = load_classifier_for(data, "runs/snli", words.compute, "eval");
//   const auto labelled = label_all(model, data, {}, "eval");
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "prism/cli/options/compute_options.h"
#include "prism/evaluation/classification.h"

namespace prism {

/// Loads a classifier. @param operation  named by errors, here and below.
/// @throws InputError for a model of other classes, fields or tokens than the data's; also as load_classifier().
ClassifierFolder load_classifier_for(const LabelledDataset& data, const std::string& name,
                                     const ComputeOptions& compute, const std::string& operation);

/// @throws InputError if the model's folder has no tokenizer.
void check_has_tokenizer(const ClassifierFolder& model, const std::string& operation);

/// label_examples() with a progress line. @throws FailedError when stopped by a signal, or for a loss that is not
/// finite.
LabelledExamples label_all(const ClassifierFolder& model, const LabelledDataset& data, const LabelOptions& options,
                           const std::string& operation);

/// Says on standard error how many of the texts were cut to the model's context, if any.
void tell_cut(int64_t cut, int64_t texts, const ClassifierFolder& model);

/// The number of fields of a text in the model's training, at least 1.
size_t text_fields_of(const LabelScheme& scheme);

/// @throws InputError if a text given by --text is not UTF-8.
void check_utf8(const std::string& text, const std::string& operation);

/// The fields of a text given by --text, read like the model's training texts.
/// @throws InputError for another number of fields, text that is not UTF-8, and only blanks.
std::vector<std::string> read_text_fields(const std::vector<std::string>& given, const LabelScheme& scheme,
                                          const std::string& operation);

}  // namespace prism
