// What retort.json says of a model, from whoever wrote it.
#include "retort/model/lineage.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "retort/base/error.h"
#include "support/message_of.h"
#include "support/reference_model.h"

namespace retort::model {
namespace {

TEST(Lineage, WithoutAnyOfItsPartsIsRefusedOrIsOfAnEarlierVersion) {
  const auto config = test::config_of({.blocks = 3});
  const auto sound = to_json(whole_lineage(config));
  EXPECT_TRUE(lineage_from_json(sound, config, "here").identity());
  for (const auto& [key, value] : sound.items()) {
    SCOPED_TRACE(key);
    auto json = sound;
    json.erase(key);
    if (key == "kv_groups" || key == "hidden" || key == "teacher_hidden" || key == "blocks") continue;
    EXPECT_SAYS(test::message_of<base::ModelError>([&] { lineage_from_json(json, config, "here"); }),
                "here: the lineage");
  }
}

TEST(Lineage, OfWrongShapesAndNumbersIsRefused) {
  const auto config = test::config_of({.blocks = 3});
  const auto sound = to_json(whole_lineage(config));
  const auto refused = [&](const char* key, const base::Json& value) {
    auto json = sound;
    json[key] = value;
    EXPECT_SAYS(test::message_of<base::ModelError>([&] { lineage_from_json(json, config, "here"); }),
                "here: the lineage");
  };
  const auto list = [](std::int64_t last) { return base::Json::array({0, 1, last}); };
  for (const char* key : {"blocks", "kv_groups", "channels", "hidden"})
    for (const auto& value : {base::Json(), base::Json(7), base::Json("x"), base::Json::array(), list(-1),
                              list(std::numeric_limits<std::int64_t>::max())})
      refused(key, value);
  for (const auto& value : {base::Json(), base::Json("x"), base::Json(-1), base::Json(2)})
    refused("teacher_blocks", value);
  for (const auto& json : {base::Json(), base::Json(1), base::Json::array()})
    EXPECT_SAYS(test::message_of<base::ModelError>([&] { lineage_from_json(json, config, "here"); }), "here");
}

// A teacher that is said to be so wide takes no memory.
TEST(Lineage, OfAnImmenseTeacherIsReadAsItIs) {
  const auto config = test::config_of({.blocks = 3});
  auto json = to_json(whole_lineage(config));
  json["teacher_hidden"] = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(lineage_from_json(json, config, "here").identity());
}

// Minutes, if each key were looked for among all before it.
TEST(Lineage, WithManyKeysThatNobodyKnowsIsRead) {
  const auto config = test::config_of({.blocks = 3});
  std::string text = to_json(whole_lineage(config)).dump();
  text.pop_back();
  for (int i = 0; i < 300'000; ++i) text += ",\"k" + std::to_string(i) + "\":1";
  text += "}";
  const auto json = base::parse_json(text, {.max_bytes = text.size()});
  EXPECT_TRUE(lineage_from_json(json, config, "here").identity());
}

}  // namespace
}  // namespace retort::model
