#include "retort/tasks/requests.h"

#include "tasks/files_for_tests.h"

namespace retort::tasks {
namespace {

using base::DataError;
using base::Json;

std::string refused(const std::string& yaml, const std::string& rows) {
  const TaskFolder folder;
  return test::message_of<DataError>([&] { (void)prepared(folder, yaml, rows); });
}

// A chat template that shows where each message begins.
PromptOptions chat(bool multiturn) {
  PromptOptions options;
  options.fewshot_as_multiturn = multiturn;
  options.chat = [](const Json& messages, bool add_generation_prompt) {
    std::string text;
    for (const auto& message : messages)
      text += "<" + message.at("role").get<std::string>() + ">" + message.at("content").get<std::string>();
    return text + (add_generation_prompt ? "<assistant>" : "");
  };
  return options;
}

TEST(TaskRequests, PairTheContextWithEachChoice) {
  const TaskFolder folder;
  const auto task = prepared(folder, choice_task("description: \"Answer.\\n\\n\"\n"), kChoiceRows);

  ASSERT_EQ(task.documents.size(), 3U);
  const auto& document = task.documents[1];
  ASSERT_EQ(document.requests.size(), 2U);
  EXPECT_EQ(document.requests[1].context, "Answer.\n\nQ: two\nA:");
  EXPECT_EQ(document.requests[1].continuation, " dd");
  EXPECT_EQ(document.gold.indices, std::vector<std::int64_t>{1});
  EXPECT_EQ(document.target, 1);
}

TEST(TaskRequests, WriteExamplesBeforeTheQuestion) {
  const TaskFolder folder;
  const auto task = prepared(
      folder, choice_task("num_fewshot: 1\nfewshot_config: {sampler: first_n, split: test}\n"), kChoiceRows);

  EXPECT_EQ(task.documents[0].requests[0].context, "Q: two\nA: dd\n\nQ: one\nA:");
  EXPECT_EQ(task.documents[1].requests[0].context, "Q: one\nA: a\n\nQ: two\nA:");
}

TEST(TaskRequests, PutSeveralContextsBeforeOneContinuation) {
  const TaskFolder folder;
  const auto yaml = std::string(
      "task: w\ndataset_path: json\ndataset_kwargs: {data_files: {test: d.jsonl}}\ntest_split: test\n"
      "output_type: multiple_choice\ndoc_to_text: \"{{ {'1': 0, '2': 1}[answer] }}\"\n"
      "doc_to_choice: \"{{[s + o1, s + o2]}}\"\ndoc_to_target: end\n");
  const auto task =
      prepared(folder, yaml,
               "{\"s\": \"It is \", \"o1\": \"A\", \"o2\": \"Bb\", \"end\": \"so.\", \"answer\": \"2\"}\n");

  EXPECT_TRUE(task.several_contexts);
  EXPECT_EQ(task.documents[0].requests[1].context, "It is Bb");
  EXPECT_EQ(task.documents[0].requests[1].continuation, " so.");
  EXPECT_EQ(task.documents[0].gold.indices, std::vector<std::int64_t>{1});
}

TEST(TaskRequests, AskForChoicesAloneForMutualInformation) {
  const TaskFolder folder;
  const auto task = prepared(folder, choice_task("metric_list: [{metric: acc_mutual_info}]\n"), kChoiceRows);

  ASSERT_EQ(task.documents[0].requests.size(), 4U);
  EXPECT_EQ(task.documents[0].requests[3].context, "");
  EXPECT_EQ(task.documents[0].requests[3].continuation, " bb");
}

TEST(TaskRequests, WriteChatsInOneTurnOrInSeveral) {
  const TaskFolder folder;
  const auto yaml = choice_task("num_fewshot: 1\nfewshot_config: {sampler: first_n, split: test}\n");
  auto options = chat(true);
  options.system_instruction = "Be short.";

  const auto several = prepared(folder, yaml, kChoiceRows, options).documents[1].requests[0];
  EXPECT_EQ(several.context, "<system>Be short.<user>Q: one\nA:<assistant>a<user>Q: two\nA:<assistant>");
  EXPECT_EQ(several.continuation, "c");
  const auto one = prepared(folder, yaml, kChoiceRows, chat(false)).documents[1].requests[0];
  EXPECT_EQ(one.context, "<user>Q: one\nA: a\n\nQ: two\nA:<assistant>");
}

TEST(TaskRequests, GoOnWithWhatAnAnswerBeginsWith) {
  const TaskFolder folder;
  const auto yaml = choice_task("gen_prefix: \"It is\"\n");

  EXPECT_EQ(prepared(folder, yaml, kChoiceRows).documents[0].requests[0].context, "Q: one\nA: It is");
  const auto asked = prepared(folder, yaml, kChoiceRows, chat(true)).documents[0].requests[0];
  EXPECT_EQ(asked.context, "<user>Q: one\nA:<assistant>It is");
  EXPECT_EQ(asked.continuation, " a");
}

TEST(TaskRequests, KeepTheFirstDocuments) {
  const TaskFolder folder;
  PromptOptions options;
  options.limit = 2;
  const auto task = prepared(folder, choice_task(), kChoiceRows, options);

  EXPECT_EQ(task.documents.size(), 2U);
  EXPECT_EQ(task.rows.size(), 2U);
  EXPECT_EQ(task.documents_in_split, 3);
}

TEST(TaskRequests, CountWordsAndBytesOfATextAsLmEval) {
  const TaskFolder folder;
  const auto yaml = std::string(
      "task: r\ndataset_path: json\ndataset_kwargs: {data_files: {test: d.jsonl}}\ntest_split: test\n"
      "output_type: loglikelihood_rolling\ndoc_to_text: \"\"\ndoc_to_target: page\n");
  const auto task = prepared(folder, yaml, "{\"page\": \" two  w\u00f6rds \"}\n");

  EXPECT_EQ(task.documents[0].words, 4);
  EXPECT_EQ(task.documents[0].bytes, 13);
  EXPECT_EQ(task.documents[0].requests[0].continuation, " two  w\u00f6rds ");
}

TEST(TaskRequests, RefuseAFieldThatTheDataLack) {
  const auto text = refused(choice_task("description: \"{{nothing}}\"\n"), kChoiceRows);

  EXPECT_SAYS(text, "t: document 0: description: the template, line 1: \"nothing\" is undefined.");
}

TEST(TaskRequests, RefuseAGoldOutsideTheChoices) {
  const auto text = refused(choice_task(),
                            "{\"q\": \"one\", \"choices\": [\"a\", \"b\"], \"gold\": 0}\n"
                            "{\"q\": \"two\", \"choices\": [\"a\", \"b\"], \"gold\": 2}\n");

  EXPECT_SAYS(text, "t: document 1: the right answer is \"2\", which is none of the 2 choices");
}

TEST(TaskRequests, RefuseAnEmptyChoice) {
  EXPECT_SAYS(refused(choice_task(), "{\"q\": \"one\", \"choices\": [\"a\", \"\"], \"gold\": 0}\n"),
              "t: document 0: doc_to_choice: choice 1 is empty");
}

TEST(TaskRequests, RefuseTruthValuesForChoices) {
  auto yaml = choice_task();
  yaml.replace(yaml.find("doc_to_choice: choices"), 22, "doc_to_choice: [no, yes]");

  EXPECT_SAYS(refused(yaml, kChoiceRows), "choice 0 is \"false\", expected a text; quote it");
}

TEST(TaskRequests, RefuseFewerExamplesThanAskedFor) {
  EXPECT_SAYS(refused(choice_task("num_fewshot: 9\n"), kChoiceRows),
              "t: 9 examples are drawn for a document, and the documents for examples are 3; ask for fewer.");
}

TEST(TaskRequests, RefuseATemplateThatLoops) {
  auto yaml = choice_task();
  yaml.replace(yaml.find("\"Q: {{q}}\\nA:\""), 14,
               "\"{% for i in range(99999) %}{% for j in range(99999) %}{{i}}{% endfor %}{% endfor %}\"");

  EXPECT_SAYS(refused(yaml, kChoiceRows), "t: document 0: doc_to_text: the template, line 1: it ");
}

TEST(TaskRequests, DrawExamplesAsLmEval) {
  const TaskFolder folder;
  std::string rows;
  for (int i = 0; i < 40; ++i)
    rows += "{\"q\": \"q" + std::to_string(i) + "\", \"choices\": [\"a\"], \"gold\": 0}\n";
  const auto task = prepared(folder, choice_task("num_fewshot: 2\nfewshot_split: test\n"), rows);

  // random.Random(1234): sample(range(40), 3) for each document, without its own.
  EXPECT_EQ(task.documents[0].requests[0].context, "Q: q28\nA: a\n\nQ: q7\nA: a\n\nQ: q0\nA:");
}

}  // namespace
}  // namespace retort::tasks
