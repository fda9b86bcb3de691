#include "retort/io/tensor_names.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "retort/base/error.h"
#include "retort/io/quote.h"

namespace retort::io {
namespace {

// The name in a model of text alone; nothing for a tensor of another part.
std::optional<std::string> name_alone(std::string_view name) {
  constexpr std::string_view kFour = "language_model.", kFive = "model.language_model.";
  if (name.starts_with(kFour)) return std::string(name.substr(kFour.size()));
  if (name.starts_with(kFive)) return "model." + std::string(name.substr(kFive.size()));
  if (name.starts_with("lm_head.")) return std::string(name);
  return std::nullopt;
}

bool is_usual(std::string_view name) {
  constexpr std::array<std::string_view, 4> kBeginnings{"model.embed_tokens.", "model.layers.", "model.norm.",
                                                        "lm_head."};
  return std::ranges::any_of(kBeginnings, [&](std::string_view begin) { return name.starts_with(begin); });
}

constexpr std::string_view kDecoder = "model.";  // what a decoder is called within a model of language

// Whether a file has it as transformers does or not: its loader puts the prefix before a name or takes it
// off.
std::string usual_name(const std::string& name) {
  if (is_usual(name)) return name;
  if (name.starts_with(kDecoder) && is_usual(name.substr(kDecoder.size())))
    return name.substr(kDecoder.size());
  const std::string longer = std::string(kDecoder) + name;
  return is_usual(longer) ? longer : name;
}

// Files whose tensors have other names, of which some may be left out.
class Renamed final : public WeightFiles {
 public:
  using Names = std::map<std::string, std::string>;  // in the file, by the name here
  Renamed(std::unique_ptr<const WeightFiles> files, Names names, UnreadTensors unread = {})
      : files_(std::move(files)), names_(std::move(names)), unread_(std::move(unread)) {}

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [here, stored] : names_) names.push_back(here);
    return names;
  }
  bool contains(std::string_view name) const override { return names_.contains(std::string(name)); }
  TensorHeader header(std::string_view name) const override { return files_->header(stored(name)); }
  TensorView find(std::string_view name) const override { return files_->find(stored(name)); }
  std::map<std::string, std::string> metadata() const override { return files_->metadata(); }
  std::size_t total_bytes() const override { return files_->total_bytes(); }
  StoredTypes stored_types() const override { return files_->stored_types(); }
  std::vector<base::Path> paths() const override { return files_->paths(); }
  UnreadTensors unread() const override { return unread_; }

 private:
  const std::string& stored(std::string_view name) const {
    const auto found = names_.find(std::string(name));
    base::require<base::ModelError>(found != names_.end(), files_->paths().front().string(),
                                    ": has no tensor ", quote(name), "; use a complete model.");
    return found->second;
  }

  std::unique_ptr<const WeightFiles> files_;
  Names names_;
  UnreadTensors unread_;
};

}  // namespace

std::unique_ptr<const WeightFiles> language_part(std::unique_ptr<const WeightFiles> whole) {
  const auto all = whole->names();
  const bool wrapped = std::ranges::any_of(
      all, [](const std::string& name) { return name.find("language_model.") != std::string::npos; });
  if (!wrapped) return whole;
  Renamed::Names names;
  UnreadTensors unread;
  for (const std::string& name : all) {
    if (auto alone = name_alone(name))
      names.emplace(std::move(*alone), name);
    else
      unread["they belong to what the model takes in beside text"].push_back(name);
  }
  return std::make_unique<Renamed>(std::move(whole), std::move(names), std::move(unread));
}

std::unique_ptr<const WeightFiles> with_usual_names(std::unique_ptr<const WeightFiles> files,
                                                    bool may_be_tied, const std::string& where,
                                                    std::vector<std::string>& notes) {
  constexpr const char *kEmbedding = "model.embed_tokens.weight", *kHead = "lm_head.weight";
  Renamed::Names names;
  std::string example;
  std::size_t changed = 0, count = 0;
  for (const std::string& name : files->names()) {
    std::string usual = usual_name(name);
    if (usual != name && changed++ == 0) example = base::join(quote(name), " is read as ", quote(usual));
    names.emplace(std::move(usual), name);
    ++count;
  }
  // Of tensors that share their values some writers keep the first by name.
  if (may_be_tied && !names.contains(kEmbedding) && names.contains(kHead)) {
    auto head = names.extract(kHead);
    head.key() = kEmbedding;
    if (changed++ == 0) example = base::join(quote(head.mapped()), " is read as ", quote(kEmbedding));
    names.insert(std::move(head));
  }
  if (changed == 0 || names.size() < count) return files;  // two of one name: refused by those of the file
  const std::string more = changed > 1 ? base::join(", and so are ", changed - 1, " more") : "";
  notes.push_back(base::join(where, ": tensor ", example, more, ", as transformers reads them."));
  return std::make_unique<Renamed>(std::move(files), std::move(names), files->unread());
}

}  // namespace retort::io
