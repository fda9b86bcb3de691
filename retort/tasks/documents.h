#pragma once
// The documents of a task: rows of JSON Lines, JSON or Parquet files, which lie on this machine.

#include <functional>
#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/tasks/task.h"

namespace retort::tasks {

/// Hands over the rows of a Parquet file as objects, in order; throws DataError.
using ParquetReader =
    std::function<void(const base::Path& file, const std::function<void(base::Json row)>& row)>;

struct DataOptions {
  base::Path directory;  ///< where data sets of the Hugging Face Hub lie; empty: none do
  ParquetReader read_parquet;
};

/// A split.
struct Documents {
  std::vector<base::Json> rows;       ///< objects, each with all columns; what a row lacks is null
  std::vector<std::string> features;  ///< the columns, in the order in which they came
  std::vector<base::Path> files;      ///< that were read
};

struct TaskDocuments {
  Documents evaluated;
  std::vector<base::Json> fewshot;  ///< the pool of examples; empty where the task takes none
  bool has_pool = false;
};

/// Reads a split of a task.  Throws DataError or StorageError for a missing split or file, for a row that is
/// no object (with file and line), and for a split without documents.
Documents read_split(const Task& task, const std::string& split, const DataOptions& options);

/// Reads what a task is judged on, and the examples where it takes any.
TaskDocuments read_documents(const Task& task, const DataOptions& options);

/// The files of a split, without reading them.  Throws as above.
std::vector<base::Path> files_of(const Task& task, const std::string& split, const DataOptions& options);

}  // namespace retort::tasks
