#include "retort/io/recognise.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/io/files_inside.h"
#include "retort/io/quote.h"
#include "retort/io/text_file.h"

namespace retort::io {
namespace {

namespace fs = std::filesystem;
using base::Path;

using Names = std::vector<std::string>;

constexpr const char* kConfigFile = "config.json";
constexpr std::size_t kMostEntries = 4096;  // of a directory that are looked at

struct Format {
  std::string what;
  const char* remedy;
};

// A file of the directory that tells what the directory holds.
struct Sign {
  std::string_view begin, end;  ///< of its name
  const char* holds;
  const char* remedy;
};

constexpr const char* kPickle = "weights in a format that can run code when it is read";
constexpr const char* kWriteSafetensors =
    "load it with transformers where you trust it and write it again with save_pretrained(directory), which "
    "makes safetensors";
constexpr const char* kOfAnotherLibrary = "weights of another library";

// The first that fits is named, so what says most stands first.
constexpr std::array kSigns{
    Sign{"adapter_config", ".json", "an adapter (such as LoRA), not a model",
         "merge it in Python: "
         "peft.AutoPeftModelForCausalLM.from_pretrained(directory).merge_and_unload().save_pretrained(new_"
         "directory)"},
    Sign{"adapter_model", "", "an adapter (such as LoRA), not a model",
         "fetch its adapter_config.json too, and merge it with peft"},
    Sign{"zero_to_fp32", ".py", "a checkpoint of DeepSpeed",
         "run zero_to_fp32.py there, which makes a model of it"},
    Sign{"", ".distcp", "a checkpoint of FSDP", "make a model of it with accelerate merge-weights"},
    Sign{"model_index", ".json", "a pipeline of diffusers", "use a language model"},
    Sign{"modules", ".json", "a model of sentence-transformers", "use a language model"},
    Sign{"consolidated", ".safetensors", "weights in Mistral's own format",
         "fetch config.json and model*.safetensors of the same model, or convert it with transformers' "
         "convert_mistral_weights_to_hf.py"},
    Sign{"consolidated", ".pth", "weights in Meta's own format",
         "fetch config.json and model*.safetensors of the same model, or convert it with transformers' "
         "convert_llama_weights_to_hf.py"},
    Sign{"", ".gguf", "GGUF files", "give the path of one of them"},
    Sign{"pytorch_model", ".bin", kPickle, kWriteSafetensors},
    Sign{"", ".bin", kPickle, kWriteSafetensors},
    Sign{"", ".pt", kPickle, kWriteSafetensors},
    Sign{"", ".pth", kPickle, kWriteSafetensors},
    Sign{"", ".h5", kOfAnotherLibrary, kWriteSafetensors},
    Sign{"", ".msgpack", kOfAnotherLibrary, kWriteSafetensors},
    Sign{"", ".onnx", kOfAnotherLibrary, "use the model that it was exported from"}};

Names names_in(const Path& directory) {
  Names names;
  std::error_code error;
  for (auto entry = fs::directory_iterator(directory, error);
       !error && entry != fs::directory_iterator() && names.size() < kMostEntries; entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// What a trainer leaves beside a model.
bool is_of_training(std::string_view name) {
  constexpr std::array<std::string_view, 4> kBeginnings{"training_args", "optimizer", "scheduler",
                                                        "rng_state"};
  return std::ranges::any_of(kBeginnings, [&](std::string_view begin) { return name.starts_with(begin); });
}

Names those_that(const Names& names, std::string_view begin, std::string_view end) {
  Names fitting;
  for (const auto& name : names)
    if (name.starts_with(begin) && name.ends_with(end) && !is_of_training(name)) fitting.push_back(name);
  return fitting;
}

// ", made for \"org/model\""
std::string base_of_adapter(const Path& directory) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
  try {
    const auto json = base::parse_json(base::read_file(resolve_inside(directory, kAdapterFile), kMaxBytes));
    return base::join(", made for ", shown(json.at("base_model_name_or_path")));
  } catch (const base::JsonFault&) {
  } catch (const base::Json::exception&) {
  } catch (const base::Error&) {
  }
  return {};
}

bool is_file(const Path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Folders with models: checkpoints of a trainer, revisions in the cache of Hugging Face.
std::string models_below(const Path& directory, const Names& names) {
  Names models;
  for (const auto& name : names)
    if (is_file(directory / name / kConfigFile)) models.push_back(name);
  for (const auto& revision : names_in(directory / "snapshots"))
    if (is_file(directory / "snapshots" / revision / kConfigFile)) models.push_back("snapshots/" + revision);
  if (models.empty()) return {};
  return base::join("holds models in its folders (", listed(models), "); give one of these");
}

std::string what_is_in(const Path& directory) {
  const Names names = names_in(directory);
  const auto has = [&](const char* name) { return std::ranges::binary_search(names, std::string(name)); };
  if (!has(kConfigFile) && !has(kAdapterFile))
    if (auto below = models_below(directory, names); !below.empty()) return below;
  for (const Sign& sign : kSigns)
    if (const Names found = those_that(names, sign.begin, sign.end); !found.empty())
      return base::join("holds ", sign.holds, found.front() == kAdapterFile ? base_of_adapter(directory) : "",
                        " (", listed(found), "); ", sign.remedy);
  const Names weights = those_that(names, "", ".safetensors");
  if (has(kConfigFile) || weights.empty()) return {};
  return base::join("holds weights (", listed(weights), ") and no ", kConfigFile,
                    "; add the one that belongs to them");
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

Format format_of(std::string_view bytes) {
  constexpr const char* kFetchAgain = "download the file again, for example with hf download";
  if (bytes.empty()) return {"an empty file", kFetchAgain};
  if (is_lfs_pointer(bytes)) return {"a Git LFS pointer", kFetchFromLfs};
  const auto begin = std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size());
  const std::string tag = lower_case(bytes.substr(begin, 9));
  if (tag == "<!doctype" || tag.starts_with("<html")) return {"a web page", kFetchAgain};
  std::string binary = binary_format(bytes);
  if (binary == "an Arrow stream") binary.clear();  // four bytes of ones, which damage makes too
  const bool is_of_torch = binary == "a zip archive" || binary == "a pickle";  // torch.save makes both
  return {binary, is_of_torch ? kWriteSafetensors : "this is not the file that its name promises"};
}

std::string first_bytes(const Path& file) {
  constexpr std::size_t kBytes = 512;
  std::string bytes(kBytes, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(bytes.data(), kBytes);
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  return bytes;
}

std::string what_is(const Path& file) {
  const std::string name = file.filename().string();
  if (name == kConfigFile || name.find(".safetensors") != std::string::npos)
    return "is a file of a model; give the directory that it is in";
  const Format format = format_of(first_bytes(file));
  return base::join("is ", format.what.empty() ? "a file" : format.what,
                    ", expected a model; give a directory with config.json, or a GGUF file");
}

}  // namespace

bool is_lfs_pointer(std::string_view first_bytes) {
  return first_bytes.starts_with("version https://git-lfs.github.com/spec/");
}

std::string what_is_there(const Path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return what_is_in(path);
  return is_file(path) ? what_is(path) : "";
}

void refuse_other_format(std::string_view first_bytes, const std::string& where, const char* expected) {
  const Format format = format_of(first_bytes);
  base::require<base::ModelError>(format.what.empty() || format.what == expected, where, ": expected ",
                                  expected, ", found ", format.what, "; ", format.remedy, ".");
}

}  // namespace retort::io
