// One task by its name.
#pragma once

#include <string>

#include "prism/evaluation/tasks/task.h"

namespace prism {

inline Task task_of(const std::string& name) {
  return find_tasks({name}).at(0);
}

}  // namespace prism
