#include "retort/report/report.h"

#include <gtest/gtest.h>

#include "report/made_up_run.h"
#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/report/assets.h"
#include "retort/report/html.h"
#include "support/page.h"

namespace retort::report {
namespace {

using base::Json;

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

bool contains(const std::string& text, const std::string& what) {
  return occurrences(text, what) > 0;
}

/// The page without the scripts and the style that every page carries.
std::string without_assets(std::string page) {
  for (const std::string_view asset : {kChartScript, kPageScript, kPageStyle}) {
    const std::size_t at = page.find(asset);
    EXPECT_NE(at, std::string::npos);
    if (at != std::string::npos) page.erase(at, asset.size());
  }
  return page;
}

/// kHostile as it stands in HTML.
const std::string kHostileText = Html(kHostile).str();

std::string made_up_page() {
  const RunFolder run;
  write_made_up_run(run);
  return without_assets(html_report(run.path()));
}

using Row = std::vector<std::string>;

/// The row `name` of the table of a section that has a column `title`.
Row row_of(const std::string& page, const std::string& section, const std::string& title,
           const std::string& name) {
  for (const auto& table : test::tables_with(page, section, title))
    if (Row row = table.row(name); !row.empty()) return row;
  return {};
}

TEST(Report, EverySectionOfAFullRunShowsItsNumbers) {
  const std::string page = made_up_page();
  EXPECT_EQ(
      row_of(page, "scores", "Speedtokens/s", "student"),
      (Row{"student", "33.78", "80.3 %", "3.31 M", "0.2134", "74.2 %", "1.6650", "75 %", "6.6 MB", "34012"}));
  EXPECT_TRUE(contains(page, "teacher: values dequantised from Q4_1, Q8_0."));
  EXPECT_EQ(row_of(page, "training", "Held-out NLLnats per token", "teacher"),
            (Row{"teacher", "finetune", "5.51 M", "2", "4.1 k", "1 min 15 s", "910", "3.3100", "3.3000"}));
  EXPECT_EQ(row_of(page, "training", "Gradient norm", "2"),
            (Row{"2", "4.1 k", "3.3100", "1.10", "5.00e-05", "910"}));
  EXPECT_EQ(row_of(page, "training", "Phase", "student forward"),
            (Row{"student forward", "1.50", "75.0 %", "34.1 %"}));  // 1e6 * 2048 / 1.5 s of 4e9
  EXPECT_EQ(row_of(page, "training", "Phase", "update"), (Row{"update", "0.500", "25.0 %", "\u2013"}));
  EXPECT_EQ(row_of(page, "training", "Operation", "product"), (Row{"product", "1.25", "62.5 %", "41.0 %"}));
  EXPECT_EQ(row_of(page, "training", "Operation", "all else"),
            (Row{"all else", "0.500", "25.0 %", "\u2013"}));
  EXPECT_EQ(row_of(page, "training", "kl divergence", "1"),
            (Row{"1", "2.0 k", "2.2000", "3.9000", "0.9000", "0.3000", "\u2013", "\u2013", "\u2013"}));
  EXPECT_EQ(row_of(page, "pruning", "Candidates", "1"),
            (Row{"1", "drop block 1", "0.0512", "600.0 k", "0.0850", "2"}));
  EXPECT_EQ(row_of(page, "sparsity", "Dampening", "model.layers.0.mlp.up_proj.weight"),
            (Row{"model.layers.0.mlp.up_proj.weight", "4", "8", "0.0100", "12.50", "1.0e-12",
                 "0.9036 to 0.9160", "0.0712"}));
  EXPECT_EQ(row_of(page, "memory", "Planned", "teacher"),
            (Row{"teacher", "finetune", "1 min 15 s", "22.0 MB", "21.5 MB", "190.0 MB"}));
  EXPECT_EQ(row_of(page, "memory", "Purpose", "master weights"), (Row{"master weights", "22.0 MB"}));
  EXPECT_EQ(row_of(page, "memory", "Purpose", "Peak / planned"), (Row{"Peak / planned", "97.5 %"}));
  EXPECT_EQ(row_of(page, "provenance", "Key", "retort"), (Row{"retort", "0.1.0"})) << "of the newest start";
  EXPECT_TRUE(contains(page, "<span class=\"prompt\">The package </span>manager keeps a list.</p>"));
  EXPECT_TRUE(contains(page, "<code>version: 1\n"));
}

// Two steps of three ranks, after others that an earlier start made: small gathers many times, one large
// reduction.
TEST(Report, ShowsWhatRanksExchangedByOperationAndSize) {
  const RunFolder run;
  write_made_up_run(run);
  run.write("stages/teacher.json", R"({"kind": "finetune", "steps": 5, "tokens": 10240, "seconds": 75.2,
    "final": {"step": 5, "tokens": 10240, "loss": 3.31}, "collectives_steps": 2,
    "collectives": [{"group": "world", "ranks": 3, "operation": "all_gather", "bytes": 600, "calls": 8,
                     "moved_bytes": 3200, "ring_bytes": 3200, "seconds": 0.008, "exposed_seconds": 0.004},
                    {"group": "world", "ranks": 3, "operation": "all_gather", "bytes": 900, "calls": 2,
                     "moved_bytes": 1200, "ring_bytes": 1200, "seconds": 0.002, "exposed_seconds": 0},
                    {"group": "student shard", "ranks": 3, "operation": "reduce_scatter", "bytes": 6000000,
                     "calls": 2, "moved_bytes": 16000000, "ring_bytes": 8000000, "seconds": 0.02,
                     "exposed_seconds": 0.03}]})");
  const auto page = without_assets(html_report(run.path()));
  EXPECT_EQ(row_of(page, "training", "Of a ringthe same by formula", "student shard (3)"),
            (Row{"student shard (3)", "reduce scatter", "6.0 MB", "1.00", "8.0 MB", "4.0 MB", "10.0",
                 "100.0 %", "0.800"}));
  for (const Json& chart : test::charts_of(page)) {
    if (chart["x"] != "size of one call") continue;
    EXPECT_EQ(chart["labels"].front(), "up to 1.0 kB");
    EXPECT_EQ(chart["labels"].back(), "more");
    EXPECT_EQ(chart["views"][0]["series"][0]["name"], "all gather");
    EXPECT_EQ(chart["views"][0]["series"][0]["data"],
              Json::parse("[5.0, null, null, null, null, null, null]"));
    EXPECT_EQ(chart["views"][1]["series"][1]["data"],
              Json::parse("[null, null, null, 8.0, null, null, null]"));
    EXPECT_EQ(chart["views"][2]["series"][1]["data"],
              Json::parse("[null, null, null, 10.0, null, null, null]"));
    return;
  }
  FAIL() << "no chart of collectives";
}

// A stage that does not train has no steps: all that it did counts.
TEST(Report, ShowsWhatRanksExchangedInAStageWithoutSteps) {
  const RunFolder run;
  write_made_up_run(run);
  EXPECT_FALSE(contains(without_assets(html_report(run.path())), "what its ranks exchanged"));
  auto pruned = base::parse_json(base::read_file(run.path() / "stages/pruned.json"));
  pruned["collectives"] = base::parse_json(R"([{"group": "all ranks", "ranks": 2, "operation": "all_reduce",
    "bytes": 800, "calls": 30, "moved_bytes": 24000, "ring_bytes": 24000, "seconds": 0.06,
    "exposed_seconds": 0.03}])");
  run.write("stages/pruned.json", pruned.dump());
  const auto page = without_assets(html_report(run.path()));
  EXPECT_TRUE(contains(page, "<strong>pruned</strong>: what its ranks exchanged"));
  EXPECT_EQ(row_of(page, "memory", "Callsin all", "all ranks (2)"),
            (Row{"all ranks (2)", "all reduce", "800 B", "30.0", "24.0 kB", "24.0 kB", "2.00", "50.0 %",
                 "0.000400"}));
}

TEST(Report, TheHeadSaysWhereTheRunWasMadeAndWhatItGave) {
  const std::string page = made_up_page();
  for (const std::string fact :
       {"<dt>Date</dt><dd>2026-01-02 03:04 UTC</dd>", "<dt>Processor</dt><dd>abacus</dd>",
        "<dt>Device</dt><dd>cpu</dd>", "<dt>Retort</dt><dd>0.1.0</dd>", "<dt>torch</dt><dd>2.13.0</dd>"})
    EXPECT_TRUE(contains(page, fact)) << fact;
  EXPECT_TRUE(contains(page, "<dt>Host</dt><dd>&lt;/script&gt;"));
  EXPECT_TRUE(contains(
      page,
      "<strong>student</strong>, the model that this run ends with, has 3.31 M parameters, 60 % of its "
      "teacher\u2019s 5.51 M. Its held-out perplexity is 33.8 against 27.1, a recovery of 80.3 %."));
  EXPECT_TRUE(contains(page, "dropped in step 1"));
  EXPECT_TRUE(contains(page, "kept as block 1"));
  EXPECT_TRUE(contains(page, "narrow MLPs to 4"));
  EXPECT_TRUE(contains(page, "stopped after step 1"));
}

TEST(Report, LetsNoTextOutOfItsPlace) {
  const std::string page = made_up_page();
  EXPECT_FALSE(contains(page, "<script>alert"));
  EXPECT_FALSE(contains(page, "<!--"));
  EXPECT_TRUE(contains(page, "&lt;/script&gt;&lt;script&gt;alert(1)"));
  EXPECT_EQ(occurrences(page, "<script"), occurrences(page, "</script>"));
  EXPECT_EQ(occurrences(page, "<script"), test::charts_of(page).size() + 2);  // Chart.js and our own
}

TEST(Report, LoadsNothing) {
  const std::string page = made_up_page();
  for (const char* reference : {"src=", "http:", "https:", "url(", "@import", "<link", "<iframe", "<img"})
    EXPECT_FALSE(contains(page, reference)) << reference;
  EXPECT_TRUE(contains(page, "default-src 'none'"));
}

TEST(Report, AssetsCannotEndTheirElement) {
  for (const std::string_view asset : {kChartScript, kPageScript, kPageStyle}) {
    EXPECT_GT(asset.size(), 1000u);
    EXPECT_EQ(asset.find("</"), std::string_view::npos);
    EXPECT_EQ(asset.find("<!--"), std::string_view::npos);
  }
  EXPECT_NE(kChartScript.find("Chart.js v3"), std::string_view::npos);
  EXPECT_EQ(kPageStyle.find("url("), std::string_view::npos);
}

TEST(Report, ChartDataHoldsTheNumbersWithTitlesAndNames) {
  const std::vector<Json> charts = test::charts_of(made_up_page());
  ASSERT_EQ(charts.size(), 6u);  // scores, held-out by starting model, two training stages, 2:4
  for (const Json& chart : charts) {
    EXPECT_FALSE(chart["x"].get<std::string>().empty());
    for (const Json& view : chart["views"]) {
      EXPECT_NE(view["y"].get<std::string>().find('('), std::string::npos) << "a unit";
      for (const Json& series : view["series"]) EXPECT_FALSE(series["name"].get<std::string>().empty());
    }
  }
  EXPECT_EQ(charts[0]["labels"], Json::array({"manuals-en"}));
  EXPECT_EQ(charts[0]["views"][0]["series"][1]["data"], Json::array({1.665}));
  const Json &of_teacher = charts[1]["views"][0]["series"], &of_student = charts[2]["views"][0]["series"];
  ASSERT_EQ(of_teacher.size(), 1u) << "what starts from another model has a scale of its own";
  ASSERT_EQ(of_student.size(), 1u);
  EXPECT_EQ(of_student[0]["name"], kHostile);
  EXPECT_EQ(of_teacher[0]["data"], Json::parse(R"([{"x": 2048.0, "y": 3.4}, {"x": 4096.0, "y": 3.3}])"));
  std::vector<std::string> parts;
  for (const Json& series : charts[4]["views"][0]["series"]) parts.push_back(series["name"]);
  EXPECT_EQ(parts, (std::vector<std::string>{"loss", "cross entropy", "kl divergence", kHostile}))
      << "whatever the metrics call a part is drawn";
  EXPECT_EQ(charts[5]["labels"], Json::array({"0", kHostile}));
}

TEST(Report, ChartsReliabilityOfAllSourcesTogetherWithTheDiagonal) {
  const RunFolder run;
  write_made_up_run(run);
  Json scores = Json::parse(kEvaluation);
  Json& sources = scores["models"][1]["sources"];
  sources.push_back(sources[0]);
  sources[1]["name"] = "manuals-de";
  sources[0]["documents"] = sources[1]["documents"] = 4;
  sources[0]["confidence_bins"] = Json::parse("[[30, 0.05, 0.1], [9, 0.1, 0.2], [0, null, null]]");
  sources[1]["confidence_bins"] = Json::parse("[[10, 0.03, 0.5], [0, null, null], [20, 0.9, 0.75]]");
  scores["models"][1]["mean"]["nll_difference"] = 0.22;
  scores["models"][1]["mean"]["nll_difference_interval"] = Json({0.19, 0.25});
  run.write("stages/scores.json", scores.dump());
  const std::string page = without_assets(html_report(run.path()));
  EXPECT_TRUE(contains(page, "+0.1900 to +0.2500"));
  const Json chart = test::charts_of(page)[1];
  ASSERT_EQ(chart["views"].size(), 3u);
  const Json& all = chart["views"][0]["series"];
  ASSERT_EQ(all.size(), 2u);  // the other model tells nothing of its confidence
  ASSERT_EQ(all[0]["data"].size(), 2u);
  EXPECT_NEAR(all[0]["data"][0]["x"].get<double>(), (30 * 0.05 + 10 * 0.03) / 40, 1e-12);
  EXPECT_NEAR(all[0]["data"][0]["y"].get<double>(), (30 * 0.1 + 10 * 0.5) / 40, 1e-12);
  EXPECT_EQ(all[0]["data"][1], Json::parse(R"({"x": 0.9, "y": 0.75})"));
  EXPECT_EQ(all[1]["data"], Json::parse(R"([{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}])"));
  EXPECT_EQ(chart["views"][1]["series"][0]["data"].size(), 1u);
}

TEST(Report, ChartsHeldOutLossAgainstStepsTooWhereBatchesDiffer) {
  const RunFolder run;
  run.write("recipe.json", R"({"stages": {"small": {"kind": "distill"}, "large": {"kind": "distill"}}})");
  const auto metrics = [&](const std::string& large_step) {
    run.write("metrics.jsonl", R"({"stage": "small", "step": 0, "tokens": 0, "held_out": {"a": 5}})"
                               "\n"
                               R"({"stage": "small", "step": 4, "tokens": 4096, "held_out": {"a": 4}})"
                               "\n"
                               R"({"stage": "large", "step": 0, "tokens": 0, "held_out": {"a": 5}})"
                               "\n"
                               R"({"stage": "large", "step": )" +
                                   large_step + R"(, "tokens": 4096, "held_out": {"a": 4.5}})" + "\n");
  };
  metrics("1");
  const auto charts = test::charts_of(without_assets(html_report(run.path())));
  ASSERT_EQ(charts.size(), 2u);
  EXPECT_TRUE(charts[0]["tokens"].get<bool>());
  EXPECT_EQ(charts[0]["views"][0]["series"][1]["data"],
            Json::parse(R"([{"x": 0.0, "y": 5.0}, {"x": 4096.0, "y": 4.5}])"));
  EXPECT_EQ(charts[1]["x"], "steps of the stage");
  EXPECT_FALSE(charts[1]["tokens"].get<bool>());
  EXPECT_EQ(charts[1]["views"][0]["series"][0]["data"],
            Json::parse(R"([{"x": 0.0, "y": 5.0}, {"x": 4.0, "y": 4.0}])"));
  EXPECT_EQ(charts[1]["views"][0]["series"][1]["data"],
            Json::parse(R"([{"x": 0.0, "y": 5.0}, {"x": 1.0, "y": 4.5}])"));
  metrics("4");
  EXPECT_EQ(test::charts_of(without_assets(html_report(run.path()))).size(), 1u);
}

TEST(Report, ATornLastLineOfMetricsIsSkippedAndADamagedOneNoted) {
  const RunFolder run;
  run.write("metrics.jsonl",
            "{\"stage\": \"a\", \"step\": 7, \"tokens\": 1, \"loss\": 2}\n{\"stage\": oops}\n{\"stage\": "
            "\"a\", \"st");
  const std::string page = without_assets(html_report(run.path()));
  EXPECT_TRUE(contains(page, "stopped after step 7"));
  EXPECT_TRUE(contains(page, "1 unreadable lines"));
}

TEST(Report, AnEmptyRunDirectoryGivesAPage) {
  const RunFolder run;
  const std::string page = without_assets(html_report(run.path()));
  EXPECT_TRUE(contains(page, "<h1>" + run.path().filename().string() + "</h1>"));
  EXPECT_TRUE(contains(page, "has not written any results yet"));
  EXPECT_FALSE(contains(page, "<section"));
}

TEST(Report, FilesOfAnotherShapeAreNotedOrLeftOut) {
  const RunFolder run;
  run.write("recipe.yaml", "bytes \xFF\x01");
  run.write("recipe.json", R"({"device": [], "stages": {"p": {"kind": "prune"}, "x": 3, "y": {"kind": 4}}})");
  run.write("provenance.json", R"({"starts": [1, {"host": {}}, []]})");
  run.write("metrics.jsonl", R"({"stage": 3, "step": 1}
{"stage": "t", "step": 1e300, "tokens": -1e300, "loss": "x", "parts": [1], "held_out": {"a": "b", "c": null}}
{"stage": "t", "step": "7", "parts": {"a": {}, "b": 1}, "held_out": 3, "loss": 1e999}
)");
  run.write("stages/broken.json", "{\"kind\": ");
  run.write(
      "stages/p.json",
      R"({"kind": "prune", "parameters_before": "x", "kept": {"blocks": [-1, 1e99, "a", null, 1], "channels": [[-5, 1e300], 3, [[0, 1e300]], [[4, 2]], [[0]], [[0, 4194303]]]}, "decisions": [null, {"block": -7, "action": "drop_block"}, {"action": []}]})");
  run.write(
      "stages/s.json",
      R"({"kind": "sparsify", "layers": [4, {"name": 5, "relative_error": "big"}, {"name": "layers..x", "relative_error": 0.1}]})");
  run.write(
      "stages/t.json",
      R"({"kind": "train", "seconds": 1e300, "tokens": -4, "memory_plan": [{"what": 1, "bytes": 1e300}, 4], "memory_planned_bytes": 0, "final": 3})");
  run.write("stages/e.json", R"({"kind": "evaluate", "models": [null, {"sources": 7, "mean": []}]})");
  const std::string page = without_assets(html_report(run.path()));
  EXPECT_TRUE(contains(page, "broken.json is left out"));
  EXPECT_TRUE(contains(page, "bytes \uFFFD\uFFFD"));
  EXPECT_NO_THROW(test::charts_of(page));
}

TEST(Report, ShowsWhatAProfileFound) {
  const RunFolder run;
  run.write("recipe.json", R"({"stages": {"seen": {"kind": "profile", "from": "m"}}})");
  run.write("stages/seen.json", R"({"kind": "profile", "tokens": 4096, "blocks": [
    {"block": 0, "inactive_channels": [3, 9],
     "massive_channels": [{"channel": 7, "maximum": 812.5, "over_median": 431}],
     "taps": {"down_input": {"features": 64, "mean": 0.125, "maximum": 812.5,
                             "quantiles": [[0.5, 0.0625], [0.99, 0.75], [0.999, 1.5]]}}},
    {"block": 1, "taps": {"qkv_input": {"features": 32}}}, 7,
    {"block": 2, "inactive_channels": 5, "massive_channels": [1, {"channel": "x"}],
     "taps": {"down_input": {"features": 1e300, "quantiles": [4, [0.999, "y"]]}}}]})");
  const std::string page = without_assets(html_report(run.path()));
  EXPECT_TRUE(contains(page, "<section id=\"profile\">"));
  EXPECT_TRUE(contains(page, "7 (431 x)"));
  const auto tables = test::tables_with(page, "profile", "Inactive");
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(tables[0].row("0"),
            (Row{"0", "64", "2", "0.125", "0.0625", "0.750", "1.50", "812", "7 (431 x)"}));
  EXPECT_EQ(tables[0].row("1"),
            (Row{"1", "\u2013", "0", "\u2013", "\u2013", "\u2013", "\u2013", "\u2013", "\u2013"}));
  const auto charts = test::charts_of(page);
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_EQ(charts[0]["labels"], Json::array({"0"}));
  EXPECT_EQ(charts[0]["views"][0]["series"][0]["data"], Json::array({1.5}));
  EXPECT_EQ(charts[0]["views"][0]["series"][1]["data"], Json::array({812.5}));
}

TEST(Report, NamesInTheRecipeDoNotLeadOutOfTheRunDirectory) {
  const RunFolder outer;
  outer.write("secret.json", R"({"kind": "train", "tokens": 1, "seconds": 77777})");
  outer.write("run/recipe.json", R"({"stages": {"../../secret": {"kind": "train"}}})");
  const std::string page = without_assets(html_report(outer.path() / "run"));
  EXPECT_TRUE(contains(page, "not started"));
  EXPECT_FALSE(contains(page, "21 h"));
}

TEST(Report, IsWrittenWholeAndTheSameEachTime) {
  const RunFolder run;
  write_made_up_run(run);
  write_report(run.path());
  const std::string first = base::read_file(run.path() / "report.html");
  write_report(run.path());
  EXPECT_EQ(base::read_file(run.path() / "report.html"), first);
  EXPECT_TRUE(first.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(first.ends_with("</html>\n"));
}

TEST(Report, RefusesWhatIsNoDirectory) {
  EXPECT_THROW(html_report("/nonexistent/run"), base::StorageError);
}

TEST(Report, ShowsWhatSparsityDoesToF) {
  const RunFolder run;
  run.write("recipe.json", R"({"stages": {"sparse": {"kind": "sparsify"}}})");
  run.write("stages/sparse.json",
            R"({"kind": "sparsify", "pattern": "2:4", "zeros_fraction": 0.5,
    "layers": [{"name": "model.layers.0.mlp.up_proj.weight", "relative_error": 0.07}],
    "damage": {"objective": 0.1234, "interval": [0.1101, 0.1402], "delta_log_perplexity": 0.0834, "kl": 0.0399,
               "worst_domain": "de<", "domains": {"en": 0.0466, "de<": 0.2002}},
    "single_damages": [{"name": "up", "sparse": true, "objective": 0.01, "delta_log_perplexity": 0.006, "kl": 0.004, "worst_domain": "fr<"}],
    "cumulative_damages": [{"up_to_block": 3, "objective": 0.02, "delta_log_perplexity": 0.011, "kl": 0.009, "worst_domain": "it<"}]})");
  const std::string page = without_assets(html_report(run.path()));
  EXPECT_TRUE(contains(page,
                       "f grew by 0.1234 (0.1101 to 0.1402), log perplexity by 0.0834 and KL by 0.0399, on "
                       "calibration text that nothing was fitted to or chosen by, most on de&lt; (0.2002)."));
  EXPECT_TRUE(contains(
      page,
      "<td class=\"words\">0.0100 (\u2013)</td><td>0.0060</td><td>0.0040</td><td class=\"words\">fr&lt;"));
  EXPECT_TRUE(contains(
      page,
      "<td class=\"words\">0.0200 (\u2013)</td><td>0.0110</td><td>0.0090</td><td class=\"words\">it&lt;"));
}

TEST(Report, ShowsTheCourseOfASearchAndHalvesOfBlocks) {
  const RunFolder run;
  run.write("recipe.json", R"({"stages": {"searched": {"kind": "prune"}}})");
  run.write("stages/searched.json",
            R"({"kind": "prune", "parameters_before": 100, "parameters_after": 60, "blocks_before": 3,
    "width_before": 4, "kept": {"blocks": [0, 2], "channels": [[[0, 1]], []], "kv_groups": [[], [0, 1]], "hidden": [1, 5]},
    "hidden_before": 6, "compensation": {"kept": true, "held_out_objective_before": 0.4, "held_out_objective_after": 0.3, "layers": [
      {"name": "one", "kept": true, "held_out_gain": 0.125, "singular": false},
      {"name": "two", "kept": false, "held_out_gain": 0, "singular": true}]},
    "method": "tabu", "units": "per_layer", "objective": 0.1234, "delta_log_perplexity": 0.1, "kl": 0.0234,
    "worst_domain": "de", "evaluations": 321, "tokens_spent": 40000,
    "believed": {"candidate": 0.1111, "saved": 0.1188},
    "starts": {"one_shot": {"objective": 0.5}, "greedy": {"objective": 0.25, "kl": 0.125, "worst_domain": "fr"}},
    "curve": [[1000, 0.5], [20000, 0.1234], "odd"],
    "finalists": [{"objective": 0.1234, "behind": 0, "interval": [0, 0], "tied": true, "blocks": 2},
                  {"objective": 0.1300, "worst_domain": "it", "behind": 0.0066, "interval": [-0.0012, 0.0145], "tied": true, "blocks": 2},
                  {"objective": 0.2, "behind": 0.0766, "interval": [0.06, 0.09], "tied": false, "blocks": 3, "bytes": 4321, "seconds": 0.0042},
                  {"objective": 0.3, "behind": 0.1766, "interval": null, "tied": false, "blocks": 3, "seconds": 0.0042}],
    "cost": {"parameters": 60, "bytes": 4321, "flops_per_token": 120, "seconds": 0.0042},
    "cost_before": {"parameters": 100, "bytes": 8765, "flops_per_token": 200, "seconds": 0.0075}})");
  const std::string page = without_assets(html_report(run.path()));
  EXPECT_TRUE(contains(page, "kept as block 0</td><td class=\"words\">0</td><td>2</td>")) << "no KV group";
  EXPECT_TRUE(contains(page, "kept as block 1</td><td class=\"words\">2: 0 1</td>"));
  EXPECT_TRUE(contains(page, "hidden states of 2 of 6 features"));
  EXPECT_TRUE(contains(page, "f on the documents that choose 0.4000 before, 0.3000 after"));
  EXPECT_TRUE(contains(page, "one</th><td class=\"words\">fitted</td></tr>"));
  EXPECT_TRUE(contains(page, "two</th><td class=\"words\">singular, stays as it was</td>"));
  EXPECT_EQ(row_of(page, "pruning", "Evaluations", "searched"),
            (Row{"searched", "tabu", "per_layer", "0.1234", "0.1000", "0.0234", "de", "321", "40.0 k",
                 "0.1111", "0.1188", "\u2013"}));
  const auto charts = test::charts_of(page);
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_EQ(
      charts[0]["views"][0]["series"][0]["data"],
      Json::parse(R"([{"x": 1000.0, "y": 0.5}, {"x": 20000.0, "y": 0.1234}, {"x": 40000.0, "y": 0.1234}])"));
  EXPECT_TRUE(contains(page, "greedy</th><td>0.2500</td>"));
  EXPECT_TRUE(contains(page, "0.1250</td><td class=\"words\">fr"));
  const std::string none = "\u2013";
  EXPECT_EQ(row_of(page, "pruning", "Behind the firstnats", "2"),
            (Row{"2", "0.1300", none, none, "it", "0.0066", "-0.0012 to 0.0145", "tied", "2", none, none,
                 none, none}));
  EXPECT_EQ(row_of(page, "pruning", "Behind the firstnats", "3"),
            (Row{"3", "0.2000", none, none, "", "0.0766", "0.0600 to 0.0900", "worse", "3", none, "4.3 kB",
                 none, "4.2"}));
  EXPECT_EQ(row_of(page, "pruning", "Behind the firstnats", "before"),
            (Row{"before", none, none, none, "", none, none, "", none, "100", "8.8 kB", "200", "7.5"}));
  EXPECT_TRUE(contains(page, "takes 4.2 ms instead of 7.5 "));
  EXPECT_TRUE(contains(page, "FLOPs per token 120 instead of 200."));
}

TEST(Report, DrawsQualityAgainstSizeByMethod) {
  const RunFolder run;
  run.write("recipe.json", R"({"stages": {
    "small": {"kind": "prune", "from": "m/x", "search": {"method": "tabu"}},
    "smaller": {"kind": "prune", "from": "m/x", "search": {"method": "tabu"}},
    "by_chance": {"kind": "prune", "from": "m/x", "search": {"method": "random"}},
    "chosen": {"kind": "select", "models": ["smaller", "by_chance"]},
    "student": {"kind": "distill", "from": "chosen"},
    "scores": {"kind": "evaluate"}}})");
  run.write("stages/chosen.json", R"({"kind": "select", "chosen": "by_chance, finalist 2", "models": [
    {"name": "smaller", "model": "smaller"}, {"name": "by_chance, finalist 2", "model": "by_chance"}]})");
  run.write("stages/scores.json", R"({"kind": "evaluate", "models": [
    {"name": "m/x", "parameters": 1000, "mean": {"nll": 1, "perplexity": 2.7, "kl": 0}},
    {"name": "smaller", "parameters": 600, "mean": {"nll": 1.5, "perplexity": 4.5, "kl": 0.4}},
    {"name": "small", "parameters": 800, "mean": {"nll": 1.2, "perplexity": 3.3, "kl": 0.1}},
    {"name": "student", "parameters": 600, "mean": {"nll": 1.3, "perplexity": 3.7, "kl": 0.2}}]})");
  const std::string page = without_assets(html_report(run.path()));
  EXPECT_TRUE(contains(page, "Size and quality"));
  EXPECT_TRUE(contains(page, R"("name":"tabu")"));
  EXPECT_TRUE(contains(page, R"([{"x":600.0,"y":4.5},{"x":800.0,"y":3.3}])"))
      << "by size, not in the order of the models";
  EXPECT_TRUE(contains(page, R"("name":"random, select, distill")"));
  EXPECT_TRUE(contains(page, R"("name":"not pruned")"));
}

TEST(Report, ShowsWhichModelAShortDistillationTook) {
  const RunFolder run;
  run.write("recipe.json", R"({"stages": {"chosen": {"kind": "select"}}})");
  run.write("metrics.jsonl", R"({"stage": "chosen.1", "step": 1, "tokens": 64, "held_out": {"m": 3.0}}
{"stage": "chosen.1", "step": 2, "tokens": 128, "held_out": {"m": 2.5}}
)");
  run.write("stages/chosen.1.json",
            R"({"kind": "distill", "seconds": 61, "peak_tensor_bytes": 2048, "process_peak_bytes": 4096})");
  run.write("stages/pruned.json",
            R"({"kind": "prune", "seconds": 5, "memory_planned_bytes": 7654321, "peak_tensor_bytes": 1})");
  run.write("stages/chosen.json",
            R"({"kind": "select", "chosen": "pruned, finalist 2", "tokens": 4096,
    "latency": {"batch": 4, "context": 512, "dtype": "fp32", "target_seconds": 0.004, "models": [
    {"name": "pruned", "seconds": 0.003, "meets_target": true},
    {"name": "whole", "seconds": 0.005, "meets_target": false}]}, "models": [
    {"name": "pruned", "nll": 2.5, "behind": 0, "interval": [0, 0], "tied": true, "seconds": 0.0123},
    {"name": "pruned, finalist 2", "nll": 2.51, "behind": 0.01, "interval": [-0.002, 0.021], "tied": true},
    {"name": "other <b>", "nll": 2.7, "behind": 0.2, "interval": null, "tied": false}]})");
  const std::string page = without_assets(html_report(run.path()));
  EXPECT_TRUE(contains(page, "Models after a short distillation"));
  EXPECT_EQ(row_of(page, "selection", "Behind the bestnats per token", "pruned, finalist 2"),
            (Row{"pruned, finalist 2", "2.5100", "0.0100", "-0.0020 to 0.0210", "tied", "\u2013", "\u2013",
                 "\u2013", "\u2013"}));
  EXPECT_TRUE(contains(page, "<tr class=\"chosen\"><th scope=\"row\" class=\"words\">pruned, finalist 2"));
  EXPECT_TRUE(contains(page, "Taken: pruned, finalist 2."));
  EXPECT_TRUE(contains(page,
                       "The target allows 4.00 ms a token at batch 4 and 512 tokens, in fp32. "
                       "Measured: pruned 3.00 ms, whole 5.00 ms. Too slow, so left out: whole."));
  EXPECT_EQ(row_of(page, "selection", "Behind the bestnats per token", "pruned").back(), "12.3");
  EXPECT_EQ(row_of(page, "memory", "Planned", "pruned"),
            (Row{"pruned", "prune", "5.0 s", "7.7 MB", "1 B", "\u2013"}));
  EXPECT_EQ(row_of(page, "memory", "Planned", "chosen.1"),
            (Row{"chosen.1", "distill", "1 min 01 s", "\u2013", "2.0 kB", "4.1 kB"}))
      << "of a version that did not tell its plan";
  EXPECT_TRUE(contains(page, "other &lt;b&gt;"));
  EXPECT_TRUE(contains(page, "0.2000</td><td>\u2013</td><td class=\"words\">\u2013</td>"))
      << "no interval, no verdict";
  EXPECT_TRUE(contains(page, "Held-out loss of training from the models of chosen."));
}

}  // namespace
}  // namespace retort::report
