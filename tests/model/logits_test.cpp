// Logits of whole models against transformers, and models saved for transformers to load.
#include <gtest/gtest.h>

#include <fstream>

#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/io/model_directory.h"
#include "retort/model/block.h"
#include "retort/model/dtype.h"
#include "retort/model/head.h"
#include "retort/model/weights.h"
#include "support/message_of.h"
#include "support/oracle_case.h"
#include "support/outside_data.h"
#include "support/reference_model.h"
#include "support/temporary_directory.h"
#include "support/tolerance.h"

namespace retort {
namespace {

at::Tensor logits_of(const model::Weights& weights, std::span<const std::int64_t> ids,
                     const std::vector<std::int64_t>& starts) {
  const auto& config = weights.config;
  const auto layout = model::make_token_layout(config, starts, at::kCPU);
  auto hidden_ND = model::embed(model::embedding_matrix(weights.layout, weights.units[0]),
                                model::index_tensor(ids, at::kCPU), config.embedding_factor);
  for (std::size_t block = 0; block < config.blocks.size(); ++block)
    hidden_ND = model::block_forward(
        model::block_weights(config.blocks[block], weights.layout.units[block + 1], weights.units[block + 1]),
        config.rms_norm_eps, hidden_ND, layout);
  const auto head = static_cast<std::size_t>(weights.layout.head_unit());
  return model::logits(model::head_weights(weights.layout, weights.units[head]), config.rms_norm_eps,
                       model::logit_rule(config), hidden_ND);
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

TEST(Logits, EqualThoseOfTransformersWithin1e4ForEveryModel) {
  const auto cases = test::oracle_cases();
  EXPECT_GE(cases.size(), 8U);
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto weights = model::load_weights(c.directory, at::kFloat, at::kCPU);
    const auto logits_NV = logits_of(weights, c.ids, c.starts);
    ASSERT_EQ(logits_NV.sizes(), c.logits_NV.sizes());
    const double difference = largest_difference(logits_NV, c.logits_NV);
    std::printf("  %-20s largest logit %7.3f, largest difference %.2e\n", c.name.c_str(),
                c.logits_NV.abs().max().item<double>(), difference);
    EXPECT_GT(c.logits_NV.abs().max().item<double>(), 1) << "too small to show a difference";
    EXPECT_LE(difference, test::kLogits);
  }
}

// Of a model that also sees, under the names of transformers 4 and 5.
TEST(Logits, OfTheLanguagePartOfAModelEqualThoseOfTransformers) {
  std::size_t cases = 0;
  const test::TemporaryDirectory directory;
  for (const auto& entry : std::filesystem::directory_iterator(test::oracles("model") / "wrapped")) {
    SCOPED_TRACE(entry.path().filename().string());
    const std::vector<std::int64_t> ids = test::json_file(entry.path() / "case.json").at("ids");
    std::vector<std::string> notes;
    (void)architecture::read_config(entry.path() / "model", &notes);
    ASSERT_FALSE(notes.empty());
    EXPECT_SAYS(notes.front(), "the language part is read and written");
    const auto weights = model::load_weights(entry.path() / "model", at::kFloat, at::kCPU);
    const auto expected = test::tensor_of_file(entry.path() / "logits.safetensors", "logits");
    EXPECT_LE(largest_difference(logits_of(weights, ids, {0, std::ssize(ids)}), expected), test::kLogits);
    model::save_model(weights, directory / entry.path().filename().string(), {}, {});
    const auto again =
        model::load_weights(directory / entry.path().filename().string(), at::kFloat, at::kCPU);
    EXPECT_EQ(again.config, weights.config) << "a model of text alone";
    ++cases;
  }
  EXPECT_EQ(cases, 6U);
}

TEST(Logits, OfGgufFilesEqualThoseOfTransformersWithin1e4) {
  std::size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::oracles("model") / "gguf")) {
    SCOPED_TRACE(entry.path().filename().string());
    const std::vector<std::int64_t> ids = test::json_file(entry.path() / "case.json").at("ids");
    const auto weights = model::load_weights(entry.path() / "model.gguf", at::kFloat, at::kCPU);
    const auto expected = test::tensor_of_file(entry.path() / "logits.safetensors", "logits");
    EXPECT_LE(largest_difference(logits_of(weights, ids, {0, std::ssize(ids)}), expected), test::kLogits);
    ++cases;
  }
  EXPECT_EQ(cases, 7U);
}

// A model that people use, with blocks of two types: at some places of the text and the vocabulary.
TEST(Logits, OfAQuantisedGgufFileEqualThoseOfTransformersWithin1e4) {
  RETORT_GGUF_OR_SKIP(file);
  const auto golden = test::json_file(test::source() / "tests" / "model" / "golden_smollm2_gguf.json");
  const std::vector<std::int64_t> ids = golden.at("ids");
  const auto weights = model::load_weights(file, at::kFloat, at::kCPU);
  const auto logits_NV = logits_of(weights, ids, {0, std::ssize(ids)});
  const std::vector<std::int64_t> best = golden.at("argmax");
  EXPECT_TRUE(at::equal(logits_NV.argmax(1), model::index_tensor(best, at::kCPU)));
  double largest = 0;
  for (std::size_t row = 0; row < golden.at("positions").size(); ++row)
    for (std::size_t col = 0; col < golden.at("places").size(); ++col) {
      const auto value =
          logits_NV[golden["positions"][row].get<std::int64_t>()][golden["places"][col].get<std::int64_t>()]
              .item<double>();
      largest = std::max(largest, std::abs(value - golden["logits"][row][col].get<double>()));
    }
  std::printf("  largest difference %.2e\n", largest);
  EXPECT_LE(largest, test::kLogits);
}

TEST(Logits, InDoubleEqualThePlainFormulas) {
  for (const bool tied : {false, true}) {
    const auto weights = test::lively_weights(test::config_of({.tied = tied}), 12);
    const std::vector<std::int64_t> ids = {5, 6, 7, 1, 9, 60, 0}, starts = {0, 3, 7};
    test::expect_close(logits_of(weights, ids, starts),
                       test::reference_model(weights, model::index_tensor(ids, at::kCPU), starts).logits_NV,
                       1e-12);
  }
}

void expect_same_weights(const model::Weights& a, const model::Weights& b) {
  ASSERT_EQ(a.units.size(), b.units.size());
  for (std::size_t unit = 0; unit < a.units.size(); ++unit)
    test::expect_identical(a.units[unit], b.units[unit]);
}

// Writes what tests/eval/transformers_loads_test.py checks with transformers.
TEST(SavedModel, ComesBackTheSameAndIsWrittenForTransformersToLoad) {
  const auto saved = test::directory_of("RETORT_SAVED_MODELS");
  ASSERT_FALSE(saved.empty()) << "RETORT_SAVED_MODELS is not set; run the tests through ctest.";
  std::filesystem::remove_all(saved);
  std::filesystem::create_directories(saved);
  for (const auto& c : test::oracle_cases()) {
    SCOPED_TRACE(c.name);
    const auto weights = model::load_weights(c.directory, at::kFloat, at::kCPU);
    model::save_model(weights, saved / c.name, c.directory, {{"tool", "test"}});
    const auto again = model::load_weights(saved / c.name, at::kFloat, at::kCPU);
    EXPECT_EQ(again.config, weights.config);
    EXPECT_EQ(again.file_dtype, weights.file_dtype);
    expect_same_weights(again, weights);
  }
}

TEST(SavedModel, KeepsLineageAndRefusesValuesThatAreNotFinite) {
  const test::TemporaryDirectory directory;
  auto weights = test::lively_weights(test::config_of({}), 5, at::kFloat);
  weights.file_dtype = io::Dtype::f32;
  weights.lineage.teacher_blocks = 7;
  for (std::size_t i = 0; const auto number : {0, 4, 6}) weights.lineage.kept.blocks[i++].number = number;
  weights.lineage.pattern = "2:4";
  weights.lineage.sparse_layers = {"model.layers.1.mlp.up_proj.weight"};
  model::save_model(weights, directory / "saved", {}, {});
  const auto again = model::load_weights(directory / "saved", at::kFloat, at::kCPU);
  EXPECT_EQ(again.lineage.kept, weights.lineage.kept);
  EXPECT_EQ(again.lineage.teacher_blocks, 7);
  EXPECT_EQ(again.lineage.sparse_layers, weights.lineage.sparse_layers);
  expect_same_weights(again, weights);

  weights.tensor("model.layers.1.mlp.up_proj.weight")[3][4] = std::numeric_limits<float>::quiet_NaN();
  const auto message =
      test::message_of<base::ValidationError>([&] { model::save_model(weights, directory / "bad", {}, {}); });
  EXPECT_SAYS(message, "model.layers.1.mlp.up_proj.weight");
  EXPECT_FALSE(std::filesystem::exists(directory / "bad"));
}

TEST(LoadWeights, RefusesValuesThatAreNotFiniteByName) {
  const test::TemporaryDirectory directory;
  auto weights = test::lively_weights(test::config_of({}), 5, at::kFloat);
  weights.file_dtype = io::Dtype::f32;
  model::save_model(weights, directory / "saved", {}, {});
  // The last four bytes of the file belong to some tensor: make them infinity.
  std::fstream file(directory / "saved" / "model.safetensors",
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-4, std::ios::end);
  file.write("\0\0\x80\x7f", 4);
  file.close();
  const auto message = test::message_of<base::ModelError>(
      [&] { model::load_weights(directory / "saved", at::kFloat, at::kCPU); });
  EXPECT_SAYS(message, "not finite");
  EXPECT_SAYS(message, ".weight");
}

// A directory whose norms have another type than its matrices, which begin with the embedding.
void save_mixed(const model::Weights& weights, const std::filesystem::path& directory, io::Dtype matrices,
                io::Dtype norms, const std::string& declared) {
  std::vector<at::Tensor> kept;
  std::vector<io::TensorToWrite> tensors;
  for (std::size_t unit = 0; unit < weights.units.size(); ++unit)
    for (const auto& tensor : weights.layout.units[unit].tensors) {
      const auto dtype = tensor.is_matrix() ? matrices : norms;
      kept.push_back(weights.tensor(unit, tensor).to(model::scalar_type(dtype)).contiguous());
      tensors.push_back(io::tensor_of_bytes(
          tensor.name, dtype, tensor.shape,
          {static_cast<const std::byte*>(kept.back().const_data_ptr()), kept.back().nbytes()}));
    }
  std::filesystem::create_directories(directory);
  io::write_weights(directory, tensors);
  auto json = base::Json::parse(architecture::hf_config_json(weights.config));
  json.erase("torch_dtype");
  json["dtype"] = declared;
  base::write_file_atomically(directory / "config.json", json.dump());
}

TEST(LoadWeights, OfSeveralTypesAreSavedInTheOneThatTheConfigurationSays) {
  const test::TemporaryDirectory directory;
  auto weights = test::lively_weights(test::config_of({}), 5, at::kFloat);
  save_mixed(weights, directory / "mixed", io::Dtype::bf16, io::Dtype::f32, "float32");
  const auto mixed = model::load_weights(directory / "mixed", at::kFloat, at::kCPU);
  EXPECT_EQ(mixed.file_dtype, io::Dtype::f32);
  test::expect_identical(mixed.tensor("model.norm.weight"), weights.tensor("model.norm.weight"));
  model::save_model(mixed, directory / "saved", {}, {});
  const auto again = model::load_weights(directory / "saved", at::kFloat, at::kCPU);
  expect_same_weights(again, mixed);
}

TEST(LoadWeights, RefusesValuesThatTheTypeToSaveInCannotHold) {
  const test::TemporaryDirectory directory;
  auto weights = test::lively_weights(test::config_of({}), 5, at::kFloat);
  weights.tensor("model.norm.weight")[3] = 1e6;
  save_mixed(weights, directory / "mixed", io::Dtype::f16, io::Dtype::f32, "float16");
  const auto message = test::message_of<base::ModelError>(
      [&] { model::load_weights(directory / "mixed", at::kFloat, at::kCPU); });
  EXPECT_SAYS(message, "model.norm.weight");
  EXPECT_SAYS(message, "beyond float16");
}

TEST(RandomWeights, DependOnSeedAndNameOnlyAndHaveTheConfiguredSpread) {
  const auto config = test::config_of({.hidden = 64, .width = 128});
  const auto a = model::random_weights(config, 1, at::kFloat, at::kCPU),
             b = model::random_weights(config, 2, at::kFloat, at::kCPU);
  expect_same_weights(a, model::random_weights(config, 1, at::kFloat, at::kCPU));
  const std::string name = "model.layers.1.mlp.up_proj.weight";
  EXPECT_FALSE(at::equal(a.tensor(name), b.tensor(name)));
  EXPECT_FALSE(at::equal(a.tensor(name), a.tensor("model.layers.2.mlp.up_proj.weight")));
  EXPECT_NEAR(a.tensor(name).std().item<double>(), config.initializer_range, 0.05 * config.initializer_range);
  test::expect_identical(a.tensor("model.norm.weight"), at::ones({64}));
}

TEST(Embedding, BackwardAddsRowsOfRepeatedTokens) {
  const auto ids = at::tensor({3, 1, 3, 0}, at::kLong);
  const auto grad = at::randn({4, 5}, at::kDouble);
  auto actual = at::ones({6, 5}, at::kDouble);
  model::embed_backward(grad, ids, 1, actual);
  const auto matrix = at::randn({6, 5}, at::kDouble).set_requires_grad(true);
  matrix.index_select(0, ids).backward(grad);
  test::expect_close(actual, matrix.grad() + 1, 1e-14);
}

// The factor is rounded to the type of the rows, there and back.
TEST(Embedding, BackwardHasTheFactorOfForward) {
  const double factor = std::sqrt(1152.0);
  const auto ids = at::tensor({2}, at::kLong);
  const auto rows = model::embed(at::ones({3, 4}, at::kBFloat16), ids, factor);
  auto gradient = at::zeros({3, 4});
  model::embed_backward(at::ones({1, 4}, at::kBFloat16), ids, factor, gradient);
  EXPECT_NE(rows[0][0].item<double>(), factor);
  test::expect_identical(gradient.narrow(0, 2, 1), rows.to(at::kFloat));
}

}  // namespace
}  // namespace retort
