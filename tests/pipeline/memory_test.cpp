// What a run may use is decided once, and what is planned by it holds.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "pipeline/project.h"
#include "retort/architecture/counts.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/eval/memory_plan.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/pipeline/placed_weights.h"
#include "retort/pipeline/stages.h"
#include "retort/record/run_files.h"
#include "support/message_of.h"
#include "support/models_for_tests.h"

namespace retort::pipeline {
namespace {

using test::Listener;
using test::Project;

constexpr std::int64_t kPlenty = std::int64_t{1} << 40;

std::optional<shard::MemoryPlan> plan_of(const recipe::Recipe& recipe, const recipe::Stage& stage,
                                         const KnownModels& models) {
  Listener listener;
  return functions_of(stage.kind)
      .resolve({recipe, models, listener, at::kFloat, {at::kCPU, {}, kPlenty, kPlenty}}, stage)
      .memory;
}

std::optional<shard::MemoryPlan> plan_of_first_stage(const recipe::Recipe& recipe) {
  return plan_of(recipe, recipe.stages[0], KnownModels(recipe));
}

const std::string kPruned =
    "{name: pruned, kind: prune, units: uniform, from: MODEL, data: [text], target: {parameters: 90%}, "
    "calibration_tokens: 500, sequence_length: 96, width_multiple: 16}";
std::string distilled(const std::string& from, const std::string& teacher) {
  return "{name: student, kind: distill, from: " + from + ", teacher: " + teacher +
         ", data: [text], tokens: 1k, packing: {sequence_length: 64}, batch: {sequences: 2}}";
}
std::string sparse_of(const std::string& from) {
  return "{name: sparse, kind: sparsify, from: " + from +
         ", data: [text], calibration_tokens: 3000, sequence_length: 64}";
}

class RunMemory : public testing::Test {
 protected:
  static void SetUpTestSuite() { ops::install_tensor_allocator(); }

  // A machine on which `bytes` are free now: tensors that are made later are missing from what is available.
  AvailableMemory machine_with(std::int64_t bytes) {
    return [this, all = bytes + ops::live_tensor_bytes()] {
      ++asked_;
      return all - ops::live_tensor_bytes();
    };
  }

  // What a dry run prints.
  std::string plans_of(const recipe::Recipe& recipe, AvailableMemory available = {}) {
    auto request = test::run_in(project_.run_directory());
    request.dry_run = true;
    request.available_memory = std::move(available);
    return run(recipe, request, listener_).summary;
  }

  Project project_;
  Listener listener_;
  int asked_ = 0;
};

class AcceptedByPreflight : public RunMemory, public testing::WithParamInterface<std::string> {};

// Each model was loaded when the stage asked what is available, and then counted again by its plan.
TEST_P(AcceptedByPreflight, IsAcceptedByTheStage) {
  const auto recipe = project_.recipe_of({GetParam()}, "dtype: fp32\n");
  const auto plan = plan_of_first_stage(recipe);
  ASSERT_TRUE(plan.has_value());
  auto request = test::run_in(project_.run_directory());
  request.available_memory = machine_with(plan->total_bytes());
  EXPECT_TRUE(run(recipe, request, listener_).finished);
  EXPECT_EQ(asked_, 1);
}

INSTANTIATE_TEST_SUITE_P(
    OfEachKind, AcceptedByPreflight,
    testing::Values(
        test::kFinetune,
        "{name: seen, kind: profile, from: MODEL, data: [text], calibration_tokens: 1000, "
        "sequence_length: 96}",
        "{name: pruned, kind: prune, units: uniform, from: MODEL, data: [text], target: {parameters: 95%}, "
        "calibration_tokens: 500, sequence_length: 96, width_multiple: 16}",
        sparse_of("MODEL"), "{name: measured, kind: evaluate, models: [MODEL], data: [text], context: 64}"),
    [](const auto& of) { return "Stage" + std::to_string(of.index); });

// Training keeps the masks of a sparse model, a byte for each parameter.
TEST_F(RunMemory, OfASparseModelCountsItsMasks) {
  auto recipe = project_.recipe_of({sparse_of("MODEL")}, "dtype: fp32\n");
  ASSERT_TRUE(run(recipe, test::run_in(project_.run_directory()), listener_).finished);
  auto finetune = test::kFinetune;
  finetune.replace(finetune.find("MODEL"), 5, (project_.run_directory() / "models/sparse").string());
  recipe = project_.recipe_of({finetune}, "dtype: fp32\n");
  const auto plan = plan_of_first_stage(recipe);
  ASSERT_TRUE(plan.has_value());
  auto request = test::run_in(project_.path("tuned"));
  request.available_memory = machine_with(plan->total_bytes());
  EXPECT_TRUE(run(recipe, request, listener_).finished);
}

TEST_F(RunMemory, OfAPruneStageIsPlannedWithItsText) {
  const auto recipe =
      project_.recipe_of({"{name: pruned, kind: prune, from: MODEL, data: [text], target: {parameters: 95%}, "
                          "calibration_tokens: 960, sequence_length: 96, search: {budget_tokens: 9k}}"});
  const auto plans = plans_of(recipe);
  EXPECT_SAYS(plans, "stage pruned (prune): memory plan");
  EXPECT_SAYS(plans, "stage pruned: reads 960 tokens of calibration text");
  EXPECT_SAYS(plans, "the search passes up to 9.0 k tokens");
}

TEST_F(RunMemory, OfAnEvaluateStageIsPlannedAndPrinted) {
  const auto recipe = project_.recipe_of(
      {"{name: measured, kind: evaluate, models: [MODEL], data: [text], context: 64, prompt: word}"});
  const auto plans = plans_of(recipe);
  EXPECT_SAYS(plans, "stage measured (evaluate): memory plan");
  EXPECT_SAYS(plans, "work of a block, or logits of a chunk");

  run(recipe, test::run_in(project_.run_directory()), listener_);
  const auto result = record::RunFiles(project_.run_directory()).result("measured");
  EXPECT_GE(result.at("memory_planned_bytes"), result.at("peak_tensor_bytes"));
  // Libraries and text take tens of megabytes beside tensors.
  EXPECT_GT(result.at("process_planned_bytes").get<std::int64_t>(),
            result.at("memory_planned_bytes").get<std::int64_t>() + (std::int64_t{10} << 20));
  EXPECT_LE(result.at("process_planned_bytes").get<std::int64_t>() -
                result.at("memory_planned_bytes").get<std::int64_t>(),
            ops::process_peak_bytes());
}

TEST_F(RunMemory, OfAnEvaluateStageThatDoesNotFitIsRefused) {
  const auto recipe = project_.recipe_of(
      {"{name: measured, kind: evaluate, models: [MODEL], data: [text], context: 64}"}, "memory_bytes: 1M\n");
  const auto message = test::message_of<base::MemoryError>(
      [&] { run(recipe, test::run_in(project_.run_directory()), listener_); });
  EXPECT_SAYS(message, "lower the context");
  EXPECT_FALSE(std::filesystem::exists(project_.run_directory()));
}

// A model that an earlier stage makes is not there at the beginning, and its size is known.
TEST_F(RunMemory, OfAModelToComeIsPlannedBeforeTheFirstStage) {
  const auto recipe = project_.recipe_of(
      {test::kFinetune, "{name: measured, kind: evaluate, models: [tuned], data: [text], context: 64}"},
      "memory_bytes: 6M\ndtype: fp32\n");
  const auto message = test::message_of<base::MemoryError>(
      [&] { run(recipe, test::run_in(project_.run_directory()), listener_); });
  EXPECT_SAYS(message, "lower the context");
  EXPECT_FALSE(std::filesystem::exists(project_.run_directory()));
}

// Training changes no shape, and a sparse model has masks.
TEST_F(RunMemory, OfTrainingAModelToComeIsWhatItsStagePlans) {
  const auto recipe = project_.recipe_of({test::kFinetune, sparse_of("tuned"), distilled("sparse", "tuned")},
                                         "dtype: fp32\n");
  const auto plan = plan_of(recipe, recipe.stage("student"), KnownModels(recipe));
  ASSERT_TRUE(plan.has_value());
  ASSERT_TRUE(run(recipe, test::run_in(project_.run_directory()), listener_).finished);
  const auto result = record::RunFiles(project_.run_directory()).result("student");
  EXPECT_EQ(result.at("memory_planned_bytes"), plan->total_bytes());
}

TEST_F(RunMemory, OfAModelToBePrunedIsPlannedAsItIsBefore) {
  const auto recipe =
      project_.recipe_of({kPruned, sparse_of("pruned"), distilled("sparse", "MODEL")}, "dtype: fp32\n");
  const auto& student = recipe.stage("student");
  const KnownModels models(recipe);
  EXPECT_FALSE(plan_of(recipe, student, models));
  const auto unpruned = plan_of(recipe, student, models.unpruned());
  ASSERT_TRUE(unpruned.has_value());

  const auto plans = plans_of(recipe);
  EXPECT_SAYS(plans, "stage sparse (sparsify): memory plan, as if its models were not pruned\n");
  EXPECT_SAYS(plans, "stage student (distill): memory plan, as if its models were not pruned\n");
  ASSERT_TRUE(run(recipe, test::run_in(project_.run_directory()), listener_).finished);
  const auto result = record::RunFiles(project_.run_directory()).result("student");
  EXPECT_LT(result.at("memory_planned_bytes"), unpruned->total_bytes());
  EXPECT_GT(result.at("memory_planned_bytes"), unpruned->total_bytes() / 2);
}

TEST_F(RunMemory, OfSeveralModelsIsPlannedWithThoseToBePruned) {
  const auto recipe = project_.recipe_of(
      {kPruned, "{name: measured, kind: evaluate, models: [MODEL, pruned], data: [text], context: 64}"});
  EXPECT_SAYS(plans_of(recipe), "stage measured (evaluate): memory plan, as if its models were not pruned\n");
}

// Not pruned the student has blocks that its teacher, which is there, has lost.
TEST_F(RunMemory, OfBlocksThatOnlyPrunedModelsHaveIsPlannedLater) {
  const auto shallow = [](const std::string& name, const std::string& parameters) {
    return "{name: " + name +
           ", kind: prune, units: uniform, heads: false, channels: false, from: MODEL, data: [text], " +
           "target: {parameters: " + parameters + "}, calibration_tokens: 500, sequence_length: 96}";
  };
  auto student = distilled("small", "mid");
  student.insert(student.size() - 1, ", loss: [{kind: squarehead, layer_map: surviving}]");
  const auto recipe =
      project_.recipe_of({shallow("mid", "94%"), shallow("small", "94%"), student}, "dtype: fp32\n");
  auto request = test::run_in(project_.run_directory());
  request.only_stage = "mid";
  ASSERT_TRUE(run(recipe, request, listener_).finished);
  EXPECT_SAYS(plans_of(recipe), "stage student (distill): memory is planned when its models are there\n");
}

// Whether it fits when it is pruned nobody knows yet, so nothing is refused.
TEST_F(RunMemory, OfAModelThatWouldNotFitBeforeItIsPrunedIsToldByADryRun) {
  auto wide = distilled("pruned", "MODEL");
  wide.replace(wide.find("sequences: 2"), 12, "sequences: 2048");
  const auto recipe = project_.recipe_of({kPruned, wide}, "dtype: fp32\n");
  const auto unpruned = plan_of(recipe, recipe.stage("student"), KnownModels(recipe).unpruned());
  const auto first = plan_of_first_stage(recipe);
  ASSERT_TRUE(unpruned && first);
  ASSERT_LT(first->total_bytes(), unpruned->total_bytes() / 2);
  EXPECT_SAYS(plans_of(recipe, machine_with(first->total_bytes())),
              "stage student (distill): memory is planned when its models are there; not pruned they would "
              "not fit: memory: the plan needs ");
}

class Commands : public RunMemory {
 protected:
  EvalRequest eval(const std::string& model) const {
    EvalRequest request;
    request.model.model = project_.path(model);
    request.texts = {project_.path("text.txt")};
    return request;
  }
  GenerateRequest generation(std::int64_t max_new_tokens) const {
    GenerateRequest request;
    request.model.model = project_.path("model");
    request.prompt = "word";
    request.text.max_new_tokens = max_new_tokens;
    return request;
  }
};

TEST_F(Commands, EvalTakesAContextThatAMachineHolds) {
  project_.save_model("patient", std::int64_t{1} << 20);
  EXPECT_EQ(evaluate(eval("patient"), listener_).at("context"), 4096);
  EXPECT_EQ(evaluate(eval("model"), listener_).at("context"), 128);
  auto with_teacher = eval("patient");
  with_teacher.teacher = project_.path("model");
  EXPECT_EQ(evaluate(with_teacher, listener_).at("context"), 128);
}

TEST_F(Commands, EvalThatDoesNotFitIsRefusedBeforeAnythingIsLoaded) {
  project_.save_model("patient", std::int64_t{1} << 20);
  auto request = eval("patient");
  request.context = 1'000'000;
  request.model.available_memory = [] { return std::int64_t{1} << 28; };
  ops::reset_peak_tensor_bytes();
  const auto before = ops::peak_tensor_bytes();
  const auto message = test::message_of<base::MemoryError>([&] { evaluate(request, listener_); });
  EXPECT_SAYS(message, "memory: the plan needs ");
  EXPECT_SAYS(message, "lower the context");
  EXPECT_EQ(ops::peak_tensor_bytes(), before);
}

TEST_F(Commands, GenerationThatDoesNotFitIsRefusedBeforeAnythingIsLoaded) {
  project_.save_model("model", std::int64_t{1} << 20);
  auto request = generation(1'000'000);
  request.model.available_memory = [] { return std::int64_t{1} << 27; };
  const auto message = test::message_of<base::MemoryError>([&] { generate(request, listener_); });
  EXPECT_SAYS(message, "keys and values");
  EXPECT_SAYS(message, "ask for fewer new tokens");
  request.text.max_new_tokens = 4;
  EXPECT_EQ(generate(request, listener_).at("prompt"), "word");
}

TEST_F(Commands, TextsThatDoNotFitTogetherAreRefusedWithWhatToDo) {
  project_.save_model("model", std::int64_t{1} << 14);
  std::string lines;
  for (int i = 0; i < 64; ++i) lines += "{\"prompt\": \"word\"}\n";
  base::write_file_atomically(project_.path("prompts.jsonl"), lines);
  GenerateFileRequest request{.model = {.model = project_.path("model")},
                              .text = {.max_new_tokens = 4096, .texts_at_once = 64},
                              .prompts = project_.path("prompts.jsonl"),
                              .out = project_.path("out.jsonl")};
  request.model.available_memory = [] { return std::int64_t{1} << 24; };
  const auto message = test::message_of<base::MemoryError>([&] { generate_file(request, listener_); });
  EXPECT_SAYS(message, "keys and values");
  EXPECT_SAYS(message, " texts at once (--batch)");
}

TEST_F(Commands, TimedModelsThatDoNotFitAreRefusedWithTheBatchThatFits) {
  project_.save_model("model", std::int64_t{1} << 14);
  project_.save_model("other", std::int64_t{1} << 14);
  BenchGenerationRequest request;
  request.models = {project_.path("model"), project_.path("other")};
  request.prompt_tokens = {512};
  request.batches = {1, 256};
  request.texts = 4;
  request.new_tokens = 2;
  const auto refusal = [&](std::int64_t bytes) {
    request.available_memory = [=] { return bytes; };
    return test::message_of<base::MemoryError>([&] { bench_generation(request, listener_); });
  };
  EXPECT_EQ(refusal(1).find("at once"), std::string::npos) << "not even one";
  request.texts = 256;
  const auto message = refusal(std::int64_t{1} << 25);
  const std::string before = "make at most ", after = " texts at once (--batch), time fewer models";
  EXPECT_SAYS(message, before);
  EXPECT_SAYS(message, after);
  const auto fitting = std::stoll(message.substr(message.find(before) + before.size()));
  EXPECT_GT(fitting, 1);
  request.batches = {1, fitting + 1};
  EXPECT_SAYS(refusal(std::int64_t{1} << 25), base::join(before, fitting, after));
}

// Weights of 4 bytes for each of the parameters, and 50 bytes for the rest.
class PlacedWeightsOf : public testing::Test {
 protected:
  PlacedWeights placed(at::Device device, std::int64_t available_bytes, std::int64_t machine_bytes,
                       std::int64_t copies = 1) const {
    return placed_weights(
        {.device = device,
         .ranks = {.all = copies, .of_machine = copies, .copies_of_machine = copies},
         .available_bytes = available_bytes,
         .machine_bytes = machine_bytes},
        {.model = config_, .made_parameters = 1, .item = "weights", .plan = [&](bool offloaded) {
           return shard::MemoryPlan{{{"weights", offloaded ? 10 : weights_}, {"rest", 50}}, "ask for less"};
         }});
  }

  const architecture::Config config_ = test::tiny_config();
  const std::int64_t weights_ = 4 * architecture::num_parameters(config_);
  const at::Device accelerator_ = at::kCUDA;  // nothing is made there
};

TEST_F(PlacedWeightsOf, AnAcceleratorLieThereIfTheyCan) {
  EXPECT_FALSE(placed(accelerator_, weights_ + 50, 0).offloaded);
  const auto found = placed(accelerator_, weights_ + 49, weights_ + 4);
  EXPECT_TRUE(found.offloaded);
  EXPECT_EQ(found.memory.total_bytes(), 60);
}

TEST_F(PlacedWeightsOf, AProcessorHaveOnePlace) {
  EXPECT_FALSE(placed(at::kCPU, 0, 0).offloaded);
}

TEST_F(PlacedWeightsOf, AMachineWithoutRoomAreRefused) {
  EXPECT_SAYS(test::message_of<base::MemoryError>([&] { placed(accelerator_, 60, weights_ + 3); }),
              "weights that the accelerator has no room for");
  EXPECT_TRUE(placed(accelerator_, 60, 3 * weights_ + 4, 3).offloaded);
  EXPECT_SAYS(test::message_of<base::MemoryError>([&] { placed(accelerator_, 60, 3 * weights_ + 3, 3); }),
              "fewer ranks of it");
}

// Whoever compares the plan with what there is says what is missing.
TEST_F(PlacedWeightsOf, AnAcceleratorThatIsTooSmallInAnyCaseAreNotAskedOfTheMachine) {
  EXPECT_EQ(placed(accelerator_, 59, 0).memory.total_bytes(), 60);
}

}  // namespace
}  // namespace retort::pipeline
