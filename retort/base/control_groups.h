#pragma once
// What the control groups of this process leave of the machine's memory.

#include <cstdint>

#include "retort/base/files.h"

namespace retort::base {

/// Bytes that the process may still take before a limit of its own group or of one above it, version 1 or 2;
/// the largest number where there is none.  Page cache that the kernel would give up counts as free.
/// `root` has proc/self and what proc/self/mountinfo says is mounted.
/// Source: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of the Linux kernel.
std::int64_t memory_left_by_control_groups(const Path& root = "/");

}  // namespace retort::base
