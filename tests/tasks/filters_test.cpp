#include "retort/tasks/filters.h"

#include "tasks/files_for_tests.h"

namespace retort::tasks {
namespace {

// The chain of a list of steps in YAML.
FilterChain chain_of(const std::string& steps) {
  const TaskFolder folder;
  const auto yaml =
      std::string(
          "task: t\ndataset_path: x\ntest_split: test\ndoc_to_text: q\ndoc_to_target: a\nfilter_list:\n"
          "  - name: f\n    filter: ") +
      steps + "\n";
  return read_task(folder.write("t.yaml", yaml)).filters.at(0);
}

TEST(TaskFilters, TakesTheGroupThatIsNotEmpty) {
  const auto last = chain_of(
      "[{function: regex, group_select: -1, regex_pattern: '(-?[$0-9.,]{2,})|(-?[0-9]+)'}, {function: "
      "take_first}]");

  EXPECT_EQ(filtered(last, "He has 5 and then $12.50 or 7", "w"), "7");
  EXPECT_EQ(filtered(last, "none", "w"), "[invalid]");
  const auto strict = chain_of(
      "[{function: regex, regex_pattern: '#### (\\-?[0-9\\.\\,]+)', fallback: x}, {function: take_first}]");
  EXPECT_EQ(filtered(strict, "so\n#### 1,200 and #### 7", "w"), "1,200");
  EXPECT_EQ(filtered(strict, "", "w"), "x");
}

TEST(TaskFilters, AppliesStepsInTheirOrder) {
  const auto chain = chain_of(
      "[{function: remove_whitespace}, {function: lowercase}, {function: map, mapping_dict: {yes: \"1\"}, "
      "default_value: \"0\"}, {function: take_first}]");

  EXPECT_EQ(filtered(chain, "  YES\n", "w"), "1");
  EXPECT_EQ(filtered(chain, "no", "w"), "0");
}

TEST(TaskFilters, RefusesAMatchThatDoesNotExist) {
  const auto chain =
      chain_of("[{function: regex, group_select: 2, regex_pattern: '[0-9]'}, {function: take_first}]");

  EXPECT_SAYS(test::message_of<base::DataError>([&] { (void)filtered(chain, "1 2", "t: document 3"); }),
              "t: document 3: group_select 2 of 2 matches");
}

TEST(TaskFilters, RefusesAPatternThatTakesTooLong) {
  const auto chain = chain_of("[{function: regex, regex_pattern: '(a+)+$'}, {function: take_first}]");

  EXPECT_SAYS(
      test::message_of<base::DataError>([&] { (void)filtered(chain, std::string(40, 'a') + "b", "w"); }),
      "takes too many steps");
}

}  // namespace
}  // namespace retort::tasks
