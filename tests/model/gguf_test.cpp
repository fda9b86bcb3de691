// A model of a directory, written as GGUF as llama.cpp's converter does: with the rows of queries and keys in
// another order.
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "retort/architecture/checkpoint.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/io/model_directory.h"
#include "retort/io/tokenizer_file.h"
#include "retort/model/dtype.h"
#include "retort/model/rope.h"
#include "retort/model/tensor_file.h"
#include "retort/model/weights.h"
#include "support/gguf_writer.h"
#include "support/models_for_tests.h"
#include "support/oracle_case.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

using test::GgufWriter;

// ggml's numbers of types.
enum Type : std::uint32_t { kF32 = 0, kF16 = 1, kQ8_0 = 8, kBf16 = 30 };

std::string text_of(const at::Tensor& values) {
  const auto bytes = model::bytes_of(values);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Row j of either half of a head goes to the rows 2j and 2j + 1.
at::Tensor as_llama_cpp_orders(const at::Tensor& rows, std::int64_t heads) {
  return rows.view({heads, 2, -1, rows.size(1)}).transpose(1, 2).reshape(rows.sizes());
}

// Blocks of a half scale and 32 bytes, by the rule of ggml's reference.
at::Tensor q8_0_blocks(const at::Tensor& values) {
  const auto blocks = values.to(at::kFloat).reshape({-1, 32});
  const auto scale = std::get<0>(blocks.abs().max(1, true)).div(127);
  const auto quants = at::where(scale == 0, at::zeros({}), blocks / scale).round().to(at::kChar);
  return at::cat({scale.to(at::kHalf).view(at::kByte), quants.view(at::kByte)}, 1).contiguous();
}

std::string gguf_name(std::string name) {
  const std::vector<std::pair<std::string, std::string>> parts = {{"model.embed_tokens", "token_embd"},
                                                                  {"model.norm", "output_norm"},
                                                                  {"lm_head", "output"},
                                                                  {"model.layers.", "blk."},
                                                                  {"input_layernorm", "attn_norm"},
                                                                  {"post_attention_layernorm", "ffn_norm"},
                                                                  {"self_attn.q_proj", "attn_q"},
                                                                  {"self_attn.q_norm", "attn_q_norm"},
                                                                  {"self_attn.k_norm", "attn_k_norm"},
                                                                  {"self_attn.k_proj", "attn_k"},
                                                                  {"self_attn.v_proj", "attn_v"},
                                                                  {"self_attn.o_proj", "attn_output"},
                                                                  {"mlp.gate_proj", "ffn_gate"},
                                                                  {"mlp.up_proj", "ffn_up"},
                                                                  {"mlp.down_proj", "ffn_down"}};
  for (const auto& [theirs, ours] : parts)
    if (const auto at = name.find(theirs); at != name.npos) name.replace(at, theirs.size(), ours);
  return name;
}

void add_tensor(GgufWriter& file, const std::string& name, at::Tensor values, std::uint32_t type) {
  std::vector<std::uint64_t> extents(values.sizes().rbegin(), values.sizes().rend());
  if (values.dim() == 1) type = kF32;
  const auto stored = type == kQ8_0   ? q8_0_blocks(values)
                      : type == kF32  ? values.to(at::kFloat)
                      : type == kBf16 ? values.to(at::kBFloat16)
                                      : values.to(at::kHalf);
  file.tensor(gguf_name(name), extents, type, text_of(stored.contiguous()));
}

GgufWriter gguf_of(const model::Weights& weights, std::uint32_t type,
                   const std::string& architecture = "llama") {
  const auto& config = weights.config;
  const auto& attention = *config.blocks.front().attention;
  GgufWriter file;
  file.text("general.architecture", architecture);
  file.number(architecture + ".block_count", static_cast<std::uint32_t>(config.blocks.size()));
  file.number(architecture + ".context_length", static_cast<std::uint32_t>(config.max_position_embeddings));
  file.number(architecture + ".embedding_length", static_cast<std::uint32_t>(config.hidden_size));
  file.number(architecture + ".feed_forward_length",
              static_cast<std::uint32_t>(std::get<architecture::DenseMlp>(config.blocks.front().mlp).width));
  file.number(architecture + ".attention.head_count", static_cast<std::uint32_t>(attention.num_heads));
  file.number(architecture + ".attention.head_count_kv", static_cast<std::uint32_t>(attention.num_kv_heads));
  file.number(architecture + ".attention.key_length", static_cast<std::uint32_t>(attention.head_dim));
  file.real(architecture + ".attention.layer_norm_rms_epsilon", static_cast<float>(config.rms_norm_eps));
  file.real(architecture + ".rope.freq_base", static_cast<float>(config.ropes.front().theta));
  file.number("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(config.bos_token_ids.front()));
  file.number("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(config.eos_token_ids.front()));
  for (std::size_t unit = 0; unit < weights.layout.units.size(); ++unit)
    for (const auto& tensor : weights.layout.units[unit].tensors) {
      auto values = weights.tensor(unit, tensor);
      const bool reordered = architecture == "llama";
      if (reordered && tensor.name.ends_with("q_proj.weight"))
        values = as_llama_cpp_orders(values, attention.num_heads);
      if (reordered && tensor.name.ends_with("k_proj.weight"))
        values = as_llama_cpp_orders(values, attention.num_kv_heads);
      add_tensor(file, tensor.name, values, type);
    }
  return file;
}

class Gguf : public ::testing::Test {
 protected:
  base::Path write(const GgufWriter& file) const {
    base::write_file_atomically(directory_ / "model.gguf", file.bytes());
    return directory_ / "model.gguf";
  }
  static model::Weights load(const base::Path& path) {
    return model::load_weights(path, at::kFloat, at::kCPU);
  }
  // Largest difference of a weight, as a share of the largest value of its tensor.
  static double largest_share(const model::Weights& a, const model::Weights& b) {
    double largest = 0;
    for (std::size_t unit = 0; unit < a.layout.units.size(); ++unit)
      for (const auto& tensor : a.layout.units[unit].tensors) {
        const auto x = a.tensor(unit, tensor), y = b.tensor(unit, tensor);
        largest = std::max(largest, test::largest_difference(x, y) / x.abs().max().item<double>());
      }
    return largest;
  }
  model::Weights europa_ = load(test::source() / "models" / "europa-5m");
  test::TemporaryDirectory directory_;
};

TEST_F(Gguf, HasTheWeightsAndTheConfigurationOfTheDirectory) {
  for (const std::uint32_t type : {kBf16, kF32}) {
    const auto read = load(write(gguf_of(europa_, type)));
    EXPECT_EQ(largest_share(europa_, read), 0);
    EXPECT_EQ(read.config.ropes.front().theta, europa_.config.ropes.front().theta);
    EXPECT_EQ(read.config.rms_norm_eps, europa_.config.rms_norm_eps);
    EXPECT_EQ(read.config.tie_word_embeddings, europa_.config.tie_word_embeddings);
    EXPECT_EQ(read.config.blocks.size(), europa_.config.blocks.size());
    EXPECT_EQ(read.file_dtype, type == kF32 ? io::Dtype::f32 : io::Dtype::bf16);
  }
}

TEST_F(Gguf, KnowsQwenWithScaledPositions) {
  std::size_t cases = 0;
  for (const auto& c : test::oracle_cases()) {
    if (!c.name.starts_with("qwen")) continue;
    auto weights = load(c.directory);
    if (weights.config.blocks.front().attention->kind.output_bias) continue;
    const bool linear = cases % 2 == 1;
    weights.config.initializer_range = 0.02;
    weights.config.ropes = {architecture::Rope{}};
    auto& rope = weights.config.ropes.front();
    rope.theta = 1e6;
    if (linear) {
      rope.kind = architecture::Rope::Kind::linear;
      rope.factor = 4;
    }
    for (auto& block : weights.config.blocks) {  // what a GGUF file of these families cannot say
      block.attention->kind.window.reset();
      std::get<architecture::DenseMlp>(block.mlp).activation = architecture::Activation::silu;
    }
    SCOPED_TRACE(c.name);
    const auto architecture = c.name.substr(0, 5);
    auto file = gguf_of(weights, kF32, architecture);
    if (linear) {
      file.text(architecture + ".rope.scaling.type", "linear");
      file.real(architecture + ".rope.scaling.factor", static_cast<float>(rope.factor));
    }
    const auto read = load(write(file));
    EXPECT_EQ(read.config, weights.config);
    EXPECT_EQ(largest_share(weights, read), 0);
    ++cases;
  }
  EXPECT_GE(cases, 2U);
}

// The file keeps what angles are divided by; the numbers of Llama 3.1 come back from it.
TEST_F(Gguf, FindsTheScaledPositionsOfLlama31InTheirDivisors) {
  auto& rope = europa_.config.ropes.front();
  const auto dim = europa_.config.blocks.front().attention->head_dim;
  rope.theta = 500000;
  const auto plain_R2 = model::rope_frequencies(rope, dim, 8192, 1);
  rope.kind = architecture::Rope::Kind::llama3;
  rope.factor = 8;
  rope.original_context = 8192;
  const auto divisors_R2 = plain_R2 / model::rope_frequencies(rope, dim, 8192, 1);
  auto file = gguf_of(europa_, kF32);
  file.tensor("rope_freqs.weight", {static_cast<std::uint64_t>(dim / 2)}, kF32,
              text_of(divisors_R2.contiguous()));
  EXPECT_EQ(load(write(file)).config.ropes, europa_.config.ropes);

  auto other = gguf_of(europa_, kF32);
  other.tensor("rope_freqs.weight", {static_cast<std::uint64_t>(dim / 2)}, kF32,
               text_of((divisors_R2 * 1.5).contiguous()));
  const auto path = write(other);
  EXPECT_SAYS(test::message_of<base::ModelError>([&] { load(path); }), "as in Llama 3.1");
}

TEST_F(Gguf, OfBlocksIsAsNearAsItsScalesAllow) {
  const auto read = load(write(gguf_of(europa_, kQ8_0)));
  const double share = largest_share(europa_, read);
  EXPECT_GT(share, 0);
  EXPECT_LE(share, 1.0 / 127);  // half a step of the largest value, and the rounding of the scale
  EXPECT_EQ(read.file_dtype, io::Dtype::bf16);
}

TEST_F(Gguf, SaysThatItsValuesAreDequantised) {
  const auto path = write(gguf_of(europa_, kQ8_0));
  std::vector<std::string> notes;
  (void)architecture::weight_dtype(architecture::read_config(path), io::ModelDirectory::open(path), &notes);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_SAYS(notes.front(), "weights are values dequantised from F32");
  EXPECT_SAYS(notes.front(), "and are saved in bfloat16");
}

TEST_F(Gguf, IsSavedAsADirectoryWithItsTokenizer) {
  auto file = gguf_of(europa_, kQ8_0);
  file.text("tokenizer.ggml.model", "gpt2");
  file.text("tokenizer.ggml.pre", "dbrx");
  file.texts("tokenizer.ggml.tokens", {"a", "b", "ab"});
  file.texts("tokenizer.ggml.merges", {"a b"});
  file.text("tokenizer.chat_template", "{{ messages }}");
  const auto path = write(file);
  const auto weights = load(path);
  const auto saved = directory_ / "saved";
  model::save_model(weights, saved, path, base::Json::object());
  const auto again = load(saved);
  EXPECT_EQ(again.file_dtype, io::Dtype::bf16);
  EXPECT_EQ(base::read_file(saved / "tokenizer.json"), io::read_tokenizer_text(path, 1 << 20).text);
  EXPECT_EQ(base::read_file(saved / "chat_template.jinja"), "{{ messages }}");
  EXPECT_TRUE(again.lineage.identity());
}

TEST_F(Gguf, RefusesValuesThatAreNotFinite) {
  auto file = gguf_of(europa_, kQ8_0);
  auto& embedding = file.tensors.front().bytes;
  embedding[0] = '\0';
  embedding[1] = '\x7E';  // the scale of the first block is NaN
  const auto path = write(file);
  EXPECT_SAYS(test::message_of<base::ModelError>([&] { load(path); }), "holds values that are not finite");
}

TEST_F(Gguf, RefusesTensorsThatHaveNoPlace) {
  auto file = gguf_of(europa_, kBf16);
  add_tensor(file, "blk.0.attn_q.bias", at::zeros({192}), kF32);
  auto path = write(file);
  EXPECT_SAYS(test::message_of<base::ModelError>([&] { load(path); }),
              "\"model.layers.0.self_attn.q_proj.bias\" has no place");
  file = gguf_of(europa_, kBf16);
  std::erase_if(file.tensors, [](const auto& tensor) { return tensor.name == "blk.3.ffn_up.weight"; });
  path = write(file);
  EXPECT_SAYS(test::message_of<base::ModelError>([&] { load(path); }),
              "\"model.layers.3.mlp.up_proj.weight\" is missing");
}

}  // namespace
}  // namespace retort
