// Where texts end, and how they are drawn, by generation_config.json.
#include "retort/eval/generation_config.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "retort/base/output_file.h"
#include "support/message_of.h"
#include "support/reference_model.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

using Ids = std::vector<std::int32_t>;

TEST(EndOfText, ComesFromTheGenerationConfigurationWhereItNamesAny) {
  const test::TemporaryDirectory directory;
  const auto config = test::config_of({});
  const auto with = [&](const std::string& text) {
    base::write_file_atomically(directory / "generation_config.json", text);
    return eval::end_of_text_ids(directory.path(), config);
  };
  EXPECT_EQ(eval::end_of_text_ids(directory.path(), config), Ids{2});
  EXPECT_EQ(with(R"({"eos_token_id": 5})"), Ids{5});
  EXPECT_EQ(with(R"({"eos_token_id": [5, 7]})"), (Ids{5, 7}));
  EXPECT_EQ(with(R"({"eos_token_id": null})"), Ids{2});
  EXPECT_EQ(with("{}"), Ids{2});
  for (const char* bad :
       {"[", "[1]", R"({"eos_token_id": "x"})", R"({"eos_token_id": 61})", R"({"eos_token_id": [-1]})"})
    EXPECT_SAYS(test::message_of<base::ModelError>([&] { with(bad); }), "generation_config.json");
}

}  // namespace
}  // namespace retort
