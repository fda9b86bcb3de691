// The example recipe of every family, as a user starts it.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/tiny_project.h"
#include "retort/base/files.h"
#include "support/message_of.h"
#include "support/outside_data.h"

namespace retort::test {
namespace {

namespace fs = std::filesystem;

// Names without their ending.
std::vector<std::string> names_in(const fs::path& folder, const char* ending) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(source() / folder))
    if (entry.path().extension() == ending) names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(FamilyRecipes, EveryTableOfAFamilyHasOne) {
  EXPECT_EQ(names_in("recipes/families", ".yaml"), names_in("retort/architecture/families", ".cpp"));
}

TEST(FamilyRecipes, StandInTheManualAsTheProgramPrintsThem) {
  const std::string manual = base::read_file(source() / "docs" / "families.md");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"families"}, {"families", "--keys"}}) {
    const auto printed = run(arguments);
    EXPECT_EQ(printed.code, 0);
    EXPECT_SAYS(manual, "\n```\n" + printed.out + "```\n");
  }
}

TEST(FamilyRecipes, OfEveryFamilyGoThroughEveryKindOfStage) {
  for (const auto& name : names_in("recipes/families", ".yaml")) {
    SCOPED_TRACE(name);
    const TinyProject project;
    fs::create_directory_symlink(source() / "recipes", project.path("recipes"));
    const auto done = project.run({"run", "recipes/families/" + name + ".yaml", "--run-dir", "run"});
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_EQ(done.err.find("is not known"), std::string::npos) << done.err;
    EXPECT_SAYS(done.out, "student: the package");
    const auto info = project.run({"info", "run/models/student"});
    EXPECT_EQ(info.code, 0) << info.err;
    for (const char* part : {"\n  positions", "\nmay_be_pruned", "\n  kv_groups", "\n  hidden"})
      EXPECT_SAYS(info.out, part);
  }
}

TEST(FamilyRecipes, ThatWouldRemoveWhatHasToStayAreRefusedBeforeTheRun) {
  const TinyProject project;
  fs::create_directory_symlink(source() / "recipes", project.path("recipes"));
  std::string recipe = base::read_file(source() / "recipes" / "families" / "olmo2.yaml");
  recipe.erase(recipe.find(", heads: false"), std::string(", heads: false").size());
  project.write("recipe.yaml", recipe);
  const auto done = project.run_recipe();
  EXPECT_EQ(done.code, 2);
  EXPECT_SAYS(done.err, "normalised across heads, so without some the others would change; set heads: false");
  EXPECT_FALSE(fs::exists(project.path("run/models")));
}

}  // namespace
}  // namespace retort::test
