#pragma once
// A task as lm-evaluation-harness writes it beside its results.

#include <string>
#include <vector>

#include "retort/io/yaml.h"
#include "retort/tasks/task.h"

namespace retort::tasks {

/// Keys of a task that lm-eval writes beside its results, in its order.
std::vector<std::string> config_keys();

/// Keys in lm-eval's order, with its defaults, and without those that are not given.
base::Json config_of(const Task& task, const io::YamlValue& root);

}  // namespace retort::tasks
