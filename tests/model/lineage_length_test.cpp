// retort.json: what is written of a lineage is read, whatever its size, and what does not fit is refused.
#include "retort/model/lineage.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "support/message_of.h"
#include "support/models_for_tests.h"
#include "support/temporary_directory.h"

namespace retort::model {
namespace {

using base::Json;

// 128 blocks of the width of Llama 3.1 405B.
architecture::Config wide_config() {
  auto config = test::tiny_config();
  const auto block = config.blocks.front();
  config.blocks.assign(128, block);
  for (auto& wide : config.blocks) std::get<architecture::DenseMlp>(wide.mlp).width = 53248;
  return config;
}

Json file_of(const Lineage& lineage) {
  return {{"format", kLineageFormat}, {"lineage", to_json(lineage)}, {"provenance", Json::object()}};
}

class LineageFile : public testing::Test {
 protected:
  Lineage read(const std::string& text, const architecture::Config& config) const {
    base::write_file_atomically(directory_ / kLineageFile, text);
    return read_lineage(directory_.path(), config);
  }
  std::string refused(const Json& file, const architecture::Config& config) const {
    return test::message_of<base::ModelError>([&] { (void)read(file.dump(), config); });
  }

  test::TemporaryDirectory directory_;
};

TEST_F(LineageFile, OfALargeModelIsRead) {
  const auto config = wide_config();
  const auto text = file_of(whole_lineage(config)).dump(1);
  EXPECT_LT(text.size(), std::size_t{1} << 20);
  EXPECT_TRUE(read(text, config).identity());
  auto every_second = whole_lineage(config);  // as long as it gets: no neighbours
  for (auto& block : every_second.kept.blocks)
    for (auto& channel : block.channels) channel *= 2;
  const auto scattered = file_of(every_second).dump(1);
  EXPECT_GT(scattered.size(), std::size_t{1} << 26);
  EXPECT_EQ(read(scattered, config).kept, every_second.kept);
}

TEST_F(LineageFile, OfAnEarlierVersionListsEveryNumber) {
  const auto config = test::tiny_config();
  auto file = file_of(whole_lineage(config));
  file["format"] = 1;
  file["lineage"]["hidden"] = architecture::counted(config.hidden_size);
  for (std::size_t i = 0; i < config.blocks.size(); ++i)
    file["lineage"]["channels"][i] = architecture::counted(architecture::mlp_width(config.blocks[i]));
  EXPECT_TRUE(read(file.dump(), config).identity());
}

TEST_F(LineageFile, OfALaterVersionIsRefusedByItsFormat) {
  const auto config = test::tiny_config();
  auto file = file_of(whole_lineage(config));
  file["format"] = kLineageFormat + 1;
  EXPECT_SAYS(refused(file, config), "retort.json: format 3, expected 1 or 2");
}

TEST_F(LineageFile, ThatDoesNotFitIsRefused) {
  const auto config = test::tiny_config();
  const auto sound = file_of(whole_lineage(config));
  const auto with = [&](const char* key, const Json& value) {
    auto file = sound;
    file["lineage"][key] = value;
    return file;
  };
  auto lacking = sound;
  lacking["lineage"].erase("channels");
  EXPECT_SAYS(refused(lacking, config), "the lineage is not as Retort writes it");
  for (const auto& hidden :
       {"[[0, 1000000000000000]]", "[[1, 0]]", "[]", "[[]]", "[[0, 3]]", "{}", "[[-1, 3]]"})
    EXPECT_SAYS(refused(with("hidden", Json::parse(hidden)), config), "the lineage ");
  auto many = Json::array();  // more lists than the model has blocks
  for (int i = 0; i < 1000; ++i) many.push_back(Json::parse("[[0, 7]]"));
  EXPECT_SAYS(refused(with("channels", many), config), "does not fit config.json");
  auto file = sound;
  file["lineage"] = 3;
  EXPECT_SAYS(refused(file, config), "the lineage is not as Retort writes it");
}

}  // namespace
}  // namespace retort::model
