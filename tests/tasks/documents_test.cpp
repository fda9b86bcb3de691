#include "retort/tasks/documents.h"

#include "tasks/files_for_tests.h"

namespace retort::tasks {
namespace {

using base::DataError;
using base::Json;

Task task_of(const TaskFolder& folder, const std::string& yaml) {
  return read_task(folder.write("t.yaml", yaml));
}

TEST(TaskDocuments, ReadsLinesAndLists) {
  const TaskFolder folder;
  const Task task = task_of(folder, choice_task());
  folder.write("d.jsonl", "{\"b\": 1, \"a\": 2}\n\n{\"a\": 3}\n");
  const auto lines = read_split(task, "test", {});

  EXPECT_EQ(lines.features, (std::vector<std::string>{"b", "a"}));
  ASSERT_EQ(lines.rows.size(), 2U);
  EXPECT_EQ(lines.rows[1].dump(), R"({"b":null,"a":3})");

  folder.write("l.json", "[{\"x\": [1, {\"k\": 1}]}, {\"x\": []}]");
  auto other = task;
  other.data.files = {{"test", {"l.json"}}};
  EXPECT_EQ(read_split(other, "test", {}).rows.size(), 2U);
}

TEST(TaskDocuments, GivesColumnsOneType) {
  const TaskFolder folder;
  const Task task = task_of(folder, choice_task());
  folder.write("d.jsonl", "{\"n\": 1, \"o\": {\"p\": 1}}\n{\"n\": 2.5, \"o\": {\"q\": 2, \"p\": 3}}\n");

  EXPECT_EQ(read_split(task, "test", {}).rows[0].dump(), R"({"n":1.0,"o":{"p":1,"q":null}})");
}

TEST(TaskDocuments, FindsASnapshotsFiles) {
  const TaskFolder folder;
  const auto yaml = std::string(
      "task: t\ndataset_path: allenai/ai2_arc\ndataset_name: ARC-Easy\ntest_split: test\n"
      "doc_to_text: q\ndoc_to_target: a\n");
  const Task task = task_of(folder, yaml);
  folder.write("data/ai2_arc/ARC-Easy/test-00000-of-00001.jsonl", "{\"q\": 1}\n");
  folder.write("data/ai2_arc/ARC-Challenge/test.jsonl", "{\"q\": 2}\n");
  const DataOptions options{.directory = folder.path() / "data", .read_parquet = {}};

  EXPECT_EQ(read_split(task, "test", options).rows[0].at("q"), 1);
  EXPECT_SAYS(test::message_of<DataError>([&] { (void)read_split(task, "train", options); }),
              "found no files of the split \"train\" of \"allenai/ai2_arc\", configuration \"ARC-Easy\"");
  EXPECT_SAYS(test::message_of<DataError>([&] { (void)read_split(task, "test", {}); }), "by --data");
}

TEST(TaskDocuments, HandsParquetToItsReader) {
  const TaskFolder folder;
  Task task = task_of(folder, choice_task());
  folder.write("d.parquet", "PAR1");
  task.data.files = {{"test", {"d.parquet"}}};
  EXPECT_SAYS(test::message_of<DataError>([&] { (void)read_split(task, "test", {}); }), "reads no Parquet");
  const DataOptions options{.directory = {}, .read_parquet = [](const base::Path&, const auto& row) {
                              row(Json{{"q", 7}});
                            }};

  EXPECT_EQ(read_split(task, "test", options).rows[0].at("q"), 7);
}

TEST(TaskDocuments, RefusesWhatIsNoDocument) {
  const TaskFolder folder;
  const Task task = task_of(folder, choice_task());
  const auto refused = [&](const std::string& rows) {
    folder.write("d.jsonl", rows);
    return test::message_of<DataError>([&] { (void)read_split(task, "test", {}); });
  };

  EXPECT_SAYS(refused("{\"a\": 1}\n[1]\n"), "d.jsonl:2: expected an object of fields");
  EXPECT_SAYS(refused("{\"a\": 1}\n{\"a\"\n"), "d.jsonl:2: is no JSON at byte");
  EXPECT_SAYS(refused("\n"), "the split \"test\" of t has no documents");
  EXPECT_SAYS(test::message_of<DataError>([&] { (void)read_split(task, "train", {}); }),
              "data_files has no split \"train\"");
}

TEST(TaskDocuments, TakesExamplesFromTheSplitThatLmEvalTakes) {
  const TaskFolder folder;
  folder.write("d.jsonl", "{\"q\": \"test\"}\n");
  folder.write("e.jsonl", "{\"q\": \"train\"}\n");
  const auto yaml = [](const std::string& more) {
    return std::string(
               "task: t\ndataset_path: json\ndataset_kwargs: {data_files: {test: d.jsonl, train: e.jsonl}}\n"
               "test_split: test\ndoc_to_text: q\ndoc_to_target: q\nnum_fewshot: 1\n") +
           more;
  };
  const auto first = [&](const std::string& more) {
    return read_documents(task_of(folder, yaml(more)), {}).fewshot.at(0).at("q").get<std::string>();
  };

  EXPECT_EQ(first(""), "test");
  EXPECT_EQ(first("training_split: train\n"), "train");
  EXPECT_EQ(first("training_split: train\nfewshot_split: test\n"), "test");
  EXPECT_EQ(first("training_split: train\nfewshot_config: {samples: [{q: own}]}\n"), "own");
}

}  // namespace
}  // namespace retort::tasks
