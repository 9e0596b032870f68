// Settings of the whole process that must be made before the first kernel runs.
#pragma once

namespace prism {

/// Sets options that libraries read only once: MKL_CBWR (same bits for every buffer alignment) and malloc thresholds
/// (freed buffers stay mapped, since page faults cost more than many kernels). Call it first in main().
void set_up_process();

}  // namespace prism
