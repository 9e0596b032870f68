// Compares two models on the same documents or questions, with confidence intervals.
//
//   const PairedLoss paired = paired_loss(progressive.documents, uniform.documents);
//   fmt::print("{:+.4f} +- {:.4f}", paired.difference, paired.standard_error);
#pragma once

#include <cstdint>
#include <vector>

#include "prism/core/statistics.h"
#include "prism/evaluation/perplexity.h"

namespace prism {

/// The loss of a minus that of b, nats per token; negative: a predicts the text better.
struct PairedLoss {
  double difference = 0, standard_error = 0;
  Interval interval;                  ///< 95%, Student's t with documents - 1 degrees of freedom
  int64_t documents = 0, better = 0;  ///< better: documents that a predicts better than b
};

/// With n_i the tokens of document i and d_i its nats under a minus those under b:
///
///   difference = D = sum d_i / sum n_i,  standard error = sqrt(N / (N - 1) sum (d_i - D n_i)^2) / sum n_i
///
/// This is the ratio estimator over documents, because tokens of one document are not independent. Documents without a
/// predicted token are left out. Source: Cochran, Sampling Techniques, 1977, section 6.3.
/// @throws InternalError if the lists differ in documents or tokens, or if no document has a predicted token.
PairedLoss paired_loss(const std::vector<DocumentScore>& a, const std::vector<DocumentScore>& b);

}  // namespace prism
