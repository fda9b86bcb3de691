#include "retort/publish/gguf_types.h"

#include <utility>

#include "retort/base/error.h"
#include "retort/io/gguf_mixture.h"
#include "retort/io/quote.h"
#include "retort/publish/gguf_keys.h"

namespace retort::publish {
namespace {

using base::require;
using io::GgmlType;

constexpr std::uint32_t kGuessed = 1024;  // general.file_type: its reader looks at the tensors

// Q2_K and Q3_K are read and not written.
GgmlType written(GgmlType type) {
  return type == GgmlType::q2_k || type == GgmlType::q3_k ? GgmlType::q4_k : type;
}

}  // namespace

bool GgufTypes::holds(io::Dtype dtype) const {
  return name == "F32" || name == io::name(dtype);
}

GgufTypes gguf_types(const std::string& asked, io::Dtype own, const architecture::Config& config,
                     const std::string& where) {
  const auto mixture = io::parse_gguf_mixture(asked.empty() ? io::name(own) : std::string_view(asked));
  require<base::UsageError>(mixture.has_value(), "export: --type is ", io::quote(asked), ", expected one of ",
                            io::gguf_mixture_names(), ".");
  const auto& attention = attention_of(config);
  const io::MixtureModel model{.architecture = gguf_architecture_of(config, where).name,
                               .blocks = std::ssize(config.blocks),
                               .heads = attention.num_heads,
                               .kv_heads = attention.num_kv_heads,
                               .tied = config.tie_word_embeddings};
  return {std::string(io::name(*mixture)), io::file_type(*mixture),
          [mixture, model](const std::string& name, const std::vector<std::int64_t>& shape) {
            return io::type_in_mixture(*mixture, model, name, shape);
          }};
}

GgufTypes gguf_types_like(const base::Path& file, std::vector<std::int64_t> numbers) {
  const auto like = std::make_shared<const LikeFile>(file, std::move(numbers));
  const auto type_of = [like](const std::string& name, const std::vector<std::int64_t>& shape) {
    const io::GgmlType type = like->type(name);
    return shape.size() < 2 ? GgmlType::f32 : io::fitting_type(written(type), shape.back());
  };
  return {"mixed", kGuessed, type_of, like};
}

}  // namespace retort::publish
