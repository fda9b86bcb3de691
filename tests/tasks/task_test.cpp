#include "retort/tasks/task.h"

#include "tasks/files_for_tests.h"

namespace retort::tasks {
namespace {

using base::UsageError;

std::string refusal_of(const std::string& yaml) {
  const TaskFolder folder;
  return test::message_of<UsageError>([&] { (void)read_task(folder.write("t.yaml", yaml)); });
}

TEST(TaskFile, ReadsTheKeysOfLmEval) {
  const TaskFolder folder;
  const auto task = read_task(folder.write(
      "t.yaml", choice_task("task_alias: T\nnum_fewshot: 3\ntarget_delimiter: \"\"\n"
                            "metadata: {version: 2.0}\nfewshot_config: {sampler: first_n}\n"
                            "metric_list:\n  - metric: acc\n  - {metric: mcc, higher_is_better: true}\n")));

  EXPECT_EQ(task.name, "t");
  EXPECT_EQ(task.alias, "T");
  EXPECT_EQ(task.output_type, OutputType::multiple_choice);
  EXPECT_EQ(task.shots(), 3);
  EXPECT_EQ(task.target_delimiter, "");
  EXPECT_EQ(task.fewshot.sampler, Sampler::first_n);
  EXPECT_EQ(task.fewshot.target_delimiter, "");
  EXPECT_EQ(task.version, base::Json(2.0));
  ASSERT_EQ(task.metrics.size(), 2U);
  EXPECT_EQ(task.metrics[1].aggregation, Aggregation::matthews_corrcoef);
  EXPECT_EQ(task.config.at("fewshot_delimiter"), "\n\n");
  EXPECT_EQ(task.config.at("repeats"), 1);
}

TEST(TaskFile, ReadsTruthValuesAndNumbersAsPyYaml) {
  const TaskFolder folder;
  const auto task = read_task(folder.write(
      "t.yaml",
      choice_task(
          "metadata: [yes, \"no\", On, 1e3, 1.5, 1.0e+3, 012, 0x1F, 1_000, ~, +5, -.5, \"7\", y]\n")));

  EXPECT_EQ(task.config.at("metadata").dump(),
            R"([true,"no",true,"1e3",1.5,1000.0,10,31,1000,null,5,-0.5,"7","y"])");
}

TEST(TaskFile, IncludesOthersWhoseKeysItsOwnReplace) {
  const TaskFolder folder;
  folder.write("base.yaml", choice_task("num_fewshot: 5\n"));
  const auto task = read_task(folder.write("t.yaml", "include: base.yaml\ntask: mine\nnum_fewshot: 2\n"));

  EXPECT_EQ(task.name, "mine");
  EXPECT_EQ(task.shots(), 2);
  EXPECT_SAYS(refusal_of("include: t.yaml\n"), "is included by itself");
}

TEST(TaskFile, NamesTheNearestKey) {
  EXPECT_SAYS(refusal_of(choice_task("num_fewshots: 3\n")),
              "t.yaml:9: there is no key \"num_fewshots\"; did you mean \"num_fewshot\"?");
}

TEST(TaskFile, ReportsAllMistakesAtOnce) {
  const auto text = refusal_of(choice_task("doc_to_txt: a\nrepeats: 4\nmetric_list: [{metric: bleu}]\n"));

  EXPECT_SAYS(text, "t.yaml: 3 mistakes\n  ");
  EXPECT_SAYS(text, "did you mean \"doc_to_text\"?");
  EXPECT_SAYS(text, "t.yaml:10: repeats is not 1");
  EXPECT_SAYS(text, "Retort has no metric \"bleu\"; it has acc, acc_norm");
}

TEST(TaskFile, RefusesPythonFunctions) {
  EXPECT_SAYS(refusal_of(choice_task("process_docs: !function utils.process_docs\n")),
              "t.yaml:9: key 'process_docs' uses a Python function");
  EXPECT_SAYS(refusal_of(choice_task("process_results: utils.f\n")), "is a Python function");
}

TEST(TaskFile, RefusesWhatRetortLacks) {
  EXPECT_SAYS(refusal_of("group: g\ntask: [a, b]\naggregate_metric_list: []\n"),
              "t.yaml:1: is a group of tasks");
  EXPECT_SAYS(refusal_of(choice_task("use_prompt: \"promptsource:*\"\n")), "promptsource");
  EXPECT_SAYS(refusal_of(choice_task("fewshot_config: {fewshot_indices: [1]}\n")), "draws without them");
  EXPECT_SAYS(refusal_of(choice_task("filter_list: [{name: x, filter: [{function: majority_vote}]}]\n")),
              "Retort has no filter \"majority_vote\"");
  EXPECT_SAYS(refusal_of(choice_task("metric_list: [{metric: perplexity}]\n")), "gives no perplexity");
  EXPECT_SAYS(refusal_of(choice_task("generation_kwargs: {temperature: 0.7}\n")), "do_sample: false");
}

TEST(TaskFile, RefusesWhatIsNoTask) {
  EXPECT_SAYS(refusal_of("[1]\n"), "is no map of keys");
  EXPECT_SAYS(refusal_of("task: t\n"), "add the key dataset_path");
  EXPECT_SAYS(refusal_of(std::string(50'000'000, '#')), "t.yaml");
}

TEST(TaskFile, RefusesTwoTasksOfOneName) {
  const TaskFolder folder;
  const std::vector<base::Path> files{folder.write("a.yaml", choice_task()),
                                      folder.write("b.yaml", choice_task())};

  EXPECT_SAYS(test::message_of<UsageError>([&] { (void)read_tasks(files); }),
              "the task \"t\" is also that of ");
}

TEST(TaskFile, KeepsZeroExamplesOfTheFile) {
  const TaskFolder folder;
  Task none = read_task(folder.write("a.yaml", choice_task("num_fewshot: 0\n")));
  Task any = read_task(folder.write("b.yaml", choice_task()));

  EXPECT_FALSE(set_num_fewshot(none, 5));
  EXPECT_EQ(none.shots(), 0);
  EXPECT_TRUE(set_num_fewshot(any, 5));
  EXPECT_EQ(any.shots(), 5);
}

TEST(TaskFile, EndsGenerationAsLmEval) {
  const TaskFolder folder;
  const auto head =
      std::string("task: t\ndataset_path: x/y\ntest_split: test\ndoc_to_text: q\ndoc_to_target: a\n");
  const auto plain = read_task(folder.write("a.yaml", head));
  const auto given =
      read_task(folder.write("b.yaml", head + "generation_kwargs: {until: [\"\\n\", END], max_new_tokens: 9, "
                                              "do_sample: false, temperature: 0.7}\n"));

  EXPECT_EQ(plain.generation.until, std::vector<std::string>{"\n\n"});
  EXPECT_EQ(plain.generation.max_tokens, 256);
  EXPECT_EQ(given.generation.until, (std::vector<std::string>{"\n", "END"}));
  EXPECT_EQ(given.generation.max_tokens, 9);
}

}  // namespace
}  // namespace retort::tasks
