// tokenizer.model; behind it, after the length of the first part in a last byte, tokenizer_config.json.
#include "retort/io/sentencepiece.h"

#include "fuzz/tokenizer_use.h"
#include "retort/base/json.h"

using namespace retort;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr std::size_t kUnit = 8;
  auto input = fuzz::text_of(data, size - 1);
  const std::size_t config_bytes = std::min(input.size(), data[size - 1] * kUnit);
  const auto config_text = input.substr(input.size() - config_bytes);
  input.remove_suffix(config_bytes);
  base::Json config;
  try {
    if (!config_text.empty()) config = base::parse_json(config_text);
  } catch (const base::JsonFault&) {
    return 0;
  }
  std::string json;
  const bool taken = fuzz::taken([&] {
    json = io::tokenizer_json_of_sentencepiece(std::string(input), "tokenizer.model", config, config);
  });
  if (!taken) return 0;
  fuzz::write(fuzz::folder() / "tokenizer.json", json);
  fuzz::use_tokenizer(fuzz::folder(), "The end\n");
  return 0;
}
