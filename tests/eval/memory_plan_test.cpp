// The plans of scoring and generation against what libtorch's allocator really gave out.
#include "retort/eval/memory_plan.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <utility>

#include "retort/eval/generate_texts.h"
#include "retort/model/weights.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/ops/work_memory.h"
#include "support/tolerance.h"

namespace retort::eval {
namespace {

architecture::Config config_of(std::int64_t hidden, std::int64_t width, std::int64_t vocab) {
  architecture::Config config;
  config.vocab_size = vocab;
  config.hidden_size = hidden;
  config.max_position_embeddings = 1 << 20;
  config.initializer_range = 0.1;
  config.blocks.assign(2, {architecture::Attention{4, 2, hidden / 4}, architecture::DenseMlp{width}});
  return config;
}

std::unique_ptr<shard::Parameters> loaded(const architecture::Config& config, at::ScalarType dtype) {
  return shard::resident_parameters(model::random_weights(config, 1, dtype, at::kCPU), shard::Use::frozen,
                                    dtype);
}

// Windows of made-up tokens.
class MadeUpWindows final : public Windows {
 public:
  MadeUpWindows(std::int64_t context, int count) : context_(context), left_(count) {
    documents_.emplace_back();
  }
  bool next(Window& window) override {
    if (left_ == 0) return false;
    --left_;
    window = {};
    window.ids.assign(static_cast<std::size_t>(context_), 3);
    window.targets.assign(static_cast<std::size_t>(context_), 5);
    window.starts = {0};
    window.target_documents.assign(static_cast<std::size_t>(context_), 0);
    return true;
  }
  std::int64_t skipped_lines() const override { return 0; }
  const std::vector<data::TextDocument>& documents() const override { return documents_; }

 private:
  std::int64_t context_;
  int left_;
  std::vector<data::TextDocument> documents_;
};

enum class Teacher { none, own, other };

struct Case {
  const char* what;
  std::int64_t hidden, width, vocab, context;
  Teacher teacher;
};

class Plans : public testing::Test {
 protected:
  static void SetUpTestSuite() { ops::install_tensor_allocator(); }

  static void expect_near(const shard::MemoryPlan& plan, std::int64_t peak, const std::string& what) {
    std::printf("  %-40s planned %10lld, peak %10lld bytes\n", what.c_str(),
                static_cast<long long>(plan.total_bytes()), static_cast<long long>(peak));
    EXPECT_GE(plan.total_bytes(), peak) << what << "\n" << shard::describe(plan);
    EXPECT_LE(plan.total_bytes(), peak * 5 / 4) << what << "\n" << shard::describe(plan);
  }
};

// A second product of the head of a model that is its own teacher would be logits that no plan has.
TEST_F(Plans, OfScoringHoldAndAreNear) {
  const Case cases[] = {{"a wide MLP", 128, 1024, 512, 512, Teacher::none},
                        {"a large vocabulary", 64, 64, 32000, 256, Teacher::none},
                        {"a large vocabulary, its own teacher", 64, 64, 32000, 256, Teacher::own},
                        {"a large vocabulary, teacher", 64, 64, 32000, 256, Teacher::other},
                        {"a long context", 128, 512, 512, 6144, Teacher::none},
                        {"a teacher", 128, 512, 2048, 1024, Teacher::other}};
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const auto& test : cases) {
      const auto config = config_of(test.hidden, test.width, test.vocab);
      const auto teacher = config_of(2 * test.hidden, test.width, test.vocab);
      const auto before = ops::live_tensor_bytes();
      const auto model = loaded(config, dtype),
                 other = test.teacher == Teacher::other ? loaded(teacher, dtype) : nullptr;
      ops::reset_peak_tensor_bytes();
      const Subject subject("model", *model);
      std::optional<Subject> teacher_subject;
      if (other) teacher_subject.emplace("teacher", *other);
      MadeUpWindows windows(test.context, static_cast<int>(BatchSettings().tokens / test.context + 1));
      const auto* own = test.teacher == Teacher::own ? &subject : nullptr;
      evaluate_source(subject, teacher_subject ? &*teacher_subject : own, "text", &windows);
      expect_near(
          plan_scoring(config,
                       other ? &teacher
                       : own ? &config
                             : nullptr,
                       static_cast<std::int64_t>(at::elementSize(dtype)), test.context, ops::Path::cpu),
          ops::peak_tensor_bytes() - before, test.what);
    }
}

// Compositions of libtorch's operations hold what the loops of a CPU do not.
TEST_F(Plans, OfADeviceHaveWhatItsOperationsHold) {
  const auto config = config_of(64, 64, 32000), teacher = config_of(128, 64, 32000);
  const auto scoring = [&](const architecture::Config* other, ops::Path path) {
    return plan_scoring(config, other, 4, 256, path).total_bytes();
  };
  const auto matrix = std::min<std::int64_t>(BatchSettings().head_rows, BatchSettings().tokens) * 32000 * 4;
  EXPECT_EQ(scoring(nullptr, ops::Path::device) - scoring(nullptr, ops::Path::cpu), matrix);
  EXPECT_EQ(scoring(&teacher, ops::Path::device) - scoring(&teacher, ops::Path::cpu), 5 * matrix);
}

TEST_F(Plans, OfGenerationHoldAndAreNear) {
  struct {
    const char* what;
    std::size_t texts, prompt;
    std::int64_t made;
  } const cases[] = {{"a long prompt", 1, 600, 2}, {"a long answer", 1, 4, 1500}, {"many texts", 12, 40, 30}};
  for (const auto& test : cases) {
    const auto config = config_of(128, 512, 2048);
    const auto before = ops::live_tensor_bytes();
    const auto model = loaded(config, at::kFloat);
    ops::reset_peak_tensor_bytes();
    std::vector<Prompt> prompts;
    for (std::int32_t text = 0; std::cmp_less(text, test.texts); ++text)
      prompts.push_back({std::vector<std::int32_t>(test.prompt, 3 + text), 0});
    const TextsOptions options{.max_new_tokens = test.made};
    generate_texts(*model, prompts, options, {});
    expect_near(plan_texts(config, 4, prompts, options, ops::Path::cpu, WeightsFrom::memory),
                ops::peak_tensor_bytes() - before, test.what);
  }
}

TEST_F(Plans, OfTextsThatDoNotFitSayHowManyWould) {
  const auto config = config_of(128, 512, 2048);
  const std::vector<Prompt> prompts(50, {std::vector<std::int32_t>(30, 3), 0});
  const auto bytes_of = [&](std::int64_t texts) {
    const TextsOptions options{.max_new_tokens = 500, .texts_at_once = texts};
    return plan_texts(config, 4, prompts, options, ops::Path::cpu, WeightsFrom::file).total_bytes();
  };
  const auto advice_for = [&](std::int64_t available_bytes, std::int64_t texts) {
    const TextsOptions options{.max_new_tokens = 500, .texts_at_once = texts};
    return plan_texts_within(available_bytes, config, 4, prompts, options, ops::Path::cpu, WeightsFrom::file)
        .advice;
  };
  EXPECT_EQ(advice_for(bytes_of(13), 64).find("make 13 texts at once (--batch)"), 0U);
  EXPECT_EQ(advice_for(bytes_of(13) - 1, 64).find("make 12 texts at once (--batch)"), 0U);
  EXPECT_EQ(advice_for(bytes_of(1) - 1, 64).find("shorten the prompts"), 0U);
  EXPECT_EQ(advice_for(bytes_of(13), 13).find("shorten the prompts"), 0U);  // they fit
}

// Of a large file no more is in memory than packed weights, the embedding and a unit.
TEST_F(Plans, OfWeightsFromAFileHoldAndAreNear) {
  auto config = config_of(256, 1024, 2048);
  config.blocks.resize(12, config.blocks.front());
  const auto all_bytes = architecture::make_layout(config).size() * 4;
  const auto before = ops::live_tensor_bytes();
  ops::reset_peak_tensor_bytes();
  const std::vector<Prompt> prompts = {{{3, 4, 5}, 0}};
  const TextsOptions options{.max_new_tokens = 4};
  TextWeights weights(model::random_source(config, 1), at::kFloat, at::kCPU);
  generate_texts(weights, prompts, options, {});
  const auto peak = ops::peak_tensor_bytes() - before;
  EXPECT_LT(peak, all_bytes * 3 / 2);
  expect_near(plan_texts(config, 4, prompts, options, ops::Path::cpu, WeightsFrom::file), peak, "a file");
}

TEST(MemoryPlan, OfLoadedModelsCountsAllWeightsAndTheWorkOfOne) {
  const auto config = config_of(32, 64, 300);
  const std::vector<Prompt> prompts(8, Prompt{.ids = std::vector<std::int32_t>(40, 1)});
  const auto plan_of = [&](std::int64_t texts) {
    return plan_texts(config, 4, prompts, {.max_new_tokens = 8, .texts_at_once = texts}, ops::Path::cpu,
                      WeightsFrom::file);
  };
  const auto one = plan_of(1), eight = plan_of(8);
  PlanOfLoadedModels alone, both;
  for (auto* models : {&alone, &both}) models->add("a", {one, eight});
  both.add("b", {one});
  EXPECT_EQ(alone.plan().total_bytes(), eight.total_bytes());
  const auto weights = one.bytes_of("model weights") + one.bytes_of("weights in the order of products");
  EXPECT_GT(weights, 0);
  EXPECT_EQ(both.plan().total_bytes(), eight.total_bytes() + weights);
  EXPECT_EQ(both.plan().bytes_of("b: model weights"), one.bytes_of("model weights"));
  EXPECT_EQ(most_that_fit(plan_of(5).total_bytes(), 8, plan_of), 5);
  EXPECT_EQ(most_that_fit(one.total_bytes() - 1, 8, plan_of), 0);
}

}  // namespace
}  // namespace retort::eval
