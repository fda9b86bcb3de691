// By what float32 is multiplied: a measurement decides, once, and a run stays with it.
#include "retort/pipeline/float32_products.h"

#include <gtest/gtest.h>

#include "pipeline/project.h"
#include "retort/base/error.h"
#include "retort/record/run_files.h"
#include "support/message_of.h"
#include "support/ranks.h"

namespace retort::pipeline {
namespace {

using ops::Float32Products;
using test::Listener;
using test::Project;

// A processor with AMX whose products were measured at these rates; counts how often.
struct Measured {
  double vectors, amx;
  int times = 0;

  Float32Question question(const std::string& asked = "", const std::string& begun = "") {
    return {.has_amx = true, .asked = asked, .begun = begun, .measure = [this] {
              ++times;
              return bench::Float32Rates{vectors, amx};
            }};
  }
};

TEST(Float32Products, AreByWhatAMeasurementFindsFaster) {
  for (const auto& [amx, by] : {std::pair{480e9, Float32Products::amx},
                                {260e9, Float32Products::amx},
                                {243e9, Float32Products::vectors},
                                {200e9, Float32Products::vectors}}) {
    Measured measured{.vectors = 226e9, .amx = amx};
    const auto choice = choose_float32_products(measured.question());
    EXPECT_EQ(choice.products, by) << amx;
    ASSERT_TRUE(choice.measured.has_value());
    EXPECT_EQ(measured.times, 1);
    EXPECT_TRUE(choice.differs.empty());
  }
}

TEST(Float32Products, ThatAreAskedForAreNotMeasured) {
  Measured measured{.vectors = 226e9, .amx = 480e9};
  EXPECT_EQ(choose_float32_products(measured.question("vectors")).products, Float32Products::vectors);
  EXPECT_EQ(choose_float32_products(measured.question("amx")).products, Float32Products::amx);
  EXPECT_EQ(measured.times, 0);
  EXPECT_EQ(choose_float32_products(measured.question("auto")).products, Float32Products::amx);
  EXPECT_EQ(measured.times, 1);
  const auto sentence =
      test::message_of<base::UsageError>([&] { (void)choose_float32_products(measured.question("AMX")); });
  EXPECT_SAYS(sentence, "RETORT_FLOAT32_PRODUCTS is 'AMX', expected amx, vectors or auto");
}

TEST(Float32Products, WithoutAmxAreByVectors) {
  Measured measured{.vectors = 226e9, .amx = 480e9};
  auto question = measured.question();
  question.has_amx = false;
  EXPECT_EQ(choose_float32_products(question).products, Float32Products::vectors);
  EXPECT_EQ(measured.times, 0);
  question.asked = "amx";
  EXPECT_SAYS(test::message_of<base::EnvironmentError>([&] { (void)choose_float32_products(question); }),
              "asks for AMX, which not every process of this job has");
}

// Whatever a second measurement would say.
TEST(Float32Products, OfARunThatGoesOnAreThoseThatItBeganWith) {
  for (const std::string begun : {"amx", "vectors"}) {
    Measured measured{.vectors = 226e9, .amx = begun == "amx" ? 100e9 : 480e9};
    const auto choice = choose_float32_products(measured.question("", begun));
    EXPECT_EQ(base::word(choice.products), begun);
    EXPECT_EQ(measured.times, 0);
    EXPECT_TRUE(choice.differs.empty());
  }
}

TEST(Float32Products, OfARunThatGoesOnByOthersAreSaid) {
  Measured measured{.vectors = 226e9, .amx = 480e9};
  auto question = measured.question("", "amx");
  question.has_amx = false;
  const auto elsewhere = choose_float32_products(question);
  EXPECT_EQ(elsewhere.products, Float32Products::vectors);
  EXPECT_SAYS(elsewhere.differs, "began with float32 products by amx and goes on by vectors, as not every");
  EXPECT_SAYS(choose_float32_products(measured.question("vectors", "amx")).differs,
              "goes on by vectors, as RETORT_FLOAT32_PRODUCTS says; its numbers have other bits");
}

TEST(Float32Products, AreTheSameOnAllRanks) {
  test::on_ranks(3, [](comm::Group& group) {
    Listener listener;
    (void)settle_float32_products({}, at::kCPU, listener, group);
    const auto all = group.all_values(static_cast<int>(ops::float32_products()));
    EXPECT_EQ(std::ranges::min(all), std::ranges::max(all));
    EXPECT_TRUE(group.rank() == 0 || listener.said.empty());
  });
}

TEST(Float32Products, AreInTheProvenanceOfEachStart) {
  const Project project;
  Listener listener;
  const auto request = test::run_in(project.run_directory());
  const auto recipe = project.recipe_of({test::kFinetune});
  ASSERT_TRUE(run(recipe, request, listener).finished);
  ASSERT_TRUE(run(recipe, request, listener).finished);
  const auto provenance = record::RunFiles(project.run_directory()).provenance();
  const auto& starts = provenance.at("starts");
  ASSERT_EQ(starts.size(), 2U);
  for (const auto& start : starts) {
    EXPECT_EQ(start.at("float32_products"), base::word(ops::float32_products()));
    EXPECT_EQ(start.contains("float32_auto"), &start == &starts[0] && ops::has_float32_amx());
  }
}

// This machine has no AMX, and the run is as one that began where there is.
TEST(Float32Products, OfARunFromAnotherMachineAreSaidWhereTheyDiffer) {
  if (ops::has_float32_amx()) return;  // goes on as it began
  const Project project;
  const auto directory = project.run_directory();
  base::make_directories(directory);
  base::write_file_atomically(directory / "recipe.json", "{}");
  base::write_file_atomically(directory / "provenance.json", R"({"starts": [{"float32_products": "amx"}]})");
  Listener listener;
  const auto alone = comm::single_group();
  EXPECT_FALSE(settle_float32_products(directory, at::kCPU, listener, *alone).differs.empty());
  EXPECT_SAYS(listener.said, "this run began with float32 products by amx and goes on by vectors");
}

}  // namespace
}  // namespace retort::pipeline
