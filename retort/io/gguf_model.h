#pragma once
// A GGUF file, or its split parts, seen as a Hugging Face directory: tensors under the names of Hugging Face
// with rows in their order, and the texts of config.json and of the tokenizer's files.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "retort/io/gguf.h"
#include "retort/io/gguf_config.h"
#include "retort/io/weight_files.h"

namespace retort::io {

class GgufModel : public WeightFiles {
 public:
  /// Opens the file, or all parts of a split model of which it is the first.  Throws ModelError (unsound,
  /// foreign, or with parts that do not belong together) or StorageError.
  static GgufModel open(const base::Path& path);

  /// What stands for config.json.  Throws ModelError for what is not supported.
  std::string config_text() const;

  std::vector<std::string> names() const override;
  bool contains(std::string_view name) const override { return places_.find(name) != places_.end(); }
  TensorHeader header(std::string_view name) const override;
  TensorView find(std::string_view name) const override;
  std::map<std::string, std::string> metadata() const override;
  std::size_t total_bytes() const override;
  StoredTypes stored_types() const override;
  std::vector<base::Path> paths() const override;

 private:
  struct Place {
    std::size_t part = 0;
    GgufTensor tensor;
    std::int64_t heads = 0;  ///< of a query or key weight, whose rows are ordered by them; else 0
    bool plus_one = false;   ///< a norm's, of which the file holds 1 + w
  };

  explicit GgufModel(std::vector<GgufFile> parts) : parts_(std::move(parts)) {}
  void add_tensors();
  std::vector<float>* divisors_in(std::string_view name);
  std::vector<float> read_divisors(std::string_view name, std::size_t part, const GgufTensor& tensor) const;
  const Place& place(std::string_view name) const;
  Dtype saved_dtype() const;
  MetadataReader reader() const { return {parts_.front().metadata(), where_}; }

  std::vector<GgufFile> parts_;
  std::string where_;
  std::map<std::string, Place, std::less<>> places_;
  std::vector<float> rope_divisors_, short_divisors_, long_divisors_;
};

}  // namespace retort::io
