#pragma once
// Whether a directory may be worked in.  A run replaces and removes files, so it works in no directory that
// holds what somebody else put there: only in one that Retort made, that is new, or that is empty.

#include "retort/base/files.h"

namespace retort::record {

/// Whether Retort made this run directory: its run.json says so.  Earlier versions wrote none; theirs are
/// known by recipe.yaml, a resolved recipe.json, and the folders models, checkpoints and stages together.
/// Throws StorageError where run.json cannot be read, UsageError where it is of a later version.
bool is_own_directory(const base::Path& path);

/// Throws UsageError where `path` holds files and is no run directory, StorageError where it is no directory,
/// or a link to nowhere.  Changes nothing.
void require_own_or_empty(const base::Path& path);

/// Makes an existing directory a run directory, unless it is marked as one.  Throws StorageError.
void mark_as_own(const base::Path& path);
/// Takes the mark away where nothing else is left; tells nothing where that fails.
void unmark_if_empty(const base::Path& path) noexcept;

}  // namespace retort::record
