#include "prism/evaluation/paired.h"

#include <cmath>

#include "prism/core/error.h"

namespace prism {

PairedLoss paired_loss(const std::vector<DocumentScore>& a, const std::vector<DocumentScore>& b) {
  PRISM_ASSERT(a.size() == b.size(), "paired_loss", "{} and {} documents", a.size(), b.size());
  PairedLoss result;
  double nats = 0, tokens = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    PRISM_ASSERT(a[i].tokens == b[i].tokens, "paired_loss", "document {} of {} and {} tokens", i, a[i].tokens,
                 b[i].tokens);
    if (a[i].tokens == 0) continue;
    ++result.documents;
    result.better += a[i].nats < b[i].nats;
    nats += a[i].nats - b[i].nats;
    tokens += static_cast<double>(a[i].tokens);
  }
  PRISM_ASSERT(result.documents > 0, "paired_loss", "no document with a predicted token");
  result.difference = nats / tokens;
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double residual = a[i].nats - b[i].nats - result.difference * static_cast<double>(a[i].tokens);
    squares += residual * residual;
  }
  const auto count = static_cast<double>(result.documents);
  if (result.documents > 1) result.standard_error = std::sqrt(count / (count - 1) * squares) / tokens;
  result.interval = t_interval(result.difference, result.standard_error, result.documents, 0.95);
  return result;
}

}  // namespace prism
