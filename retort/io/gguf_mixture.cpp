#include "retort/io/gguf_mixture.h"

#include <algorithm>
#include <array>

#include "retort/base/error.h"
#include "retort/io/gguf_names.h"

namespace retort::io {
namespace {

struct MixtureRow {
  GgufMixture mixture;
  std::string_view name;
  std::uint32_t file_type;
  GgmlType usual;
};

constexpr std::array<MixtureRow, 13> kMixtures{{
    {GgufMixture::f32, "F32", 0, GgmlType::f32},
    {GgufMixture::f16, "F16", 1, GgmlType::f16},
    {GgufMixture::bf16, "BF16", 32, GgmlType::bf16},
    {GgufMixture::q8_0, "Q8_0", 7, GgmlType::q8_0},
    {GgufMixture::q4_0, "Q4_0", 2, GgmlType::q4_0},
    {GgufMixture::q4_1, "Q4_1", 3, GgmlType::q4_1},
    {GgufMixture::q5_0, "Q5_0", 8, GgmlType::q5_0},
    {GgufMixture::q5_1, "Q5_1", 9, GgmlType::q5_1},
    {GgufMixture::q4_k_s, "Q4_K_S", 14, GgmlType::q4_k},
    {GgufMixture::q4_k_m, "Q4_K_M", 15, GgmlType::q4_k},
    {GgufMixture::q5_k_s, "Q5_K_S", 16, GgmlType::q5_k},
    {GgufMixture::q5_k_m, "Q5_K_M", 17, GgmlType::q5_k},
    {GgufMixture::q6_k, "Q6_K", 18, GgmlType::q6_k},
}};

const MixtureRow& row_of(GgufMixture mixture) {
  return kMixtures[static_cast<std::size_t>(mixture)];
}

char upper(char letter) {
  return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Norms and biases stay as they are.
bool is_matrix(std::string_view name, std::span<const std::int64_t> shape) {
  return shape.size() >= 2 && name.ends_with("weight") && !contains(name, "_norm.weight");
}

// Of "blk.12.attn_v.weight" 12.
std::int64_t block_of_name(std::string_view name, const MixtureModel& model) {
  const auto block = gguf_block(name);
  base::ensure(block && *block < model.blocks, "a tensor of attention or an MLP names its block");
  return *block;
}

// The first and the last eighth, and each third between them.
bool has_more_bits(std::int64_t block, std::int64_t blocks) {
  return block < blocks / 8 || block >= 7 * blocks / 8 || (block - blocks / 8) % 3 == 2;
}

// Models whose value heads are shared by so many query heads that finer values cost little.
bool is_large(const MixtureModel& model) {
  return model.blocks == 80 &&
         (model.architecture == "qwen2" || (model.architecture == "llama" && model.heads != model.kv_heads));
}

GgmlType type_of_values(GgufMixture mixture, const MixtureModel& model, std::int64_t block) {
  GgmlType type = row_of(mixture).usual;
  const bool medium = mixture == GgufMixture::q4_k_m || mixture == GgufMixture::q5_k_m;
  if (medium && has_more_bits(block, model.blocks)) type = GgmlType::q6_k;
  if (mixture == GgufMixture::q4_k_s && block < 4) type = GgmlType::q5_k;
  return type == GgmlType::q4_k && is_large(model) ? GgmlType::q5_k : type;
}

GgmlType type_of_down(GgufMixture mixture, const MixtureModel& model, std::int64_t block) {
  const bool medium = mixture == GgufMixture::q4_k_m || mixture == GgufMixture::q5_k_m;
  if (medium && has_more_bits(block, model.blocks)) return GgmlType::q6_k;
  if (mixture == GgufMixture::q4_k_s && block < model.blocks / 8) return GgmlType::q5_k;
  return row_of(mixture).usual;
}

// Whatever the length of its rows.
GgmlType type_for_long_rows(GgufMixture mixture, const MixtureModel& model, std::string_view name) {
  const GgmlType usual = row_of(mixture).usual;
  if (name == "output.weight" || (model.tied && name == "token_embd.weight"))
    return usual == GgmlType::q8_0 ? usual : GgmlType::q6_k;
  if (contains(name, "attn_v.weight") || contains(name, "attn_qkv.weight"))
    return type_of_values(mixture, model, block_of_name(name, model));
  if (contains(name, "ffn_down")) return type_of_down(mixture, model, block_of_name(name, model));
  return usual;
}

bool has_whole_blocks(GgmlType type, std::int64_t row) {
  return row % static_cast<std::int64_t>(block_of(type).values) == 0;
}

// Blocks of 32 values in place of those of 256.
GgmlType with_small_blocks(GgmlType type) {
  switch (type) {
    case GgmlType::q4_k:
      return GgmlType::q5_0;
    case GgmlType::q5_k:
      return GgmlType::q5_1;
    case GgmlType::q6_k:
      return GgmlType::q8_0;
    default:
      return type;
  }
}

}  // namespace

std::optional<GgufMixture> parse_gguf_mixture(std::string_view text) {
  std::string large(text);
  std::transform(large.begin(), large.end(), large.begin(), upper);
  for (const MixtureRow& known : kMixtures)
    if (known.name == large) return known.mixture;
  return std::nullopt;
}

std::string_view name(GgufMixture mixture) {
  return row_of(mixture).name;
}

std::string gguf_mixture_names() {
  std::string names;
  for (const MixtureRow& known : kMixtures) names += (names.empty() ? "" : ", ") + std::string(known.name);
  return names;
}

std::uint32_t file_type(GgufMixture mixture) {
  return row_of(mixture).file_type;
}

GgmlType type_in_mixture(GgufMixture mixture, const MixtureModel& model, std::string_view name,
                         std::span<const std::int64_t> shape) {
  if (!is_matrix(name, shape)) return GgmlType::f32;
  if (!is_quantised(row_of(mixture).usual)) return row_of(mixture).usual;
  return fitting_type(type_for_long_rows(mixture, model, name), shape.back());
}

GgmlType fitting_type(GgmlType type, std::int64_t row) {
  if (has_whole_blocks(type, row)) return type;
  const GgmlType other = with_small_blocks(type);
  return has_whole_blocks(other, row) ? other : GgmlType::f16;
}

}  // namespace retort::io
