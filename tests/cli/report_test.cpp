// The page of a real run with every kind of stage: what stages write is what the report reads.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "cli/tiny_project.h"
#include "retort/base/files.h"
#include "support/message_of.h"
#include "support/page.h"

namespace retort::test {
namespace {

const std::string kCalibration = ", data: [text], calibration_tokens: 2k, sequence_length: 64";
const std::string kTraining =
    ", data: [text], tokens: 512, packing: {sequence_length: 64}, batch: {sequences: 2}, evaluate_tokens: "
    "2k";

std::vector<std::string> every_kind() {
  const std::string pruning = ", target: {parameters: 97%}, width_multiple: 16" + kCalibration;
  return {
      train_stage(2048, ", evaluate_every_steps: 4"),
      "{name: tuned, kind: finetune, from: born" + kTraining + ", evaluate_every_steps: 2}",
      "{name: seen, kind: profile, from: tuned" + kCalibration + "}",
      "{name: stepwise, kind: prune, units: uniform, from: tuned" + pruning + "}",
      "{name: searched, kind: prune, from: tuned, units: per_layer, search: {method: tabu, budget_tokens: "
      "60k, tolerance: 10%, finalists: 2}" +
          pruning + "}",
      "{name: chosen, kind: select, models: [stepwise, searched], teacher: tuned" + kTraining + "}",
      "{name: sparse, kind: sparsify, from: chosen, share: 0.7, data: [text], calibration_tokens: 4k, "
      "sequence_length: 64}",
      "{name: student, kind: distill, from: sparse, teacher: tuned" + kTraining +
          ", evaluate_every_steps: 2, "
          "loss: [{kind: cross_entropy, weight: 0.25}, {kind: kl_divergence}, {kind: squarehead}]}",
      "{name: scores, kind: evaluate, models: [tuned, stepwise, chosen, sparse, student], data: [text], "
      "windows: rolling, context: 64, prompt: the package, max_new_tokens: 5}"};
}

class ReportOfARun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    project_ = new TinyProject;
    project_->write_recipe(every_kind());
    finished_ = new Finished(project_->run_recipe());
  }
  static void TearDownTestSuite() {
    delete finished_;
    delete project_;
  }
  void SetUp() override { ASSERT_EQ(finished_->code, 0) << finished_->err; }

  static std::string page() { return base::read_file(project_->path("run/report.html")); }

  static inline TinyProject* project_ = nullptr;
  static inline Finished* finished_ = nullptr;
};

TEST_F(ReportOfARun, SaysWhereAPrunedModelLoads) {
  const auto& log = finished_->err;
  EXPECT_SAYS(log, "stage 'stepwise': its model will load in transformers, as LlamaForCausalLM");
  EXPECT_SAYS(log, "stage 'searched': its model will load in transformers with trust_remote_code=True");
  EXPECT_SAYS(log, "prune: the model loads in transformers, as ");
  EXPECT_SAYS(page(), "The model loads in transformers, as ");
  for (const char* stage : {"stepwise", "searched"}) {
    const auto result =
        base::parse_json(base::read_file(project_->path("run/stages") / (stage + std::string(".json"))));
    const auto loads = result.at("loads").get<std::string>();
    EXPECT_SAYS(page(), "The model loads " + loads);
    const auto info =
        base::parse_json(project_->run({"info", "run/models/" + std::string(stage), "--json"}).out);
    EXPECT_EQ(info.at("loads"), loads);
    const auto config =
        base::parse_json(base::read_file(project_->path("run/models") / stage / "config.json"));
    const auto name = config.at("architectures")[0].get<std::string>();
    EXPECT_EQ(info.at("architecture"),
              name == "RetortForCausalLM" ? "RetortForCausalLM (blocks of a LlamaForCausalLM)" : name);
    EXPECT_SAYS(loads, name == "RetortForCausalLM" ? "trust_remote_code=True" : "as " + name);
  }
}

bool says_nothing(const std::string& cell) {
  return cell.empty() || cell == "\u2013";
}

TEST_F(ReportOfARun, NoColumnOfATableIsAllDashes) {
  const auto tables = tables_of(page());
  for (const auto& table : tables)
    for (std::size_t column = 0; column < table.titles.size(); ++column)
      EXPECT_FALSE(std::all_of(table.rows.begin(), table.rows.end(),
                               [&](const auto& cells) { return says_nothing(cells.at(column)); }))
          << table.section << ": " << table.caption << ": " << table.titles[column];
  std::set<std::string> sections;
  for (const auto& table : tables) sections.insert(table.section);
  EXPECT_EQ(sections, (std::set<std::string>{"scores", "training", "profile", "pruning", "selection",
                                             "sparsity", "memory", "provenance"}));
}

TEST_F(ReportOfARun, EveryLineAndBarOfAChartHasPoints) {
  const auto charts = charts_of(page());
  EXPECT_GE(charts.size(), 10U);
  for (const auto& chart : charts) {
    EXPECT_FALSE(chart.at("views").empty()) << chart;
    for (const auto& view : chart.at("views")) {
      EXPECT_FALSE(view.at("series").empty()) << view.at("y");
      for (const auto& series : view.at("series"))
        EXPECT_TRUE(std::any_of(series.at("data").begin(), series.at("data").end(),
                                [](const auto& point) { return !point.is_null(); }))
            << view.at("y") << series.at("name");
    }
  }
}

TEST_F(ReportOfARun, ShowsThePartsOfALossAsTheMetricsNameThem) {
  const auto tables = tables_with(page(), "training", "squarehead");
  ASSERT_FALSE(tables.empty());
  EXPECT_EQ(tables.front().titles,
            (std::vector<std::string>{"Step", "Tokens", "Loss", "cross entropy", "kl divergence",
                                      "squarehead", "Gradient norm", "Learning rate", "Speedtokens/s"}));
}

TEST_F(ReportOfARun, LogsWhatASearchFoundInWords) {
  const std::string
      loss = ": loss increase -?[0-9]\\.[0-9]{4} nats/token",
      searched = " \\(-?[0-9]\\.[0-9]{4} on the documents that chose it, -?[0-9]\\.[0-9]{4} as searched\\)";
  const std::string left =
      ", [0-9.]+ k of [0-9.]+ k parameters left "
      "\\(target [0-9.]+ k\\)";
  const std::string cost = left + ", worst source text";
  EXPECT_TRUE(std::regex_search(finished_->err, std::regex("prune step 1: [a-zA-Z0-9 ]+" + loss + left)))
      << finished_->err;
  EXPECT_TRUE(std::regex_search(finished_->err, std::regex("prune: tabu search, [0-9]+ evaluations")))
      << finished_->err;
  // Of both kinds of search.
  const std::regex outcome("prune" + loss + searched + cost);
  const std::sregex_iterator first(finished_->err.begin(), finished_->err.end(), outcome);
  EXPECT_GE(std::distance(first, std::sregex_iterator()), 2) << finished_->err;
}

}  // namespace
}  // namespace retort::test
