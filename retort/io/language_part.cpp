#include "retort/io/language_part.h"

#include <algorithm>
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

class LanguagePart final : public WeightFiles {
 public:
  explicit LanguagePart(std::unique_ptr<const WeightFiles> whole) : whole_(std::move(whole)) {
    for (const std::string& name : whole_->names())
      if (auto alone = name_alone(name)) names_.emplace(std::move(*alone), name);
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [alone, name] : names_) names.push_back(alone);
    return names;
  }
  bool contains(std::string_view name) const override { return names_.contains(std::string(name)); }
  TensorHeader header(std::string_view name) const override { return whole_->header(stored(name)); }
  TensorView find(std::string_view name) const override { return whole_->find(stored(name)); }
  std::map<std::string, std::string> metadata() const override { return whole_->metadata(); }
  std::size_t total_bytes() const override { return whole_->total_bytes(); }
  StoredTypes stored_types() const override { return whole_->stored_types(); }
  std::vector<base::Path> paths() const override { return whole_->paths(); }

 private:
  const std::string& stored(std::string_view name) const {
    const auto found = names_.find(std::string(name));
    base::require<base::ModelError>(found != names_.end(), "the language part of the model has no tensor ",
                                    quote(name), "; use a complete model.");
    return found->second;
  }

  std::unique_ptr<const WeightFiles> whole_;
  std::map<std::string, std::string> names_;  ///< in the file, by that in a model of text alone
};

}  // namespace

std::unique_ptr<const WeightFiles> language_part(std::unique_ptr<const WeightFiles> whole) {
  const auto names = whole->names();
  const bool wrapped = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.find("language_model.") != std::string::npos;
  });
  if (!wrapped) return whole;
  return std::make_unique<LanguagePart>(std::move(whole));
}

}  // namespace retort::io
