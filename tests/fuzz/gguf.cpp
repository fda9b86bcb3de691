// A GGUF file: metadata, tensors of all types, the tokenizer and the configuration that are made of it.
#include "retort/io/gguf.h"

#include "fuzz/tokenizer_use.h"
#include "retort/architecture/checkpoint.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/hash.h"
#include "retort/io/model_directory.h"

using namespace retort;

namespace {

void read_model(const base::Path& path) {
  const auto model = io::ModelDirectory::open(path);
  for (const auto& name : model.names()) {
    const auto bytes = model.find(name).bytes;
    (void)base::hash64({reinterpret_cast<const char*>(bytes.data()), bytes.size()});  // reads them all
  }
  const auto config = architecture::parse_hf_config(model.config_text(), path.string());
  architecture::check_tensors(config, model);
  (void)architecture::weight_dtype(config, model);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> file(data, data + size);  // no byte behind its end
  const bool sound = fuzz::taken([&] {
    const auto header = io::parse_gguf(std::as_bytes(std::span(file)), "a.gguf");
    for (const auto& [name, tensor] : header.tensors)
      fuzz::require(header.data_start + tensor.begin + tensor.size <= size, "a tensor is inside");
  });
  if (!sound) return 0;
  static const base::Path path = fuzz::folder() / "a.gguf";
  fuzz::write(path, fuzz::text_of(data, size));
  fuzz::use_tokenizer(path, "The end\n");
  fuzz::taken([&] { (void)io::accompanying_files(path); });
  fuzz::taken([&] { read_model(path); });
  return 0;
}
