#pragma once
// metrics.jsonl: an object per line, appended as training goes.  It is a log, not state: a line that cannot
// be written never stops a run but is told of, and a line that is damaged is left out when reading.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/base/line_file.h"
#include "retort/record/observer.h"

namespace retort::record {

class Metrics {
 public:
  /// Opens for appending and drops a last line that was cut off; throws StorageError.
  explicit Metrics(base::Path path);

  /// Adds one object, handed to the system as a whole line.  Non-finite numbers become null.
  void append(const base::Json& object);
  /// Makes all lines so far durable, and warns of those that were lost since the last time and why; called
  /// with each checkpoint.
  void sync(Observer& observer);
  /// Rewrites the file without the lines of `stage` whose step is greater than `step`; -1 drops all of the
  /// stage. Throws StorageError.
  void drop_after(std::string_view stage, std::int64_t step);

  const base::Path& path() const { return path_; }

 private:
  /// Rewrites the file with the lines that `keep` wants and those that are none of ours.
  void rewrite(const std::function<bool(const base::Json& object)>& keep);

  base::Path path_;
  base::LineFile file_;
  std::int64_t lost_lines_ = 0;  ///< since the last sync
  int lost_because_ = 0;         ///< errno of the last of them
};

/// Calls `use` for each object of a metrics file; none when there is no file.  Returns how many damaged lines
/// were left out; a last line that was cut off is not counted.  Throws StorageError.
std::int64_t for_each_metric(const base::Path& path, const std::function<void(base::Json object)>& use);

/// All objects of a metrics file, as for_each_metric() gives them; the damaged lines are counted where
/// `damaged` is given.
std::vector<base::Json> read_metrics(const base::Path& path, std::int64_t* damaged = nullptr);

}  // namespace retort::record
