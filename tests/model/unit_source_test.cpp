// A unit is read in parts as it is read whole, whatever holds its tensors.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "retort/architecture/hf_config.h"
#include "retort/model/weights.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

// Parts begin within rows, and reach over the ends of tensors.
constexpr std::int64_t kPart = 1'000;

void expect_parts_of(const model::UnitSource& source) {
  const auto whole = model::collected(source, at::kFloat, at::kCPU);
  for (std::size_t unit = 0; unit < whole.units.size(); ++unit) {
    const auto size = source.layout.units[unit].size;
    auto parts = at::zeros({size}, at::kFloat);
    for (std::int64_t begin = 0; begin < size; begin += kPart)
      source.read(unit, begin, parts.narrow(0, begin, std::min(kPart, size - begin)));
    EXPECT_TRUE(at::equal(parts, whole.units[unit])) << "unit " << unit;
  }
}

// Those of the example recipes: fused matrices, norms with 1 subtracted, biases.
TEST(UnitSource, OfEachFamilyIsReadInParts) {
  const test::TemporaryDirectory directory;
  int families = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::source() / "recipes/families")) {
    if (entry.path().extension() != ".json") continue;
    const auto name = entry.path().stem().string();
    SCOPED_TRACE(name);
    ++families;
    std::filesystem::create_directory(directory / name);
    std::filesystem::copy_file(entry.path(), directory / name / "config.json");
    const auto config = architecture::read_config(directory / name);
    expect_parts_of(model::random_source(config, 3));
    const auto saved = directory / (name + "_saved");
    model::save_model(model::random_weights(config, 3, at::kFloat, at::kCPU), saved, {}, {});
    expect_parts_of(model::open_weights(saved));
  }
  EXPECT_GT(families, 10);
}

TEST(UnitSource, OfWeightsInMemoryIsReadInParts) {
  auto config = architecture::Config();
  config.vocab_size = 64;
  config.hidden_size = 32;
  config.blocks.assign(1, {architecture::Attention{4, 2, 8}, architecture::DenseMlp{48}});
  const auto weights = model::random_weights(config, 1, at::kFloat, at::kCPU);
  const auto part = at::zeros({70}, at::kFloat);
  model::source_of(weights).read(0, 100, part);
  EXPECT_TRUE(at::equal(part, weights.units[0].narrow(0, 100, 70)));
}

}  // namespace
}  // namespace retort
