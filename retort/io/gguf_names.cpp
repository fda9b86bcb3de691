#include "retort/io/gguf_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <span>

#include "retort/base/error.h"

namespace retort::io {
namespace {

struct NamePair {
  std::string_view gguf, hugging_face;
};

constexpr std::array<NamePair, 3> kWhole{{{"token_embd.weight", "model.embed_tokens.weight"},
                                          {"output_norm.weight", "model.norm.weight"},
                                          {"output.weight", "lm_head.weight"}}};

// After "blk.N." and "model.layers.N.".
constexpr std::array<NamePair, 14> kInBlock{{{"attn_norm.weight", "input_layernorm.weight"},
                                             {"attn_q.weight", "self_attn.q_proj.weight"},
                                             {"attn_k.weight", "self_attn.k_proj.weight"},
                                             {"attn_v.weight", "self_attn.v_proj.weight"},
                                             {"attn_q.bias", "self_attn.q_proj.bias"},
                                             {"attn_k.bias", "self_attn.k_proj.bias"},
                                             {"attn_v.bias", "self_attn.v_proj.bias"},
                                             {"attn_q_norm.weight", "self_attn.q_norm.weight"},
                                             {"attn_k_norm.weight", "self_attn.k_norm.weight"},
                                             {"attn_output.weight", "self_attn.o_proj.weight"},
                                             {"ffn_norm.weight", "post_attention_layernorm.weight"},
                                             {"ffn_gate.weight", "mlp.gate_proj.weight"},
                                             {"ffn_up.weight", "mlp.up_proj.weight"},
                                             {"ffn_down.weight", "mlp.down_proj.weight"}}};

// Where there are norms around each half of a block, and where matrices are fused.
constexpr std::array<NamePair, 3> kWithNormsAround{
    {{"post_attention_norm.weight", "post_attention_layernorm.weight"},
     {"ffn_norm.weight", "pre_feedforward_layernorm.weight"},
     {"post_ffw_norm.weight", "post_feedforward_layernorm.weight"}}};
constexpr std::array<NamePair, 2> kFused{
    {{"attn_qkv.weight", "self_attn.qkv_proj.weight"}, {"ffn_up.weight", "mlp.gate_up_proj.weight"}}};

using Side = std::string_view NamePair::*;
constexpr Side kGguf = &NamePair::gguf, kHuggingFace = &NamePair::hugging_face;

std::optional<std::string_view> other_name(std::span<const NamePair> pairs, std::string_view name,
                                           Side from) {
  for (const NamePair& pair : pairs)
    if (pair.*from == name) return pair.*(from == kGguf ? kHuggingFace : kGguf);
  return std::nullopt;
}

std::optional<std::string_view> name_in_block(const GgufArchitecture& architecture, std::string_view name,
                                              Side from) {
  if (architecture.norms_around)
    if (const auto found = other_name(kWithNormsAround, name, from)) return found;
  if (architecture.fused)
    if (const auto found = other_name(kFused, name, from)) return found;
  return other_name(kInBlock, name, from);
}

// "blk.12.attn_q.weight" as 12 and "attn_q.weight".
struct NameInBlock {
  std::uint32_t number = 0;
  std::string_view rest;
};

std::optional<NameInBlock> parse_name(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view rest = name.substr(prefix.size());
  const std::size_t dot = std::min(rest.find('.'), rest.size());
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + dot, number);
  const bool canonical =
      error == std::errc() && end == rest.data() + dot && std::to_string(number) == rest.substr(0, dot);
  if (!canonical) return std::nullopt;
  return NameInBlock{number, rest.substr(std::min(dot + 1, rest.size()))};
}

std::optional<std::string> other_name_in_block(const GgufArchitecture& architecture, std::string_view name,
                                               std::string_view prefix, std::string_view other_prefix,
                                               Side from) {
  const auto parsed = parse_name(name, prefix);
  const auto in_block = parsed ? name_in_block(architecture, parsed->rest, from) : std::nullopt;
  if (!in_block) return std::nullopt;
  return base::join(other_prefix, parsed->number, ".", *in_block);
}

constexpr std::string_view kBlock = "blk.", kLayer = "model.layers.";

}  // namespace

std::string hugging_face_name(const GgufArchitecture& architecture, std::string_view name) {
  if (const auto whole = other_name(kWhole, name, kGguf)) return std::string(*whole);
  return other_name_in_block(architecture, name, kBlock, kLayer, kGguf).value_or(std::string(name));
}

std::optional<std::string> gguf_name(const GgufArchitecture& architecture, std::string_view hugging_face) {
  if (const auto whole = other_name(kWhole, hugging_face, kHuggingFace)) return std::string(*whole);
  return other_name_in_block(architecture, hugging_face, kLayer, kBlock, kHuggingFace);
}

std::optional<std::uint32_t> gguf_block(std::string_view name) {
  const auto parsed = parse_name(name, kBlock);
  return parsed ? std::optional(parsed->number) : std::nullopt;
}

std::string gguf_model_name(const GgufArchitecture& architecture, const std::string& name,
                            const std::function<bool(std::string_view)>& has_token) {
  constexpr std::array<std::string_view, 4> kTokens{"<unk>", "<s>", "</s>", "<|endoftext|>"};
  if (architecture.fused && std::ranges::all_of(kTokens, has_token)) return "phi-3";
  std::string small = name;
  for (char& letter : small) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const bool misleads = small.find("phi-3") != small.npos || small.find("phi3") != small.npos;
  return misleads ? "model" : name;
}

}  // namespace retort::io
