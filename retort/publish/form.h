#pragma once
// A model in the form that a program loads.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/base/files.h"
#include "retort/io/model_directory.h"
#include "retort/publish/gguf_tensors.h"
#include "retort/publish/gguf_types.h"
#include "retort/publish/options.h"
#include "retort/publish/padded.h"

namespace retort::publish {

struct WrittenForm {
  base::Path model;                       ///< the file or the directory that the program loads
  std::optional<QuantisedValues> values;  ///< of a GGUF file
};

class Form {
 public:
  /// `numbers`: of the model's blocks in the one that it comes from.  Throws UsageError for options that
  /// contradict each other, ModelError for what the form cannot say.
  Form(ExportOptions options, const base::Path& model, std::vector<std::int64_t> numbers);
  Form(const Form&) = delete;
  Form& operator=(const Form&) = delete;

  /// Fills a directory.  Throws as write_gguf_model() and write_hf_directory().
  WrittenForm write(const base::Path& directory) const;

  /// The end of the model's path.
  std::string name() const;
  /// Of what is written.
  const architecture::Config& config() const { return weights_.config(); }
  /// Parameters that stand where the model has none.
  std::int64_t zeros() const;
  /// Whether the written types hold every value of the model.
  bool is_exact() const;
  /// "Q4_K_M", "BF16"
  std::string type() const;
  /// What the program was seen to do with a whole model of the family: "loads in llama.cpp 2026.10.11549".
  std::string seen() const;

 private:
  ExportOptions options_;
  base::Path model_;
  io::ModelDirectory source_;
  architecture::Config whole_;  ///< as the model is
  PaddedWeights weights_;
  io::Dtype dtype_;                 ///< of the model's weights
  std::optional<GgufTypes> types_;  ///< nothing: no GGUF file
};

/// What a model of `config` will be written as, in words: "GGUF architecture llama", "LlamaForCausalLM".  Its
/// blocks may still get other sizes, and differ in them where `may_differ`.  Throws UsageError or ModelError
/// for what is known to fail before there are weights; `tokenizer_from` has the tokenizer.
std::string foreseen_form(const ExportOptions& options, const architecture::Config& config, bool may_differ,
                          const base::Path& tokenizer_from);

}  // namespace retort::publish
