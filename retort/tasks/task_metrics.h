#pragma once
// The metrics and filters of a task file.

#include <vector>

#include "retort/tasks/task.h"
#include "retort/tasks/task_file.h"

namespace retort::tasks {

/// `list` is null where the file has none: those of the kind of task then.
std::vector<MetricOptions> read_metrics(const io::YamlValue* list, OutputType type, Mistakes& mistakes);

/// Likewise; without a list there is one chain "none" that takes the answer as it is.
std::vector<FilterChain> read_filters(const io::YamlValue* list, Mistakes& mistakes);

}  // namespace retort::tasks
