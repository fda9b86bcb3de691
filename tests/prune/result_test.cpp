// What a prune stage says of its result, as JSON and in its log.
#include "retort/prune/result.h"

#include <gtest/gtest.h>

#include <iomanip>

#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/prune/make.h"
#include "retort/prune/searched.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"
#include "support/stepwise_options.h"

namespace retort {
namespace {

class Listener : public record::Observer {
 public:
  void message(record::Level level, std::string_view text) override {
    if (level == record::Level::info) lines.emplace_back(text);
  }
  std::vector<std::string> lines;
};

prune::PruneOptions options_of(double fraction) {
  auto options = test::stepwise_options();
  options.target.parameters_fraction = fraction;
  options.width_multiple = 4;
  return options;
}

// A report on a model of which nothing was removed, by a search that ended with the whole model.
prune::PruneReport whole_report() {
  const auto config = test::tiny_config(2);
  const auto whole = architecture::whole(config);
  const calibrate::Evaluation nothing{.mean = {}, .sources = {{}}};
  prune::PruneReport report{
      .input = config,
      .output = config,
      .kept = whole,
      .sources = {"books"},
      .evaluation = nothing,
      .speed = eval::SpeedTable::measured(std::vector{config}, {.context = 8, .rounds = 1})};
  report.course = prune::SearchCourse{.method = prune::SearchMethod::staged,
                                      .units = prune::Units::sub_blocks,
                                      .starts = {{"staged", {whole, nothing}}},
                                      .finalists = {{.candidate = {whole, nothing}, .behind = {}}}};
  return report;
}

TEST(PruneReport, SaysWhereASmallerModelIsNoFaster) {
  EXPECT_EQ(prune::why_not_faster(0.041, 0.034), "");
  EXPECT_SAYS(prune::why_not_faster(0.034, 0.041),
              "takes 41.0 ms, and of the whole one 34.0 ms: on this machine it is not faster");
}

TEST(PruneReport, TellsCompensationThatDidNothingFromNone) {
  auto report = whole_report();
  EXPECT_FALSE(to_json(report).contains("compensation"));
  EXPECT_FALSE(to_json(report).contains("objective_uncompensated"));
  report.objective_uncompensated = 0.5;
  EXPECT_TRUE(to_json(report).at("compensation").is_null());
  EXPECT_EQ(to_json(report).at("objective_uncompensated"), 0.5);
  report.compensation = {.kept = true,
                         .held_out_objective_before = 0.5,
                         .held_out_objective_after = 0.25,
                         .layers = {{.name = "o_proj", .kept = true, .held_out_gain = 2}}};
  EXPECT_EQ(to_json(report).at("compensation"),
            base::Json::parse(R"({"kept": true, "each_alone": false, "held_out_objective_before": 0.5,
                                  "held_out_objective_after": 0.25,
                                  "layers": [{"name": "o_proj", "kept": true, "held_out_gain": 2.0,
                                              "singular": false}]})"));
}

TEST(PruneReport, WarnsWithTheCauseWhereTheSavedModelIsWorseThanWasBelieved) {
  auto report = whole_report();
  report.believed = {.candidate = 1.0, .saved = 1.05, .behind = {0.05, {}}};
  EXPECT_EQ(prune::why_worse(report), "") << "within a tenth, without an interval";
  report.believed = {.candidate = 1.0, .saved = 1.2, .behind = {0.2, {}}};
  EXPECT_SAYS(prune::why_worse(report),
              "believed a loss increase of 1 of what it chose, and the saved model has 1.2");
  EXPECT_SAYS(prune::why_worse(report), "layers lost more together");
  report.believed.behind.interval = {{-0.1, 0.5}};
  EXPECT_EQ(prune::why_worse(report), "") << "within the interval";
  report.believed.behind.interval = {{0.1, 0.3}};
  report.compensation = {.kept = false, .layers = {}};
  EXPECT_SAYS(prune::why_worse(report), "its compensation was no better there than none");
}

// Sides have other documents, so the interval of their difference is wider than that of each.
TEST(PruneReport, WarnsWhereDocumentsThatChoseNothingLoseMoreBeyondChance) {
  auto report = whole_report();
  report.evaluation.mean.objective = 0.735;
  report.believed = {.candidate = 0.6, .saved = 0.634, .behind = {}, .saved_interval = {{0.554, 0.714}}};
  EXPECT_EQ(prune::why_unseen_lose_more(report), "") << "too few documents for an interval";
  EXPECT_TRUE(to_json(report).at("interval").is_null());
  report.interval = {{0.675, 0.795}};  // 0.06 and 0.08 are 0.1 together
  EXPECT_SAYS(prune::why_unseen_lose_more(report), "lose 0.735, and those that the choice was made by 0.634");
  EXPECT_EQ(to_json(report).at("interval"), base::Json({0.675, 0.795}));
  report.interval = {{0.655, 0.815}};
  EXPECT_EQ(prune::why_unseen_lose_more(report), "") << "within chance";
  report.evaluation.mean.objective = 0.4;
  EXPECT_EQ(prune::why_unseen_lose_more(report), "") << "less than was believed";
}

TEST(PruneReport, NamesASearchAsARecipeDoes) {
  const auto json = to_json(whole_report());
  EXPECT_EQ(json.at("method"), "staged");
  EXPECT_EQ(json.at("units"), "sub_blocks");
  EXPECT_FALSE(json.contains("decisions"));
  EXPECT_EQ(json.at("starts").at("staged").at("domains").at("books"), 0.0);
  EXPECT_TRUE(json.at("finalists")[0].at("interval").is_null());
  EXPECT_TRUE(json.at("finalists")[0].at("tied").get<bool>());
}

// The first two lines are the plan of memory and of work, the last one what was believed beside what was
// saved.
TEST(PruneLog, SaysTheLossIncreaseOfEachStep) {
  Listener listener;
  const auto input = test::tiny_model(test::tiny_config(4, 24));
  const auto sources = test::random_domains(40, 2);
  const auto options = options_of(0.7);
  const auto json = to_json(prune::prune_searched({input, sources, options, listener}).report);
  const auto& decisions = json.at("decisions");
  ASSERT_EQ(listener.lines.size(), decisions.size() + 3);
  for (std::size_t step = 0; step < decisions.size(); ++step) {
    const auto& decision = decisions[step];
    const auto human = [](const base::Json& count) { return base::human_count(count.get<double>()); };
    const auto move =
        decision.at("action") == "drop_block"
            ? base::join("drop block ", decision.at("block").get<int>())
            : base::join(decision.at("action") == "narrow" ? "narrow MLPs to " : "narrow attentions to ",
                         decision.at("width").get<int>(),
                         decision.at("action") == "narrow" ? "" : " KV groups");
    EXPECT_EQ(listener.lines[step + 2],
              base::join("prune step ", step + 1, ": ", move, ": loss increase ", std::fixed,
                         std::setprecision(4), decision.at("objective").get<double>(), " nats/token, ",
                         human(decision.at("parameters")), " of ", human(json.at("parameters_before")),
                         " parameters left (target ", human(json.at("parameters_target")), ")"));
  }
  const auto& believed = json.at("believed");
  EXPECT_SAYS(listener.lines.back(),
              base::join(" nats/token (", std::fixed, std::setprecision(4),
                         believed.at("saved").get<double>(), " on the documents that chose it, ",
                         believed.at("candidate").get<double>(), " as searched), "));
}

}  // namespace
}  // namespace retort
