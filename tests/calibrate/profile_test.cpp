#include "retort/calibrate/profile.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/calibrate/histogram.h"
#include "retort/calibrate/profile_file.h"
#include "retort/io/safetensors.h"
#include "retort/model/forward.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/prune/plan.h"
#include "retort/record/stopped.h"
#include "support/impatient.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"
#include "support/ranks.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

using calibrate::profile;
using model::Tap;

class Metered final : public ::testing::Environment {
 public:
  void SetUp() override { ops::install_tensor_allocator(); }
};
[[maybe_unused]] const auto* const kMetered = ::testing::AddGlobalTestEnvironment(new Metered);

// Several panels of both domains; the last of each is shorter.
std::vector<calibrate::SourceText> text(std::size_t sequences = 50) {
  return test::random_domains(40, sequences, 64);
}

struct Place {
  test::TemporaryDirectory directory;

  calibrate::ProfilePlace place(const std::string& identity = "this") const {
    return {.directory = directory / "result",
            .scratch = directory / "scratch",
            .identity = identity,
            .memory = 0};
  }
  base::Path file(std::int64_t block) const {
    return directory / "result" / calibrate::profile_file_name(block);
  }
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> contents;
    for (const auto& entry : std::filesystem::directory_iterator(directory / "result"))
      contents[entry.path().filename()] = base::read_file(entry.path());
    return contents;
  }
};

// The inputs of one layer on all of the text.
at::Tensor inputs_of(const model::Weights& weights, std::int64_t wanted, Tap tap) {
  std::vector<at::Tensor> parts;
  for (const auto& batch : calibrate::calibration_batches(text(), weights.config, at::kCPU, 64)) {
    auto hidden_ND = model::embedded(weights, batch.ids_N);
    for (std::int64_t block = 0; block <= wanted; ++block) {
      const model::BlockHooks hooks{.tap = [&](Tap found, const at::Tensor& x) {
        if (block == wanted && found == tap) parts.push_back(x.clone());
      }};
      hidden_ND = model::block_forward(model::weights_of_block(weights, block), weights.config.rms_norm_eps,
                                       hidden_ND, batch.layout, nullptr, &hooks);
    }
  }
  return at::cat(parts);
}

TEST(Profile, HoldsTheSumsOfEveryLayersInputs) {
  const Place made;
  record::Observer observer;
  const auto weights = test::tiny_model(test::tiny_config());
  const auto report = profile(weights, text(), made.place(), observer);
  EXPECT_EQ(report.tokens(), 2 * 50 * 64);
  for (const std::int64_t block : {0, 2}) {
    const auto taps =
        calibrate::read_block_profile(made.file(block), {.ranking = calibrate::ChannelRanking::obs});
    for (const auto tap : calibrate::kTaps) {
      SCOPED_TRACE(base::join(block, " ", calibrate::name(tap)));
      const auto& found = taps[tap];
      const auto x = inputs_of(weights, block, tap);
      EXPECT_EQ(found.tokens, x.size(0));
      EXPECT_EQ(found.hessian.sequences, 100);
      EXPECT_LT(test::largest_difference(found.hessian.products_CC, at::mm(x.t(), x)), 1e-8);
      EXPECT_LT(test::largest_difference(found.absolute_I, x.abs().sum(0)), 1e-9);
      EXPECT_LT(test::largest_difference(found.sum_I, x.sum(0)), 1e-9);
      EXPECT_LT(
          test::largest_difference(found.squares_I, x.square().sum(0)) / x.square().sum().item<double>(),
          1e-6);
      EXPECT_TRUE(at::equal(found.maximum_I, x.abs().amax(0)));
      const auto means = x.view({100, 64, -1}).abs().mean(1);
      EXPECT_LT(test::largest_difference(found.sequence_squares_I, means.square().sum(0)), 1e-9);
      EXPECT_TRUE(at::equal(found.counts_IB, calibrate::magnitude_counts(x, found.scale_I)));
    }
    const auto& down = model::weights_of_block(weights, block).down_DI;
    EXPECT_LT(test::largest_difference(taps[Tap::down_input].scale_I, down.square().sum(0).sqrt()), 1e-12);
  }
  EXPECT_FALSE(std::filesystem::exists(made.place().scratch));
}

TEST(Profile, HasTheSameBitsWhereverItWasInterrupted) {
  const auto weights = test::tiny_model(test::tiny_config(), 1, at::kFloat);
  const Place whole;
  record::Observer observer;
  const auto report = to_json(profile(weights, text(), whole.place(), observer));
  const auto expected = whole.files();
  EXPECT_EQ(expected.size(), 4U);
  for (std::int64_t after = 1; after < 3 * 4; ++after) {  // 3 blocks of 4 panels
    const Place made;
    test::Impatient impatient(after);
    EXPECT_THROW(profile(weights, text(), made.place(), impatient), record::StoppedError);
    EXPECT_EQ(made.files().size(), static_cast<std::size_t>(after / 4)) << "finished blocks are kept";
    EXPECT_EQ(to_json(profile(weights, text(), made.place(), observer)), report);
    EXPECT_TRUE(made.files() == expected) << "stopped after panel " << after;
  }
}

TEST(Profile, OfSomethingElseIsBegunAnew) {
  const auto weights = test::tiny_model(test::tiny_config());
  const Place made;
  record::Observer observer;
  test::Impatient impatient(9);
  EXPECT_THROW(profile(weights, text(), made.place("other"), impatient), record::StoppedError);
  profile(weights, text(30), made.place(), observer);
  const Place fresh;
  profile(weights, text(30), fresh.place(), observer);
  EXPECT_TRUE(made.files() == fresh.files());
}

TEST(Profile, WithoutItsHiddenStatesBeginsAnew) {
  const auto weights = test::tiny_model(test::tiny_config());
  const Place made, fresh;
  record::Observer observer;
  test::Impatient impatient(9);
  EXPECT_THROW(profile(weights, text(), made.place(), impatient), record::StoppedError);
  EXPECT_EQ(std::filesystem::remove(made.place().scratch / "hidden-2.raw"), true);
  profile(weights, text(), made.place(), observer);
  profile(weights, text(), fresh.place(), observer);
  EXPECT_TRUE(made.files() == fresh.files());
}

void profile_on_ranks(int ranks, const model::Weights& weights, const Place& made,
                      record::Observer& of_last) {
  test::on_ranks(ranks, [&](comm::Group& group) {
    at::set_num_threads(1);
    auto place = made.place();
    place.group = &group;
    record::Observer observer;
    const auto result =
        profile(weights, text(), place, group.rank() + 1 == group.size() ? of_last : observer);
    EXPECT_EQ(result.blocks.size(), group.rank() == 0 ? weights.config.blocks.size() : 0U);
  });
}

void expect_alike(const Place& made, const Place& expected) {
  for (std::int64_t block = 0; block < 3; ++block) {
    const calibrate::RankingOptions all{.ranking = calibrate::ChannelRanking::obs};
    const auto found = calibrate::read_block_profile(made.file(block), all);
    const auto wanted = calibrate::read_block_profile(expected.file(block), all);
    for (const auto tap : calibrate::kTaps) {
      SCOPED_TRACE(base::join(block, " ", calibrate::name(tap)));
      const auto &a = found[tap], &b = wanted[tap];
      EXPECT_EQ(a.tokens, b.tokens);
      EXPECT_EQ(a.hessian.sequences, b.hessian.sequences);
      EXPECT_TRUE(at::equal(a.maximum_I, b.maximum_I));
      EXPECT_TRUE(at::equal(a.counts_IB, b.counts_IB));
      for (const auto& [x, y] :
           {std::pair{a.absolute_I, b.absolute_I}, std::pair{a.sum_I, b.sum_I},
            std::pair{a.squares_I, b.squares_I}, std::pair{a.sequence_squares_I, b.sequence_squares_I},
            std::pair{a.hessian.products_CC, b.hessian.products_CC}})
        EXPECT_LT(test::largest_difference(x, y), 1e-12 * y.abs().max().item<double>());
    }
  }
}

// Four panels: on five ranks one has none.
TEST(Profile, OfSeveralRanksIsThatOfOne) {
  const auto weights = test::tiny_model(test::tiny_config());
  const Place one;
  record::Observer observer;
  profile(weights, text(), one.place(), observer);
  for (const int ranks : {2, 3, 5}) {
    SCOPED_TRACE(base::join(ranks, " ranks"));
    const Place made;
    profile_on_ranks(ranks, weights, made, observer);
    expect_alike(made, one);
    EXPECT_FALSE(std::filesystem::exists(made.place().scratch));
  }
}

// All end when one is asked to.  On as many ranks the pass goes on with the bits that it would have had; on
// another number it begins anew.
TEST(Profile, OfSeveralRanksGoesOnWhereOneStopped) {
  const auto weights = test::tiny_model(test::tiny_config());
  const Place whole;
  record::Observer observer;
  profile_on_ranks(2, weights, whole, observer);
  for (const int ranks : {2, 3}) {
    const Place made;
    test::Impatient impatient(3);  // in the second block: a rank has two panels
    EXPECT_THROW(profile_on_ranks(2, weights, made, impatient), record::StoppedError);
    EXPECT_EQ(made.files().size(), 1U);
    if (ranks == 3) {  // stopped once more, it does not take what was there for its own
      test::Impatient at_once(0);
      EXPECT_THROW(profile_on_ranks(ranks, weights, made, at_once), record::StoppedError);
      EXPECT_EQ(made.files().size(), 0U);
    }
    profile_on_ranks(ranks, weights, made, observer);
    if (ranks == 2)
      EXPECT_TRUE(made.files() == whole.files());
    else
      expect_alike(made, whole);
  }
}

TEST(Profile, RanksAsAMeasurementDoes) {
  const auto weights = test::tiny_model(test::tiny_config());
  const Place made;
  record::Observer observer;
  profile(weights, text(), made.place(), observer);
  const auto batches = calibrate::calibration_batches(text(), weights.config, at::kCPU);
  std::vector<calibrate::RankingOptions> rankings = {prune::ranking_options({})};
  for (const auto ranking : {calibrate::ChannelRanking::wanda, calibrate::ChannelRanking::activation,
                             calibrate::ChannelRanking::fluctuation, calibrate::ChannelRanking::minitron,
                             calibrate::ChannelRanking::obs})
    rankings.push_back({.ranking = ranking});
  for (const auto& ranking : rankings) {
    const auto measured = calibrate::measured_scores(weights, batches, ranking);
    const auto read = calibrate::profile_scores(made.place().directory, weights, ranking);
    ASSERT_EQ(read.size(), measured.size());
    for (std::size_t block = 0; block < read.size(); ++block) {
      EXPECT_EQ(read[block].channels, measured[block].channels);
      EXPECT_EQ(read[block].groups, measured[block].groups);
    }
  }
  EXPECT_THROW(calibrate::profile_scores(made.place().directory, weights,
                                         {.ranking = calibrate::ChannelRanking::taylor}),
               base::UsageError);
  EXPECT_THROW(
      calibrate::profile_scores(made.place().directory, test::tiny_model(test::tiny_config(3, 12)), {}),
      base::UsageError);
}

TEST(Profile, DescriptionPromisesWhatIsThere) {
  const auto weights = test::tiny_model(test::tiny_config());
  const Place made;
  record::Observer observer;
  const auto directory = made.place().directory;
  EXPECT_THROW(calibrate::read_profile_description(directory), base::UsageError);
  profile(weights, text(), made.place(), observer);
  const auto description = calibrate::read_profile_description(directory);
  EXPECT_EQ(description.at("identity"), "this");
  EXPECT_EQ(description.at("layers").size(), 12U);
  std::ofstream(made.file(1), std::ios::app) << "x";
  const auto message =
      test::message_of<base::ModelError>([&] { calibrate::read_profile_description(directory); });
  EXPECT_NE(message.find("block-00001.safetensors"), std::string::npos) << message;
  base::write_file_atomically(directory / calibrate::kProfileDescription, "{\"format\": 7}");
  EXPECT_THROW(calibrate::read_profile_description(directory), base::ModelError);
  base::write_file_atomically(directory / calibrate::kProfileDescription, "{");
  EXPECT_THROW(calibrate::read_profile_description(directory), base::ModelError);
}

TEST(Profile, ABlockWhoseCountsAreNoWholeNumbersIsRefused) {
  const Place made;
  const std::vector<std::byte> counts(2 * sizeof(float));
  base::make_directories(made.place().directory);
  io::write_safetensors(made.file(0),
                        std::vector{io::tensor_of_bytes("down_input.counted", io::Dtype::f32, {2}, counts)});

  const auto message =
      test::message_of<base::ModelError>([&] { (void)calibrate::read_block_profile(made.file(0), {}); });

  EXPECT_NE(message.find("expected I64 [2]"), std::string::npos) << message;
}

TEST(Profile, ActivationsThatAreNotFiniteNameTheLayerAndKeepWhatIsFinished) {
  auto weights = test::tiny_model(test::tiny_config());
  const Place made;
  record::Observer observer;
  const auto name = "model.layers.1.self_attn.v_proj.weight";
  weights.tensor(name)[0][0].fill_(std::nan(""));
  const auto message =
      test::message_of<base::ValidationError>([&] { profile(weights, text(), made.place(), observer); });
  EXPECT_NE(message.find("block 1, output_input"), std::string::npos) << message;
  EXPECT_EQ(made.files().size(), 1U);
}

TEST(Profile, ErrorsOfTheWriterReachTheCaller) {
  const auto weights = test::tiny_model(test::tiny_config());
  const Place made;
  record::Observer observer;
  test::Impatient impatient(1);
  EXPECT_THROW(profile(weights, text(), made.place(), impatient), record::StoppedError);
  std::filesystem::create_directories(made.file(0) / "in the way");
  EXPECT_THROW(profile(weights, text(), made.place(), observer), base::StorageError);
  std::filesystem::remove_all(made.file(0));
  profile(weights, text(), made.place(), observer);
  EXPECT_EQ(made.files().size(), 4U);
}

TEST(Profile, InactiveAndMassiveChannelsAreReported) {
  auto weights = test::tiny_model(test::tiny_config());
  weights.tensor("model.layers.1.mlp.up_proj.weight").narrow(0, 3, 2).zero_();
  weights.tensor("model.layers.2.mlp.up_proj.weight").select(0, 9).mul_(1e4);
  const Place made;
  record::Observer observer;
  const auto report = to_json(profile(weights, text(), made.place(), observer));
  EXPECT_EQ(report["blocks"][1]["inactive_channels"], (std::vector{3, 4}));
  EXPECT_EQ(report["blocks"][0]["inactive_channels"], base::Json::array());
  EXPECT_EQ(report["blocks"][2]["massive_channels"][0]["channel"], 9);
  EXPECT_GT(report["blocks"][2]["massive_channels"][0]["over_median"], 1000);
  const auto& tap = report["blocks"][0]["taps"]["down_input"];
  EXPECT_EQ(tap["features"], 16);
  EXPECT_LT(tap["quantiles"][0][1], tap["quantiles"][2][1]);
  EXPECT_LE(tap["quantiles"][2][1], 1.07 * tap["maximum"].get<double>());
}

TEST(Profile, NeedsTheMemoryThatItStatesWhateverTheAmountOfText) {
  auto config = test::tiny_config(3, 512);
  config.hidden_size = 128;
  config.blocks.assign(3,
                       {.attention = architecture::Attention{8, 4, 16}, .mlp = architecture::DenseMlp{512}});
  const auto weights = test::tiny_model(config, 1, at::kFloat);
  // The text is here already.
  const auto planned = calibrate::plan_profile(config, sizeof(float), 0, calibrate::kPanelTokens,
                                               /*offloaded=*/false, ops::path_of(weights.options().device()))
                           .total_bytes();
  EXPECT_EQ(calibrate::plan_profile(config, sizeof(float), 1000, calibrate::kPanelTokens, /*offloaded=*/false,
                                    ops::path_of(weights.options().device()))
                .total_bytes(),
            planned + 8000);
  const auto before = ops::live_tensor_bytes() - 4 * architecture::num_parameters(config);
  for (const std::size_t sequences : {40U, 160U}) {  // panels of 32
    const Place made;
    record::Observer observer;
    const auto domains = text(sequences);
    ops::reset_peak_tensor_bytes();
    profile(weights, domains, made.place(), observer);
    const auto needed = ops::peak_tensor_bytes() - before;
    EXPECT_LT(needed, planned) << sequences;
    EXPECT_GT(needed, planned * 8 / 10) << sequences;
  }
  const Place made;
  record::Observer observer;
  auto place = made.place();
  place.memory = planned - 1;
  EXPECT_THROW(profile(weights, text(40), place, observer), base::MemoryError);
  EXPECT_FALSE(std::filesystem::exists(place.directory)) << "refused before the start";
}

}  // namespace
}  // namespace retort
