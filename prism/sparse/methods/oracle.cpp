#include "prism/sparse/methods/oracle.h"

#include "prism/sparse/exact_mass.h"
#include "prism/sparse/option_checks.h"
#include "prism/sparse/row_by_row.h"
#include "prism/sparse/top_p.h"

namespace prism {
std::unique_ptr<Selector> make_oracle_selector(const OracleOptions& options) {
  check_share("oracle", "p", options.p);
  return std::make_unique<RowByRowSelector>(options.blocks,
                                            [options](const HeadInput& head, int64_t row, std::span<uint8_t> kept) {
                                              keep_top_p(exact_mass(head, row).mean(0), options.p, kept);
                                            });
}

}  // namespace prism
