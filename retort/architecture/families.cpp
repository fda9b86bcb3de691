#include "retort/architecture/families.h"

#include <algorithm>
#include <array>

#include "retort/architecture/families/all.h"
#include "retort/base/error.h"
#include "retort/io/quote.h"

namespace retort::architecture {
namespace {

constexpr std::array kFamilies{&kLlama, &kMistral, &kMinistral, &kMinistral3, &kQwen2,  &kQwen3,  &kSmolLM3,
                               &kPhi3,  &kOlmo2,   &kOlmo3,     &kGemma2,     &kGemma3, &kGranite};

constexpr std::array kWrappers{Wrapper{"Mistral3ForConditionalGeneration", "mistral3", "mistral"},
                               Wrapper{"Gemma3ForConditionalGeneration", "gemma3", "gemma3_text"}};

}  // namespace

std::span<const Wrapper> wrappers() {
  return kWrappers;
}

std::span<const Family* const> families() {
  return kFamilies;
}

std::string supported_architectures() {
  std::string list;
  for (const Family* family : kFamilies)
    list += (list.empty() ? "" : ", ") + std::string(family->architecture);
  return list;
}

const Family& family_of(std::string_view architecture) {
  const auto found = std::find_if(kFamilies.begin(), kFamilies.end(),
                                  [&](const Family* family) { return architecture == family->architecture; });
  base::require<base::ModelError>(found != kFamilies.end(), "config.json: architecture ",
                                  io::quote(architecture), " is not supported; supported are ",
                                  supported_architectures(), ".");
  return **found;
}

}  // namespace retort::architecture
