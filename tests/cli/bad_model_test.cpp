// Model directories that are damaged, hostile or not supported.  tests/io and tests/text go through all ways
// in which a file can lie; here it is the way from the file to the person.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "cli/refusal.h"
#include "retort/base/files.h"

namespace retort::test {
namespace {

namespace fs = std::filesystem;

void replace(const fs::path& file, const std::string& what, const std::string& by) {
  std::string text = base::read_file(file);
  const auto at = text.find(what);
  ASSERT_NE(at, std::string::npos) << what;
  base::write_file_atomically(file, text.replace(at, what.size(), by));
}

void overwrite(const fs::path& file, std::size_t offset, const std::string& bytes) {
  std::string content = base::read_file(file);
  base::write_file_atomically(file, content.replace(offset, bytes.size(), bytes));
}

// Other values of keys of config.json.
void configure(const fs::path& model, const base::Json& values) {
  auto config = base::Json::parse(base::read_file(model / "config.json"));
  config.update(values);
  base::write_file_atomically(model / "config.json", config.dump());
}

std::function<void(const fs::path&)> with(const base::Json& values) {
  return [values](const fs::path& model) { configure(model, values); };
}
std::function<void(const fs::path&)> as(const char* architecture, const char* type, base::Json values = {}) {
  values["architectures"] = {architecture};
  values["model_type"] = type;
  return with(values);
}

// A file of weights, taken apart so that its header can be changed.
struct WeightFile {
  explicit WeightFile(const fs::path& path) {
    const std::string file = base::read_file(path);
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, file.data(), 8);
    header = base::Json::parse(file.substr(8, header_bytes));
    body = file.substr(8 + header_bytes);
  }
  void write(const fs::path& path) const {
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const std::uint64_t header_bytes = text.size();
    const std::string length(reinterpret_cast<const char*>(&header_bytes), 8);
    base::write_file_atomically(path, length + text + body);
  }
  base::Json header;
  std::string body;
};

// One more tensor, without elements.
void add_tensor(const fs::path& weights, const char* name) {
  WeightFile file(weights);
  file.header[name] = {{"dtype", "F32"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
  file.write(weights);
}

// A tokenizer in another format than tokenizer.json.
void replace_tokenizer(const fs::path& model, const char* file, const std::string& content) {
  fs::remove(model / "tokenizer.json");
  base::write_file_atomically(model / file, content);
}

std::string tekken_with_a_hole() {
  const auto token = [](int rank, const char* bytes) {
    return base::Json{{"rank", rank}, {"token_bytes", bytes}, {"token_str", nullptr}};
  };
  return base::Json{
      {"config",
       {{"pattern", "x"}, {"default_vocab_size", 3}, {"default_num_special_tokens", 1}, {"version", "v3"}}},
      {"vocab", {token(0, "AA=="), token(2, "AQ==")}},
      {"special_tokens", base::Json::array({base::Json{{"rank", 0}, {"token_str", "<unk>"}}})}}
      .dump();
}

// Fields of a protocol buffer: a piece "a" and a trainer of model_type 1.
std::string unigram_pieces() {
  return std::string("\x0a\x08\x0a\x01\x61\x15\x00\x00\x00\x00\x12\x02\x18\x01", 14);
}

std::string lfs_pointer() {
  return "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, '0') + "\nsize 12345\n";
}

struct BadModel {
  const char* what;
  std::function<void(const fs::path& model)> damage;
  int code;
  const char* culprit;
};

const std::vector<BadModel>& bad_models() {
  static const std::vector<BadModel> cases = {
      {"truncated weights", [](const auto& m) { fs::resize_file(m / "model.safetensors", 5000); }, 4,
       "model.safetensors"},
      {"empty weights", [](const auto& m) { fs::resize_file(m / "model.safetensors", 0); }, 4,
       "model.safetensors"},
      {"header longer than the file",
       [](const auto& m) { overwrite(m / "model.safetensors", 0, "\xff\xff\xff\xff\xff\xff\xff\x7f"); }, 4,
       "the header claims 9223372036854775807 bytes"},
      {"offsets that overlap",
       [](const auto& m) {
         replace(m / "model.safetensors", "\"data_offsets\":[0,", "\"data_offsets\":[8,");
       },
       4, "model.safetensors"},
      {"shape that overflows",
       [](const auto& m) { replace(m / "model.safetensors", "\"shape\":[4096,32]", "\"shape\":[1e99,32]"); },
       4, "model.safetensors"},
      {"weights that are not numbers",
       [](const auto& m) {
         overwrite(m / "model.safetensors", fs::file_size(m / "model.safetensors") - 4,
                   std::string("\0\0\xc0\x7f", 4));
       },
       4, "holds values that are not finite"},
      {"no weights", [](const auto& m) { fs::remove(m / "model.safetensors"); }, 4, "model.safetensors"},
      {"index outside the directory",
       [](const auto& m) {
         fs::rename(m / "model.safetensors", m.parent_path() / "outside.safetensors");
         base::write_file_atomically(m / "model.safetensors.index.json",
                                     R"({"weight_map": {"model.norm.weight": "../outside.safetensors"}})");
       },
       4, "../outside.safetensors"},
      {"absurd width", [](const auto& m) { replace(m / "config.json", ": 32,", ": 9223372036854775807,"); },
       4, "hidden_size is 9223372036854775807"},
      {"no heads",
       [](const auto& m) {
         replace(m / "config.json", "\"num_attention_heads\": 4", "\"num_attention_heads\": 0");
       },
       4, "num_attention_heads"},
      {"another shape than the weights", [](const auto& m) { replace(m / "config.json", ": 32,", ": 64,"); },
       4, "has shape [4096, 32], expected [4096, 64]"},
      {"unknown architecture",
       [](const auto& m) { replace(m / "config.json", "LlamaForCausalLM", "GPT2LMHeadModel"); }, 4,
       "GPT2LMHeadModel"},
      {"an activation that no kernel has",
       [](const auto& m) { replace(m / "config.json", "\"silu\"", "\"relu\""); }, 4,
       "hidden_act is \"relu\", expected \"silu\" or \"gelu_pytorch_tanh\""},
      {"quantized weights",
       [](const auto& m) { replace(m / "config.json", "{", R"({"quantization_config": {"bits": 4},)"); }, 4,
       "would change what the model computes; use the model that was quantised or dequantise it"},
      {"a key of the wrong kind",
       [](const auto& m) {
         replace(m / "config.json", "\"attention_bias\": false", "\"attention_bias\": \"yes\"");
       },
       4, "attention_bias is \"yes\", expected true or false"},
      {"experts", [](const auto& m) { replace(m / "config.json", "{", R"({"num_local_experts": 8,)"); }, 4,
       "a mixture of experts in a LlamaForCausalLM, which is not supported"},
      {"state spaces", as("MambaForCausalLM", "mamba", {{"state_size", 16}}), 4, "state-space layers"},
      {"latent attention", as("DeepseekV3ForCausalLM", "deepseek_v3", {{"kv_lora_rank", 512}}), 4,
       "kv_lora_rank"},
      {"linear attention",
       as("Qwen3ForCausalLM", "qwen3",
          {{"layer_types", {"full_attention", "linear_attention", "full_attention"}}}),
       4, "linear_attention"},
      {"types of other layers", as("Qwen3ForCausalLM", "qwen3", {{"layer_types", {"full_attention"}}}), 4,
       "layer_types names 1 layers"},
      {"two bases of the positions",
       with({{"rope_theta", 5e5}, {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e4}}}}), 4,
       "rope_theta is 10000, but 500000 at the top"},
      {"positions divided by nothing",
       with({{"rope_parameters", {{"rope_type", "linear"}, {"rope_theta", 1e4}, {"factor", 0.0}}}}), 4,
       "factor"},
      {"factors of other positions",
       as("Phi3ForCausalLM", "phi3",
          {{"rope_parameters",
            {{"rope_type", "longrope"},
             {"rope_theta", 1e4},
             {"original_max_position_embeddings", 32},
             {"short_factor", base::Json::array({1.0})},
             {"long_factor", {1.0, 1.0}}}}}),
       4, "have 1 and 2 numbers, expected 4"},
      {"a bias that is not there", with({{"attention_bias", true}}), 4, "q_proj.bias\" is missing"},
      {"a bias that nothing promises",
       [](const auto& m) { add_tensor(m / "model.safetensors", "model.layers.0.self_attn.q_proj.bias"); }, 4,
       "q_proj.bias\" has no place"},
      {"a tensor of a model that sees",
       [](const auto& m) { add_tensor(m / "model.safetensors", "vision_tower.patch_embedding.weight"); }, 4,
       "vision_tower.patch_embedding.weight\" has no place"},
      {"what Git LFS leaves in the place of weights",
       [](const auto& m) { base::write_file_atomically(m / "model.safetensors", lfs_pointer()); }, 4,
       "expected a safetensors file, found a Git LFS pointer; fetch the file itself with git lfs pull"},
      {"what Git LFS leaves in the place of a tokenizer",
       [](const auto& m) { base::write_file_atomically(m / "tokenizer.json", lfs_pointer()); }, 4,
       "expected a tokenizer, found a Git LFS pointer"},
      {"an adapter",
       [](const auto& m) {
         fs::remove(m / "config.json");
         fs::rename(m / "model.safetensors", m / "adapter_model.safetensors");
         base::write_file_atomically(m / "adapter_config.json", R"({"base_model_name_or_path": "org/base"})");
       },
       4, "an adapter (such as LoRA), not a model, made for \"org/base\""},
      {"more blocks than its configuration says",
       [](const auto& m) {
         auto config = base::Json::parse(base::read_file(m / "config.json"));
         configure(m, {{"num_hidden_layers", config.at("num_hidden_layers").template get<int>() - 1}});
       },
       4, "use the config.json that belongs to them, or correct num_hidden_layers"},
      {"configuration that is not JSON", [](const auto& m) { fs::resize_file(m / "config.json", 40); }, 4,
       "config.json"},
      {"configuration nested without end",
       [](const auto& m) { base::write_file_atomically(m / "config.json", std::string(500'000, '[')); }, 4,
       "nested deeper"},
      {"no configuration", [](const auto& m) { fs::remove(m / "config.json"); }, 4, "config.json"},
      {"tokenizer cut off", [](const auto& m) { fs::resize_file(m / "tokenizer.json", 1000); }, 4,
       "tokenizer.json"},
      {"tokenizer with an expression that explodes",
       [](const auto& m) { replace(m / "tokenizer.json", "(?i:'s|'t|", "(a+)+$|(?i:'s|'t|"); }, 4,
       "is not one that Retort knows"},
      {"tokenizer with ids beyond the model",
       [](const auto& m) { replace(m / "tokenizer.json", "\"vocab\": {", "\"vocab\": {\"~~~\": 70000,"); }, 4,
       "70001 ids, the model 4096 rows, so that \"~~~\" (id 70000) has none; take such tokens out"},
      {"tekken with a hole in its ranks",
       [](const auto& m) { replace_tokenizer(m, "tekken.json", tekken_with_a_hole()); }, 4,
       "ranks of vocab have a hole before 1"},
      {"SentencePiece of another kind",
       [](const auto& m) { replace_tokenizer(m, "tokenizer.model", unigram_pieces()); }, 4,
       "is of kind unigram, expected bpe"},
      {"no tokenizer", [](const auto& m) { fs::remove(m / "tokenizer.json"); }, 4, "has no tokenizer.json"},
      {"no directory", [](const auto& m) { fs::remove_all(m); }, 4, "no such directory"},
  };
  return cases;
}

TEST(BadModel, IsRefusedByEvalInOneSentence) {
  for (const auto& bad : bad_models()) {
    SCOPED_TRACE(bad.what);
    const TinyProject project;
    copy_model(project, "bad");
    bad.damage(project.path("bad"));
    expect_refusal(project,
                   {"eval", "bad", "--text", "text.txt", "--context", "64", "--per-token", "out.jsonl"},
                   bad.code, bad.culprit);
  }
}

// It reads models as eval does, so every third shows it.
TEST(BadModel, IsRefusedByARunThatThenLeavesNoRunDirectory) {
  int number = 0;
  for (const auto& bad : bad_models()) {
    if (number++ % 3 != 0) continue;
    SCOPED_TRACE(bad.what);
    const TinyProject project;
    copy_model(project, "bad");
    bad.damage(project.path("bad"));
    project.write_recipe({finetune_stage("./bad")});
    expect_refusal(project, {"run", "recipe.yaml", "--run-dir", "deep/run"}, bad.code, bad.culprit);
  }
}

TEST(BadModel, DoesNotTakeAPromptOrContextLongerThanItWasMadeFor) {
  const TinyProject project;
  copy_model(project, "m");
  std::string prompt;
  for (int i = 0; i < 200; ++i) prompt += "the package ";
  expect_refusal(project, {"generate", "m", "--prompt", prompt}, 2, "made for at most 128");
  expect_refusal(project, {"eval", "m", "--text", "text.txt", "--context", "4096"}, 2,
                 "made for at most 128");
}

// The same model with 128 rows more in its head that are no tokens.
void widen_vocabulary(const fs::path& model) {
  replace(model / "config.json", "\"vocab_size\": 4096", "\"vocab_size\": 4224");
  WeightFile file(model / "model.safetensors");
  const std::size_t more = 128 * 32 * 4;
  const std::size_t end = file.header.at("model.embed_tokens.weight").at("data_offsets")[1];
  for (auto& [name, tensor] : file.header.items()) {
    if (name == "__metadata__") continue;
    auto& offsets = tensor.at("data_offsets");
    if (offsets[0] >= end) offsets[0] = offsets[0].get<std::size_t>() + more;
    if (offsets[1] >= end) offsets[1] = offsets[1].get<std::size_t>() + more;
  }
  file.header.at("model.embed_tokens.weight").at("shape")[0] = 4224;
  file.body.insert(end, more, '\0');
  file.write(model / "model.safetensors");
}

// As many tokens, two of which change places.
void exchange_tokens(const fs::path& tokenizer, int first, int second) {
  auto json = base::Json::parse(base::read_file(tokenizer));
  for (auto& [token, id] : json["model"]["vocab"].items()) {
    if (id == first)
      id = second;
    else if (id == second)
      id = first;
  }
  base::write_file_atomically(tokenizer, json.dump());
}

TEST(BadModel, WithAnotherVocabularyIsNoTeacher) {
  const TinyProject project;
  copy_model(project, "m");
  copy_model(project, "other");
  exchange_tokens(project.path("other/tokenizer.json"), 300, 1700);
  const char* culprit = "found the id 300 to be \"";
  expect_refusal(project, {"eval", "m", "--text", "text.txt", "--teacher", "other"}, 4, culprit);
  const std::string more = ", data: [text], tokens: 512, packing: {sequence_length: 64}}";
  for (const std::string& stage :
       {"{name: s, kind: distill, from: ./m, teacher: ./other" + more,
        "{name: s, kind: select, models: [./m, ./other], teacher: ./m" + more,
        std::string("{name: s, kind: evaluate, models: [./m, ./other], data: [text], context: 64}")}) {
    project.write_recipe({stage});
    expect_refusal(project, {"run", "recipe.yaml", "--run-dir", "run"}, 4, culprit);
    expect_refusal(project, {"run", "recipe.yaml", "--run-dir", "run", "--dry-run"}, 4, culprit);
  }
}

TEST(BadModel, WithRowsThatAreNoTokensComparesByItsTokens) {
  const TinyProject project;
  copy_model(project, "m");
  copy_model(project, "wide");
  widen_vocabulary(project.path("wide"));
  for (const auto& [model, teacher] : {std::pair{"m", "wide"}, std::pair{"wide", "m"}}) {
    const auto eval = project.run({"eval", model, "--text", "text.txt", "--teacher", teacher, "--json"});
    ASSERT_EQ(eval.code, 0) << eval.err;
    const auto source = base::Json::parse(eval.out).at("models")[0].at("sources")[0];
    EXPECT_NEAR(source.at("kl").get<double>(), 0, 1e-6) << "of its tokens both say the same";
    EXPECT_EQ(source.at("top1_agreement"), 1);
    EXPECT_GT(std::abs(source.at("nll_difference").get<double>()), 1e-6) << "each loss is over its own head";
    project.write_recipe(
        {std::string("{name: s, kind: distill, from: ./") + model + ", teacher: ./" + teacher +
             ", data: [text], tokens: 512, packing: {sequence_length: 64}, evaluate_tokens: 256}",
         std::string("{name: scores, kind: evaluate, models: [s, ./") + teacher + "], teacher: ./" + teacher +
             ", data: [text], context: 64}"});
    fs::remove_all(project.path("run"));
    const auto run = project.run_recipe();
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(base::Json::parse(base::read_file(project.path("run/models/s/config.json"))).at("vocab_size"),
              std::string(model) == "wide" ? 4224 : 4096);
  }
}

}  // namespace
}  // namespace retort::test
