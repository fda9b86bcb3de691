// A recipe; behind a line "%%" overrides, a line each.  What is written of it reads as the same recipe.
#include "retort/recipe/recipe.h"

#include "fuzz/harness.h"

using namespace retort;

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kCut = "\n%%\n";
  const auto input = fuzz::text_of(data, size);
  const auto text = input.substr(0, input.find(kCut));
  const auto overrides = lines_of(input.substr(std::min(text.size() + kCut.size(), input.size())));
  fuzz::taken([&] {
    const auto recipe = recipe::parse_recipe(text, "recipe.yaml", overrides);
    const auto written = recipe::to_yaml(recipe);
    recipe::Recipe again;
    const bool taken = fuzz::taken([&] { again = recipe::parse_recipe(written, "written recipe.yaml"); });
    fuzz::require(taken && recipe::to_yaml(again) == written, "what is written says the same");
  });
  return 0;
}
