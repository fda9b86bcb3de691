#pragma once
// Task files and their documents in a folder of a test.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/tasks/documents.h"
#include "retort/tasks/requests.h"
#include "retort/tasks/task.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort::tasks {

/// A folder that is gone after the test.
class TaskFolder {
 public:
  base::Path write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((path() / name).parent_path());
    base::write_file_atomically(path() / name, content);
    return path() / name;
  }
  const base::Path& path() const { return directory_.path(); }

 private:
  test::TemporaryDirectory directory_;
};

/// A multiple-choice task on d.jsonl, and lines of YAML more.
inline std::string choice_task(const std::string& more = "") {
  return "task: t\ndataset_path: json\ndataset_kwargs: {data_files: {test: d.jsonl}}\ntest_split: test\n"
         "output_type: multiple_choice\ndoc_to_text: \"Q: {{q}}\\nA:\"\ndoc_to_target: gold\n"
         "doc_to_choice: choices\n" +
         more;
}

inline const char* const kChoiceRows =
    "{\"q\": \"one\", \"choices\": [\"a\", \"bb\"], \"gold\": 0}\n"
    "{\"q\": \"two\", \"choices\": [\"c\", \"dd\"], \"gold\": 1}\n"
    "{\"q\": \"three\", \"choices\": [\"e\", \"ff\"], \"gold\": 1}\n";

/// The task of a folder, prepared.
inline PreparedTask prepared(const TaskFolder& folder, const std::string& yaml, const std::string& rows,
                             const PromptOptions& options = {}) {
  folder.write("d.jsonl", rows);
  Task task = read_task(folder.write("t.yaml", yaml));
  TaskDocuments documents = read_documents(task, {});
  return prepare(std::move(task), std::move(documents), options);
}

}  // namespace retort::tasks
