// Scores of a text against transformers, and what is refused.
#include "retort/eval/evaluate.h"
#include "retort/eval/generate_texts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <span>
#include <tuple>

#include "retort/base/error.h"
#include "retort/shard/weights_of_machine.h"
#include "support/message_of.h"
#include "support/oracle_case.h"
#include "support/ranks.h"
#include "support/reference_model.h"
#include "support/temporary_directory.h"
#include "support/tolerance.h"
#include "train/lent_parameters.h"

namespace retort {
namespace {

using eval::Windowing;

std::unique_ptr<shard::Parameters> parameters_of(const std::filesystem::path& directory) {
  return shard::resident_parameters(model::load_weights(directory, at::kFloat, at::kCPU), shard::Use::frozen,
                                    at::kFloat);
}

// The documents of the oracle, with its ids in place of a tokenizer.
struct OracleText {
  OracleText() : folder(test::oracles("eval")), expected(test::json_file(folder / "expected.json")) {
    const auto text = base::read_file(folder / "text.jsonl");
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = text.find('\n', begin);
      const auto line = base::parse_json(text.substr(begin, end - begin));
      ids[line.at("text").get<std::string>()] = line.at("ids").get<std::vector<std::int32_t>>();
      begin = end + 1;
    }
  }
  std::unique_ptr<eval::Windows> windows(Windowing windowing, std::int64_t context) const {
    data::SourceOptions source;
    source.name = "oracle";
    source.paths = {(folder / "text.jsonl").string()};
    return eval::open_windows(source, data::Split::all, {.windowing = windowing, .context = context},
                              [this](std::string_view text) { return ids.at(std::string(text)); },
                              {.bos = 0, .eos = 0});
  }
  std::int64_t context() const { return expected.at("context"); }
  std::filesystem::path folder;
  base::Json expected;
  std::map<std::string, std::vector<std::int32_t>> ids;
};

void expect_relative(double actual, double expected, const char* what) {
  EXPECT_NEAR(actual, expected, test::kScores * std::abs(expected)) << what;
  std::printf("  %-16s %.8g (transformers %.8g)\n", what, actual, expected);
}

class EvaluateTest : public testing::TestWithParam<Windowing> {};

TEST_P(EvaluateTest, ScoresEqualThoseOfTransformers) {
  const OracleText text;
  const auto& expected = text.expected.at(GetParam() == Windowing::fixed ? "fixed" : "rolling");
  const auto student = parameters_of(text.folder / "student"),
             teacher = parameters_of(test::source() / "models" / "europa-5m");
  const eval::Subject student_subject("student", *student), teacher_subject("teacher", *teacher);
  for (const std::int64_t batch_tokens : {1, 350}) {
    std::vector<eval::WindowScores> seen;
    const auto windows = text.windows(GetParam(), text.context());
    const auto scores = eval::evaluate_source(
        student_subject, &teacher_subject, "oracle", windows.get(), {.tokens = batch_tokens, .head_rows = 33},
        [&](const eval::WindowScores& window) { seen.push_back(window); });
    EXPECT_EQ(scores.sums.targets, expected.at("targets").get<std::int64_t>());
    EXPECT_EQ(scores.bytes, expected.at("bytes").get<std::int64_t>());
    expect_relative(scores.nll(), expected.at("nll"), "nll");
    expect_relative(std::exp(scores.nll()), std::exp(expected.at("nll").get<double>()), "perplexity");
    expect_relative(scores.kl(), expected.at("kl"), "kl");
    expect_relative(scores.teacher_nll(), expected.at("teacher_nll"), "teacher nll");
    expect_relative(scores.top1(), expected.at("top1"), "top1");
    expect_relative(scores.top1_agreement(), expected.at("top1_agreement"), "top1 agreement");
    EXPECT_NEAR(scores.bits_per_byte(),
                expected.at("nll").get<double>() * static_cast<double>(scores.sums.targets) / std::log(2.0) /
                    static_cast<double>(scores.bytes),
                1e-3);

    const auto& bins = expected.at("confidence_bins");
    for (std::size_t bin = 0; bin < eval::ConfidenceBins::kBins; ++bin) {
      const auto& found = scores.sums.confidence.bins[bin];
      EXPECT_EQ(found.targets, bins[bin][0].get<std::int64_t>()) << "bin " << bin;
      EXPECT_EQ(found.correct, bins[bin][1].get<std::int64_t>()) << "bin " << bin;
      EXPECT_NEAR(found.confidence, bins[bin][2].get<double>(), 1e-3) << "bin " << bin;
    }
    expect_relative(scores.sums.confidence.expected_calibration_error(), expected.at("ece"), "ece");
    expect_relative(scores.sums.confidence.gap(), expected.at("confidence_gap"), "confidence gap");

    const auto& documents = expected.at("documents");
    ASSERT_EQ(scores.documents.size(), documents.size());
    for (std::size_t d = 0; d < documents.size(); ++d) {
      const auto& found = scores.documents[d];
      EXPECT_EQ(found.document.number, static_cast<std::int64_t>(d));
      EXPECT_EQ(found.targets, documents[d].at("targets").get<std::int64_t>());
      for (const auto& [key, sum] :
           {std::pair("nll", found.nll), {"teacher_nll", found.teacher_nll}, {"kl", found.kl}})
        EXPECT_NEAR(sum, documents[d].at(key).get<double>(),
                    test::kScores * documents[d].at(key).get<double>() + 1e-5)
            << "document " << d << ", " << key;
    }

    const auto& wanted = expected.at("windows");
    ASSERT_EQ(seen.size(), wanted.size());
    for (std::size_t w = 0; w < seen.size(); ++w) {
      EXPECT_EQ(seen[w].ids, wanted[w].at("ids").get<std::vector<std::int32_t>>());
      ASSERT_EQ(seen[w].nll.size(), seen[w].ids.size());
      for (std::size_t i = 0; i < seen[w].nll.size(); ++i) {
        const auto& nll = wanted[w].at("nll")[i];
        ASSERT_EQ(seen[w].nll[i].has_value(), !nll.is_null()) << "window " << w << ", token " << i;
        EXPECT_NEAR(seen[w].nll[i].value_or(0), nll.is_null() ? 0 : nll.get<double>(), 1e-3);
      }
    }
  }
}

// Rows of a head without a token take part in the softmax, and are never the most likely token.
TEST(Evaluate, ScoresOfAPaddedHeadFindATokenMostLikely) {
  const OracleText text;
  const auto expected = test::json_file(text.folder / "padded.json").at("fixed");
  const auto student = parameters_of(text.folder / "padded"),
             teacher = parameters_of(test::source() / "models" / "europa-5m");
  const std::int64_t tokens = teacher->config().vocab_size;
  ASSERT_GT(student->config().vocab_size, tokens);
  const eval::Subject student_subject("student", *student, tokens),
      teacher_subject("teacher", *teacher, tokens);
  const auto windows = text.windows(Windowing::fixed, text.context());
  const auto scores = eval::evaluate_source(student_subject, &teacher_subject, "oracle", windows.get());
  expect_relative(scores.nll(), expected.at("nll"), "nll");
  expect_relative(scores.kl(), expected.at("kl"), "kl");
  expect_relative(scores.top1(), expected.at("top1"), "top1");
  expect_relative(scores.top1_agreement(), expected.at("top1_agreement"), "top1 agreement");
  expect_relative(scores.sums.confidence.expected_calibration_error(), expected.at("ece"), "ece");
}

// Positions that are dynamic differ from plain ones only beyond the context of the configuration.
TEST(Evaluate, FollowsDynamicPositionsBeyondTheirContext) {
  const OracleText text;
  const auto expected = test::json_file(text.folder / "stretched.json");
  const auto model = parameters_of(text.folder / "stretched");
  ASSERT_GT(text.context(), model->config().max_position_embeddings);
  const eval::Subject subject("stretched", *model);
  for (const auto windowing : {Windowing::fixed, Windowing::rolling}) {
    const auto windows = text.windows(windowing, text.context());
    const auto scores = eval::evaluate_source(subject, nullptr, "oracle", windows.get());
    expect_relative(scores.nll(), expected.at(base::word(windowing)).at("nll"), "nll");
  }
}

INSTANTIATE_TEST_SUITE_P(Both, EvaluateTest, testing::Values(Windowing::fixed, Windowing::rolling),
                         [](const auto& tested) {
                           return std::string(tested.param == Windowing::fixed ? "FixedWindows"
                                                                               : "RollingDocuments");
                         });

// reference.json of each model was computed by other programs: mean loss of documents, each a window of its
// own.
void expect_reference(const std::filesystem::path& directory) {
  SCOPED_TRACE(directory.string());
  const auto parameters = parameters_of(directory);
  const eval::HeadScorer head(parameters->config(), parameters->layout(),
                              parameters->acquire(parameters->layout().head_unit()));
  const auto reference = test::json_file(directory / "reference.json");
  std::int64_t documents = 0;
  for (const auto& document : reference.at("docs")) {
    const auto ids = document.at("ids").get<std::vector<std::int64_t>>();
    const auto count = static_cast<std::int64_t>(ids.size());
    const auto ids_N = model::index_tensor(ids, at::kCPU);
    const auto hidden_ND =
        eval::forward_hidden(*parameters, ids_N.narrow(0, 0, count - 1),
                             model::make_token_layout(parameters->config(), {0, count - 1}, at::kCPU));
    eval::RowScores rows;
    const auto sums =
        eval::score_hidden(head, hidden_ND, nullptr, {}, ids_N.narrow(0, 1, count - 1), 100, &rows);
    EXPECT_NEAR(sums.nll / static_cast<double>(sums.targets), document.at("mean_nll").get<double>(), 2e-4);
    const auto first = document.value("nll_first8", std::vector<double>());
    for (std::size_t i = 0; i < first.size(); ++i)
      EXPECT_NEAR(rows.nll_N[static_cast<std::int64_t>(i)].item<double>(), first[i], 2e-4);
    ++documents;
  }
  EXPECT_GE(documents, 5);
}

TEST(Evaluate, LossesOfEuropa5mAreThoseOfItsCard) {
  expect_reference(test::source() / "models" / "europa-5m");
}

TEST(Evaluate, LossesOfEveryModelAtHandAreThoseOfItsReference) {
  RETORT_SHARED_DATA_OR_SKIP(shared);
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(shared / "models"))
    if (std::filesystem::exists(entry.path() / "reference.json") && entry.path().filename() != "europa-5m") {
      expect_reference(entry.path());
      ++models;
    }
  EXPECT_GE(models, 2);
}

TEST(RollingWindows, PredictEachTokenOnceAndTheLastReachesBack) {
  std::vector<std::int32_t> ids(34);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i);
  const auto windows = eval::rolling_windows(ids, 100, 10);
  ASSERT_EQ(windows.size(), 4U);
  EXPECT_EQ(windows[0].ids, (std::vector<std::int32_t>{100, 0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(windows[0].targets, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(windows[1].ids, (std::vector<std::int32_t>{9, 10, 11, 12, 13, 14, 15, 16, 17, 18}));
  EXPECT_EQ(windows[3].ids, (std::vector<std::int32_t>{23, 24, 25, 26, 27, 28, 29, 30, 31, 32}));
  EXPECT_EQ(windows[3].targets, (std::vector<std::int32_t>{-1, -1, -1, -1, -1, -1, 30, 31, 32, 33}));
  EXPECT_EQ(eval::rolling_windows({7}, 100, 10).size(), 1U);
  EXPECT_EQ(eval::rolling_windows(std::vector<std::int32_t>(20, 5), 100, 10).size(), 2U);
}

// Windows that a test makes up.
class GivenWindows final : public eval::Windows {
 public:
  explicit GivenWindows(std::vector<std::vector<std::int32_t>> ids) : ids_(std::move(ids)), documents_(1) {
    documents_[0].bytes = 10;
  }
  bool next(eval::Window& window) override {
    if (next_ == ids_.size()) return false;
    window = {};
    window.ids = ids_[next_++];
    window.targets.assign(window.ids.begin() + 1, window.ids.end());
    window.targets.push_back(data::kNoTarget);
    window.starts = {0};
    window.target_documents.assign(window.ids.size(), 0);
    return true;
  }
  std::int64_t skipped_lines() const override { return 0; }
  const std::vector<data::TextDocument>& documents() const override { return documents_; }

 private:
  std::vector<std::vector<std::int32_t>> ids_;
  std::vector<data::TextDocument> documents_;
  std::size_t next_ = 0;
};

std::unique_ptr<shard::Parameters> small(const test::Shape& shape, std::uint64_t seed = 1,
                                         at::ScalarType type = at::kFloat) {
  return shard::resident_parameters(test::lively_weights(test::config_of(shape), seed, type),
                                    shard::Use::frozen, type);
}

TEST(Evaluate, AModelIsItsOwnPerfectStudent) {
  const auto parameters = small({});
  const eval::Subject subject("m", *parameters);
  GivenWindows windows({{1, 2, 3, 4}, {9, 8, 7}});
  const auto scores = eval::evaluate_source(subject, &subject, "s", &windows);
  EXPECT_EQ(scores.sums.targets, 5);
  EXPECT_EQ(scores.inputs, 7);
  EXPECT_EQ(scores.bytes, 10);
  EXPECT_EQ(scores.kl(), 0);
  EXPECT_EQ(scores.top1_agreement(), 1);
  EXPECT_EQ(scores.nll(), scores.teacher_nll());
  EXPECT_GT(scores.seconds, 0);
}

// One that is loaded twice makes its logits twice: that is no other score.
TEST(Evaluate, AModelThatIsItsOwnTeacherHasTheScoresOfTwoAlike) {
  const auto parameters = small({}), again = small({});
  const eval::Subject subject("m", *parameters), alike("m", *again);
  const auto scored_with = [&](const eval::Subject& teacher) {
    GivenWindows windows({{1, 2, 3, 4}, {9, 8, 7}});
    return eval::evaluate_source(subject, &teacher, "s", &windows, {.head_rows = 3});
  };
  const auto own = scored_with(subject), two = scored_with(alike);
  EXPECT_EQ(own.sums.nll, two.sums.nll);
  EXPECT_EQ(own.sums.kl, two.sums.kl);
  EXPECT_EQ(own.sums.teacher_nll, two.sums.teacher_nll);
  EXPECT_EQ(own.sums.teacher_top1_correct, two.sums.teacher_top1_correct);
  EXPECT_EQ(own.sums.top1_agreement, two.sums.top1_agreement);
}

TEST(Evaluate, RefusesAnotherVocabularyNamingBothSizes) {
  const auto a = small({}), b = small({.vocab = 60});
  const eval::Subject student("student", *a), teacher("teacher", *b);
  const auto message =
      test::message_of<base::ModelError>([&] { eval::check_comparable(student, &teacher, 8); });
  EXPECT_SAYS(message, "61");
  EXPECT_SAYS(message, "60");
}

TEST(Evaluate, RefusesAContextThatTheModelWasNotMadeFor) {
  const auto parameters = small({});
  const eval::Subject subject("m", *parameters);
  const auto message =
      test::message_of<base::UsageError>([&] { eval::check_comparable(subject, nullptr, 65); });
  EXPECT_SAYS(message, "65");
  EXPECT_SAYS(message, "64");
  GivenWindows windows({std::vector<std::int32_t>(65, 3)});
  EXPECT_THROW(eval::evaluate_source(subject, nullptr, "s", &windows), base::UsageError);
}

TEST(Evaluate, RefusesTokensOutsideTheVocabularyAndADamagedModel) {
  auto weights = test::lively_weights(test::config_of({}), 1, at::kFloat);
  const auto sound = shard::resident_parameters(weights, shard::Use::frozen, at::kFloat);
  const eval::Subject subject("m", *sound);
  GivenWindows windows({{1, 61, 3}}), good({{1, 60, 3}});
  EXPECT_SAYS(
      test::message_of<base::ModelError>([&] { eval::evaluate_source(subject, nullptr, "s", &windows); }),
      "61");
  weights.tensor("model.layers.0.mlp.up_proj.weight")[0][0] = std::numeric_limits<float>::quiet_NaN();
  const auto damaged = shard::resident_parameters(weights, shard::Use::frozen, at::kFloat);
  const eval::Subject bad("m", *damaged);
  EXPECT_SAYS(
      test::message_of<base::ValidationError>([&] { eval::evaluate_source(bad, nullptr, "s", &good); }),
      "not finite");
}

// Seven batches: of three ranks the last has one less.
TEST(Evaluate, RanksHaveTheBitsOfOne) {
  std::vector<std::vector<std::int32_t>> ids;
  for (std::int32_t i = 0; i < 14; ++i) ids.push_back({1 + i, 2, 3, 4 + i, 5, 60 - i});
  const auto a = small({}), b = small({}, 2);
  const auto scores_of = [&](comm::Group* group, std::vector<std::string>& lines) {
    const eval::Subject student("student", *a), teacher("teacher", *b);
    GivenWindows windows(ids);
    return eval::evaluate_source(student, &teacher, "s", group && group->rank() > 0 ? nullptr : &windows,
                                 {.tokens = 12, .group = group}, [&](const eval::WindowScores& window) {
                                   lines.push_back(eval::to_json_line(window));
                                 });
  };
  std::vector<std::string> expected_lines;
  const auto expected = scores_of(nullptr, expected_lines);
  for (const int ranks : {1, 2, 3, 8})
    test::on_ranks(ranks, [&](comm::Group& group) {
      std::vector<std::string> lines;
      const auto scores = scores_of(&group, lines);
      EXPECT_EQ(lines, expected_lines);
      EXPECT_EQ(scores.inputs, expected.inputs);
      EXPECT_EQ(scores.sums.nll, expected.sums.nll);
      EXPECT_EQ(scores.sums.kl, expected.sums.kl);
      EXPECT_EQ(scores.sums.top1_agreement, expected.sums.top1_agreement);
      EXPECT_EQ(scores.sums.confidence.expected_calibration_error(),
                expected.sums.confidence.expected_calibration_error());
      ASSERT_EQ(scores.documents.size(), expected.documents.size());
      for (std::size_t i = 0; i < scores.documents.size(); ++i)
        EXPECT_EQ(scores.documents[i].kl, expected.documents[i].kl);
    });
}

// As ranks with an accelerator each: nobody holds a whole model.  Three ranks have no batch in the last
// round.
TEST(Evaluate, RanksThatGatherWeightsHaveTheBitsOfOne) {
  std::vector<std::vector<std::int32_t>> ids;
  for (std::int32_t i = 0; i < 5; ++i) ids.push_back({1 + i, 2, 3, 4 + i, 5, 60 - i});
  const auto weights_of = [](std::uint64_t seed) {
    return test::lively_weights(test::config_of({}), seed, at::kFloat);
  };
  const auto weights = weights_of(1), other_weights = weights_of(2);
  struct Found {
    std::vector<double> values;
    std::vector<std::int32_t> made;
  };
  // The second model is compared on text that the teacher has read.
  const auto found = [&](shard::Parameters& a, shard::Parameters& b, comm::Group* group, bool room) {
    const eval::Subject student("student", a), teacher("teacher", b);
    eval::TeacherStates states(!room && group && group->rank() == 1 ? 0 : 1 << 20);
    Found all;
    for (const auto* model : {&student, &teacher, &student}) {
      GivenWindows windows(ids);
      const auto scores =
          eval::evaluate_source(*model, &teacher, "s", group && group->rank() > 0 ? nullptr : &windows,
                                {.tokens = 6, .group = group, .teacher_states = &states});
      all.values.insert(all.values.end(), {scores.sums.nll, scores.sums.kl, scores.sums.teacher_nll});
    }
    // Rank 0 alone listens.
    const std::vector<eval::Prompt> prompts = {{{3, 4}, 0}};
    eval::generate_texts(a, prompts, {.max_new_tokens = 5},
                         {.done = [&](std::size_t, const auto& made) { all.made = made.ids; }}, group);
    return all;
  };
  const auto a = small({}), b = small({}, 2);
  const auto expected = found(*a, *b, nullptr, true);
  for (const int ranks : {2, 4})
    test::on_ranks(
        ranks,
        [&](comm::Group& group) {
          const auto student = shard::read_only_model(model::source_of(weights), at::kFloat, at::kCPU, group),
                     teacher =
                         shard::read_only_model(model::source_of(other_weights), at::kFloat, at::kCPU, group);
          ASSERT_FALSE(student.parameters->resident());
          for (const bool room : {true, false}) {  // for the teacher's states, on every rank or not on one
            const auto all = found(*student.parameters, *teacher.parameters, &group, room);
            EXPECT_EQ(all.values, expected.values);
            if (group.rank() == 0) {
              EXPECT_EQ(all.made, expected.made);
            }
          }
          group.barrier();
        },
        /*common_blocks=*/false);
}

TEST(Evaluate, ADamagedModelIsNamedOnEveryRank) {
  auto weights = test::lively_weights(test::config_of({}), 1, at::kFloat);
  weights.tensor("model.layers.0.mlp.up_proj.weight")[0][0] = std::numeric_limits<float>::quiet_NaN();
  const auto damaged = shard::resident_parameters(weights, shard::Use::frozen, at::kFloat);
  test::on_ranks(3, [&](comm::Group& group) {
    const eval::Subject subject("m", *damaged);
    GivenWindows windows({{1, 60, 3}});
    EXPECT_THROW(eval::evaluate_source(subject, nullptr, "s", group.rank() > 0 ? nullptr : &windows,
                                       {.group = &group}),
                 base::ValidationError);
    EXPECT_TRUE(group.failed_together());
  });
}

// Parameters whose units are not numbers once they are released.
TEST(Evaluate, ReadsNoUnitThatItDoesNotHold) {
  for (const bool tied : {false, true})
    for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
      SCOPED_TRACE(at::toString(type));
      const auto score = [](shard::Parameters& student_parameters, shard::Parameters& teacher_parameters) {
        const eval::Subject student("student", student_parameters), teacher("teacher", teacher_parameters);
        GivenWindows windows({{1, 2, 3, 4}, {9, 8, 7}});
        const auto scores = eval::evaluate_source(student, &teacher, "s", &windows);
        return std::pair{scores.nll(), scores.kl()};
      };
      const auto student = [&] { return small({.tied = tied}, 1, type); };
      const auto teacher = [&] { return small({.tied = tied}, 2, type); };
      test::LentParameters lent_student(student(), shard::Use::frozen),
          lent_teacher(teacher(), shard::Use::frozen);
      EXPECT_EQ(score(lent_student, lent_teacher), score(*student(), *teacher()));
    }
}

// Windows of two lengths in three batches, of which every model sees the same.
TEST(Evaluate, ATeacherReadsOnceWhatSeveralModelsAreComparedOn) {
  const std::vector<std::vector<std::int32_t>> ids{{1, 2, 3, 4}, {9, 8, 7}, {5, 6, 7, 8}, {4, 3, 2}};
  const auto a = small({}, 1), b = small({}, 2);
  const auto block = architecture::Layout::block_unit(0);
  const auto scored = [&](shard::Parameters& student, shard::Parameters& teacher, eval::TeacherStates* kept,
                          std::span<const std::vector<std::int32_t>> text) {
    const eval::Subject subject("student", student), teacher_subject("teacher", teacher);
    GivenWindows windows({text.begin(), text.end()});
    const auto scores = eval::evaluate_source(subject, &student == &teacher ? &subject : &teacher_subject,
                                              "s", &windows, {.tokens = 5, .teacher_states = kept});
    return std::tuple{scores.nll(), scores.kl(), scores.teacher_nll(), scores.top1_agreement()};
  };
  test::LentParameters teacher(small({}, 3), shard::Use::frozen);
  const auto passes = [&] { return teacher.counts()[static_cast<std::size_t>(block)].acquired; };
  eval::TeacherStates kept(1 << 20);
  const auto alone = scored(*a, teacher, nullptr, ids), other_alone = scored(*b, teacher, nullptr, ids);
  const auto before = passes();
  EXPECT_EQ(scored(*a, teacher, &kept, ids), alone);
  EXPECT_EQ(passes(), before + 4);
  EXPECT_EQ(scored(*b, teacher, &kept, ids), other_alone);
  EXPECT_EQ(passes(), before + 4) << "the teacher was run again";
  // Another text is no reason to believe what was kept.
  const std::vector<std::vector<std::int32_t>> others{{1, 2, 3, 5}};
  EXPECT_EQ(scored(*b, teacher, &kept, others), scored(*b, teacher, nullptr, others));
}

TEST(Evaluate, ATeacherAmongTheModelsKeepsWhatItMakesAndRoomIsKeptTo) {
  const std::vector<std::vector<std::int32_t>> ids{{1, 2, 3, 4}, {9, 8, 7, 6}};
  test::LentParameters teacher(small({}, 3), shard::Use::frozen);
  const auto student = small({}, 1);
  const auto block = architecture::Layout::block_unit(0);
  const auto hidden_bytes = 4 * teacher.config().hidden_size * std::int64_t{sizeof(float)};
  for (const std::int64_t batches : {0, 1, 2}) {
    eval::TeacherStates kept(batches * hidden_bytes);
    const eval::Subject subject("student", *student), own("teacher", teacher);
    const auto score = [&](const eval::Subject& model) {
      GivenWindows windows(ids);
      eval::evaluate_source(model, &own, "s", &windows, {.tokens = 4, .teacher_states = &kept});
    };
    score(own);
    const auto before = teacher.counts()[static_cast<std::size_t>(block)].acquired;
    score(subject);
    EXPECT_EQ(teacher.counts()[static_cast<std::size_t>(block)].acquired - before, 2 - batches);
  }
}

TEST(Evaluate, HoldsTheHeadOnlyWhileItReadsIt) {
  test::LentParameters copied(small({}, 1, at::kBFloat16), shard::Use::frozen),
      read(small({}, 1, at::kFloat), shard::Use::frozen);
  const eval::Subject of_copy("copied", copied), of_unit("read", read);
  const auto held = [](const test::LentParameters& parameters) {
    const auto& counts = parameters.counts().back();
    return counts.acquired - counts.released;
  };
  EXPECT_EQ(held(copied), 0) << "its scorer has a copy in float32";
  EXPECT_EQ(held(read), 1);
}

TEST(Evaluate, ScoresLogitsInFloatWhenTheModelComputesInBfloat16) {
  const auto parameters = small({}, 1, at::kBFloat16);
  const eval::Subject subject("m", *parameters);
  EXPECT_EQ(subject.head.logits(at::zeros({2, 24}, at::kBFloat16)).scalar_type(), at::kFloat);
}

TEST(Evaluate, CountsNonzeroParametersAndFileBytes) {
  auto weights = test::lively_weights(test::config_of({.tied = true}), 1, at::kFloat);
  weights.file_dtype = io::Dtype::bf16;
  weights.tensor("model.layers.1.mlp.up_proj.weight").narrow(0, 0, 2).zero_();
  const test::TemporaryDirectory directory;
  model::save_model(weights, directory / "m", {}, {});
  const auto parameters = shard::resident_parameters(weights, shard::Use::frozen, at::kFloat);
  const eval::Subject subject("m", *parameters);
  const auto scores = eval::describe_model(subject, directory / "m");
  EXPECT_EQ(scores.parameters - scores.nonzero_parameters, 48);
  EXPECT_GT(scores.file_bytes, 2 * scores.parameters);
  EXPECT_LT(scores.file_bytes, 2 * scores.parameters + 8192);
}

// Ten targets with a confidence of 0.5, of which `right` are right.
eval::ConfidenceBins confidence_of(int right) {
  eval::ConfidenceBins bins;
  for (int i = 0; i < 10; ++i) bins.add(0.5, i < right);
  return bins;
}

eval::SourceScores made_up(const char* name, double nll, double teacher_nll, double kl, std::int64_t bytes) {
  eval::SourceScores scores;
  scores.name = name;
  scores.bytes = bytes;
  scores.has_teacher = true;
  scores.inputs = 100;
  scores.seconds = 0.5;
  scores.sums = {.targets = 10,
                 .nll = 10 * nll,
                 .kl = 10 * kl,
                 .top1_correct = 4,
                 .top1_agreement = 8,
                 .confidence = confidence_of(4),
                 .teacher_nll = 10 * teacher_nll,
                 .teacher_top1_correct = 5,
                 .head_seconds = 0};
  return scores;
}

TEST(ScoresJson, MeansGiveEverySourceTheSameWeightAndRecoveryIsTeacherOverModel) {
  eval::ModelScores model;
  model.name = "student";
  model.sources = {made_up("a", 3, 2, 0.5, 20), made_up("b", 1, 1, 0.1, 40)};
  model.generations = {{"Once", "Once upon"}};
  const auto json = eval::to_json(512, Windowing::fixed, "teacher", {model});
  EXPECT_EQ(json.at("kind"), "evaluate");
  EXPECT_EQ(json.at("context"), 512);
  EXPECT_EQ(json.at("teacher"), "teacher");
  const auto& first = json.at("models")[0];
  EXPECT_DOUBLE_EQ(first.at("tokens_per_second").get<double>(), 200);
  EXPECT_EQ(first.at("sources")[0].at("tokens"), 10);
  EXPECT_DOUBLE_EQ(first.at("sources")[0].at("bits_per_byte").get<double>(), 30 / std::log(2.0) / 20);
  const auto& mean = first.at("mean");
  EXPECT_DOUBLE_EQ(mean.at("nll").get<double>(), 2);
  EXPECT_DOUBLE_EQ(mean.at("perplexity").get<double>(), std::exp(2.0));
  EXPECT_DOUBLE_EQ(mean.at("kl").get<double>(), 0.3);
  EXPECT_DOUBLE_EQ(mean.at("top1_agreement").get<double>(), 0.8);
  EXPECT_DOUBLE_EQ(mean.at("recovery").get<double>(), std::exp(1.5 - 2));
  EXPECT_DOUBLE_EQ(mean.at("recovery_per_metric").at("top1").get<double>(), 0.8);
  EXPECT_DOUBLE_EQ(mean.at("nll_difference").get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(mean.at("ece").get<double>(), 0.1);
  EXPECT_DOUBLE_EQ(mean.at("confidence_gap").get<double>(), 0.1);
  const auto& bins = first.at("sources")[0].at("confidence_bins");
  ASSERT_EQ(bins.size(), 15U);
  EXPECT_EQ(bins[7], base::Json({10, 0.5, 0.4}));
  EXPECT_EQ(bins[6], base::Json({0, nullptr, nullptr}));
  EXPECT_EQ(first.at("generations").at(0).at("text"), "Once upon");
  model.sources[0].has_teacher = model.sources[1].has_teacher = false;
  EXPECT_FALSE(eval::to_json(512, Windowing::fixed, "", {model}).at("models")[0].at("mean").contains("kl"));
}

eval::DocumentScores document(std::int64_t number, std::int64_t targets, double nll, double teacher_nll) {
  return {.document = {.number = number, .hash = 0xabcu, .bytes = 3 * targets},
          .targets = targets,
          .nll = nll,
          .kl = 0.25,
          .teacher_nll = teacher_nll};
}

TEST(ScoresJson, IntervalsOfTheDifferenceNeedEightDocumentsOfEverySource) {
  eval::ModelScores model;
  model.name = "student";
  model.sources = {made_up("a", 8, 8, 0.5, 30), made_up("b", 4, 4, 0.1, 30)};
  std::vector<eval::RatioTerm> terms;
  for (int i = 0; i < 8; ++i) {
    model.sources[0].documents.push_back(document(i, 5, 14 + i, 10));
    model.sources[1].documents.push_back(document(i, 5, 5, 5));
    terms.push_back({4.0 + i, 5});
  }
  const auto expected = eval::bootstrap_interval(std::vector<std::vector<eval::RatioTerm>>{terms});
  ASSERT_TRUE(expected);
  const auto json = [&] { return eval::to_json(512, Windowing::fixed, "teacher", {model}).at("models")[0]; };
  auto scores = json();
  EXPECT_EQ(scores.at("sources")[0].at("documents"), 8);
  EXPECT_EQ(scores.at("sources")[0].at("nll_difference_interval"),
            base::Json({expected->low, expected->high}));
  EXPECT_TRUE(scores.at("sources")[1].at("nll_difference_interval").is_null());
  EXPECT_EQ(scores.at("sources")[1].at("no_interval"), "equal documents");
  EXPECT_FALSE(scores.at("sources")[0].contains("no_interval"));
  EXPECT_NEAR(scores.at("mean").at("nll_difference_interval")[0].get<double>(), expected->low / 2, 0.05);
  model.sources[1].documents.pop_back();
  scores = json();
  EXPECT_FALSE(scores.at("sources")[0].at("nll_difference_interval").is_null());
  EXPECT_TRUE(scores.at("sources")[1].at("nll_difference_interval").is_null());
  EXPECT_TRUE(scores.at("mean").at("nll_difference_interval").is_null());
  EXPECT_EQ(scores.at("mean").at("no_interval"), "too few documents");
}

TEST(DocumentLines, HoldTheSumsOfEachDocumentUnderAHashOfItsText) {
  eval::ModelScores model;
  model.name = "student";
  model.sources = {made_up("a", 3, 2, 0.5, 30)};
  model.sources[0].documents = {document(49, 5, 16.5, 10)};
  EXPECT_EQ(eval::document_lines(model),
            R"({"model":"student","source":"a","number":49,"hash":"0000000000000abc","bytes":15,"tokens":5,)"
            R"("nll":16.5,"teacher_nll":10.0,"kl":0.25})"
            "\n");
}

TEST(PerToken, WritesNullWhereATokenWasNotPredicted) {
  EXPECT_EQ(eval::to_json_line({.ids = {5, 6, 7}, .nll = {std::nullopt, 0.5F, 0.1F}}),
            R"({"ids": [5, 6, 7], "nll": [null, 0.5, 0.1]})");
}

}  // namespace
}  // namespace retort
