// tokenizer.json, and after a zero byte a text.
#include "fuzz/tokenizer_use.h"
#include "retort/text/tokenizer_description.h"

using namespace retort;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const base::Path directory = fuzz::folder();
  const auto input = fuzz::text_of(data, size);
  const auto json = input.substr(0, input.find('\0'));
  fuzz::write(directory / "tokenizer.json", json);
  fuzz::use_tokenizer(directory, input.substr(std::min(json.size() + 1, input.size())));
  fuzz::taken([&] { (void)text::describe_tokenizer(directory); });
  return 0;
}
