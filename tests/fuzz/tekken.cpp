// tekken.json.
#include "retort/io/tekken.h"

#include "fuzz/tokenizer_use.h"

using namespace retort;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::write(fuzz::folder() / "tekken.json", fuzz::text_of(data, size));
  fuzz::use_tokenizer(fuzz::folder(), "The end\n");
  return 0;
}
