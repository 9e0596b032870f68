// One task by its name, and what lm-evaluation-harness makes of some of them.
#pragma once

#include <string>

#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/evaluation/tasks/task.h"

namespace prism {

inline Task task_of(const std::string& name) {
  return find_tasks({name}).at(0);
}

inline const Json& harness() {
  static const Json json =
      parse_json(read_file(PRISM_SOURCE_DIR "/tests/evaluation/tasks/fixtures/harness.json"), "harness.json");
  return json;
}

}  // namespace prism
