// model.safetensors.index.json: no file outside its directory is opened, by name or by link.
#include "fuzz/harness.h"
#include "retort/io/safetensors_weights.h"

using namespace retort;

namespace {

std::string file_of(const std::string& header, std::string_view data) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i));
  return file.append(header).append(data);
}

base::Path made_model() {
  const base::Path model = fuzz::folder() / "model";
  std::filesystem::create_directories(model / "folder.safetensors");
  fuzz::write(model / "a.safetensors",
              file_of(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "abcd"));
  fuzz::write(model / "b.safetensors", file_of(R"({"y":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                               R"("z":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})",
                                               "abcd"));
  fuzz::write(fuzz::folder() / "outside.safetensors",
              file_of(R"({"o":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "abcd"));
  std::filesystem::create_symlink("../outside.safetensors", model / "link.safetensors");
  return model;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const base::Path model = made_model();
  fuzz::write(model / "model.safetensors.index.json", fuzz::text_of(data, size));
  fuzz::taken([&] {
    std::vector<std::string> notes;
    const auto weights = io::open_safetensors_weights(model, notes);
    for (const auto& name : weights->names()) {
      fuzz::require(name != "o", "the file outside stays closed");
      (void)weights->find(name);
    }
    for (const auto& path : weights->paths()) fuzz::require(path.parent_path() == model, "a file is inside");
  });
  return 0;
}
