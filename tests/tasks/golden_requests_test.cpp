// The files of tasks/ make the requests that lm-eval's own tasks of those names make.
// benchmarks/tasks/check_tasks.py
// --golden wrote the documents and lm-eval's requests.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/tasks/documents.h"
#include "retort/tasks/requests.h"
#include "retort/tasks/task.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::tasks {
namespace {

const base::Json& golden() {
  static const base::Json json =
      base::parse_json(base::read_file(test::source() / "tests" / "tasks" / "golden_requests.json"));
  return json;
}

void write_documents(const base::Json& documents, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const auto& [split, rows] : documents.items()) {
    std::ofstream file(folder / (split + ".jsonl"));
    for (const auto& row : rows) file << row.dump() << '\n';
  }
}

class GoldenRequests : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenRequests, AreThoseOfLmEval) {
  const auto& one = golden().at(GetParam());
  const test::TemporaryDirectory hub;
  write_documents(one.at("documents"), hub / one.at("folder").get<std::string>());

  for (const auto& [shots, expected] : one.at("requests").items()) {
    Task task = read_task(test::source() / "tasks" / GetParam());
    set_num_fewshot(task, std::stoi(shots));
    TaskDocuments documents = read_documents(task, {.directory = hub.path(), .read_parquet = {}});
    const PreparedTask prepared = prepare(std::move(task), std::move(documents));

    ASSERT_EQ(prepared.documents.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      base::Json texts = base::Json::array();
      for (const auto& request : prepared.documents[i].requests)
        texts.push_back({request.context, request.continuation});
      EXPECT_EQ(texts, expected[i]) << shots << " examples, document " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenRequests,
                         ::testing::Values("arc_easy.yaml", "arc_challenge.yaml", "hellaswag.yaml",
                                           "winogrande.yaml", "piqa.yaml", "copa.yaml", "openbookqa.yaml",
                                           "boolq.yaml", "lambada_openai.yaml", "wikitext.yaml", "gsm8k.yaml",
                                           "ifeval.yaml", "mmlu/anatomy.yaml",
                                           "mmlu/high_school_computer_science.yaml"),
                         [](const auto& one) {
                           std::string name =
                               std::string(one.param).substr(0, std::string(one.param).find('.'));
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name;
                         });

}  // namespace
}  // namespace retort::tasks
