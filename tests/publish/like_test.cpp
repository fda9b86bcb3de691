// Exports --like the file that a model came from: what was not changed lies in the same blocks again.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>

#include "publish/configs_for_tests.h"
#include "publish/counted_model.h"
#include "retort/io/gguf.h"
#include "retort/io/gguf_quantise.h"
#include "retort/io/gguf_tokenizer_write.h"
#include "retort/io/model_directory.h"
#include "retort/publish/form.h"
#include "retort/publish/gguf_keys.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

namespace fs = std::filesystem;
using architecture::Config;
using base::Json;
using Bytes = std::vector<std::byte>;
using io::GgmlType;

constexpr std::array kAllTypes{GgmlType::f16,  GgmlType::bf16, GgmlType::q4_0, GgmlType::q4_1,
                               GgmlType::q5_0, GgmlType::q5_1, GgmlType::q8_0, GgmlType::q2_k,
                               GgmlType::q3_k, GgmlType::q4_k, GgmlType::q5_k, GgmlType::q6_k};

// A block of 256 values in each row, and two in those of an MLP's last matrix.
Config wide(const char* architecture, const Json& more = Json::object()) {
  Json keys = {{"vocab_size", 4096},     {"hidden_size", 256},     {"intermediate_size", 512},
               {"head_dim", 32},         {"bos_token_id", 0},      {"eos_token_id", 0},
               {"num_hidden_layers", 3}, {"pad_token_id", nullptr}};
  for (const auto& [key, value] : more.items()) keys[key] = value;
  return test::config_of(architecture, keys);
}

// Where the halves of a block lie that its integers are multiplied by.
std::vector<std::size_t> halves_of(GgmlType type) {
  switch (type) {
    case GgmlType::q4_1:
    case GgmlType::q5_1:
    case GgmlType::q4_k:
    case GgmlType::q5_k:
      return {0, 2};
    case GgmlType::q2_k:
      return {80, 82};
    case GgmlType::q3_k:
      return {108};
    case GgmlType::q6_k:
      return {208};
    default:
      return {0};
  }
}

// Blocks that no rounding makes: any integers with any scales.
Bytes any_blocks(GgmlType type, std::size_t values, std::mt19937& random) {
  const auto block = io::block_of(type);
  Bytes bytes(values / block.values * block.bytes);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random() & 0xFF);
  for (std::size_t at = 0; at < bytes.size(); at += block.bytes) {
    if (type == GgmlType::f32) {
      const float value = static_cast<float>(random() % 4001) / 1000.0F - 1.0F;
      std::memcpy(bytes.data() + at, &value, sizeof value);
      continue;
    }
    for (const std::size_t half : halves_of(type)) {  // small and finite
      const auto bits = static_cast<std::uint16_t>(0x2000U + random() % 0x800U);
      std::memcpy(bytes.data() + at + half, &bits, sizeof bits);
    }
  }
  return bytes;
}

// A file of a model as another program has made it, its matrices in one type.
void write_any(const Config& config, GgmlType type, const base::Path& file) {
  const base::Path tokenizer = test::source() / "models/europa-5m/tokenizer.json";
  const test::TemporaryDirectory directory;
  test::write_counted(config, directory.path());
  const auto model = io::ModelDirectory::open(directory.path());
  const publish::PaddedWeights weights(config, config, model);
  const auto& architecture = publish::gguf_architecture_of(config, "test");
  publish::QuantisedValues counted;
  auto tensors =
      publish::gguf_tensors(config, weights, architecture,
                            publish::gguf_types("f32", io::Dtype::f32, config, "test"), counted, "test");
  std::mt19937 random(7);
  for (auto& tensor : tensors) {
    const auto values = static_cast<std::size_t>(
        std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies()));
    if (tensor.name.starts_with("rope")) {  // as another program rounds them
      tensor.produce = [own = tensor.produce](const io::ByteSink& sink) {
        own([&](std::span<const std::byte> bytes) {
          Bytes other(bytes.begin(), bytes.end());
          other[other.size() - 8] ^= std::byte{1};
          sink(other);
        });
      };
      continue;
    }
    if (tensor.shape.size() > 1) tensor.type = type;
    tensor.produce = [bytes = any_blocks(tensor.type, values, random)](const io::ByteSink& sink) {
      sink(bytes);
    };
  }
  io::GgufEntries entries = {{"general.architecture", std::string(architecture.name)}};
  for (auto& entry : publish::gguf_keys(config, architecture, "test")) entries.push_back(std::move(entry));
  const Json words = base::parse_json(base::read_file(tokenizer), {.max_bytes = std::size_t{1} << 26});
  for (auto& entry : io::gguf_tokenizer_entries(words, config.vocab_size, {.bos = 0, .eos = {0}}, "test"))
    entries.push_back(std::move(entry));
  io::write_gguf(file, entries, tensors);
}

std::map<std::string, Bytes> tensors_in(const base::Path& path) {
  const auto file = io::GgufFile::open(path);
  std::map<std::string, Bytes> all;
  for (const auto& [name, tensor] : file.tensors()) {
    const auto bytes = file.bytes(tensor);
    all[base::join(name, " ", io::name(tensor.type))] = {bytes.begin(), bytes.end()};
  }
  return all;
}

// Compares without printing megabytes.
void expect_equal_tensors(const base::Path& before, const base::Path& after, const std::string& what) {
  const auto first = tensors_in(before), second = tensors_in(after);
  ASSERT_EQ(first.size(), second.size()) << what;
  for (const auto& [name, bytes] : first) {
    ASSERT_TRUE(second.contains(name)) << what << ": " << name;
    EXPECT_TRUE(second.at(name) == bytes) << what << ": " << name;
  }
}

class LikeItself : public testing::Test {
 protected:
  base::Path file() const { return directory_.path() / "a.gguf"; }
  publish::WrittenForm exported(const base::Path& model, std::vector<std::int64_t> numbers = {}) const {
    const publish::Form form({.like = file().string()}, model, std::move(numbers));
    return form.write(out_.path());
  }

  test::TemporaryDirectory directory_, out_;
};

TEST_F(LikeItself, HasTheSameBytesInEveryTypeThatIsRead) {
  for (const GgmlType type : kAllTypes) {
    write_any(wide("LlamaForCausalLM", {{"rope_scaling",
                                         {{"rope_type", "llama3"},
                                          {"factor", 8.0},
                                          {"low_freq_factor", 1.0},
                                          {"high_freq_factor", 4.0},
                                          {"original_max_position_embeddings", 8192}}}}),
              type, file());
    const auto made = exported(file());
    expect_equal_tensors(file(), made.model, std::string(io::name(type)));
    EXPECT_EQ(made.values->kept, made.values->all) << io::name(type);
    EXPECT_EQ(made.values->all > 0, io::is_quantised(type)) << io::name(type);
  }
}

TEST_F(LikeItself, HasTheSameBytesInEveryArchitecture) {
  const Json gemma{{"query_pre_attn_scalar", 32}, {"sliding_window", 16}};
  for (const auto& [architecture, keys] :
       std::vector<std::pair<const char*, Json>>{{"Qwen2ForCausalLM", Json::object()},
                                                 {"Qwen3ForCausalLM", Json::object()},
                                                 {"Phi3ForCausalLM", {{"sliding_window", nullptr}}},
                                                 {"Gemma2ForCausalLM", gemma},
                                                 {"Gemma3ForCausalLM", gemma}}) {
    write_any(wide(architecture, keys), GgmlType::q3_k, file());
    expect_equal_tensors(file(), exported(file()).model, architecture);
  }
}

// A part of a tensor: rows and columns from the given ones on.
struct Slice {
  std::int64_t row = 0, rows = 0, col = 0, cols = 0;
};

Slice slice_of(const std::string& name, std::span<const std::int64_t> shape) {
  if (name.ends_with("gate_proj.weight") || name.ends_with("up_proj.weight")) return {256, 256, 0, 256};
  if (name.ends_with("down_proj.weight")) return {0, 256, 256, 256};
  if (shape.size() == 1) return {0, 1, 0, shape[0]};
  return {0, shape[0], 0, shape[1]};
}

// As Retort saves a model of four bits after pruning: BF16, without the first of its blocks and without the
// first half of the channels in the others.  `change` may touch values.
void write_pruned(const base::Path& gguf, const base::Path& directory,
                  const std::function<void(const std::string&, std::vector<float>&)>& change) {
  const auto source = io::ModelDirectory::open(gguf);
  Config config = architecture::read_config(gguf);
  config.blocks.erase(config.blocks.begin());
  for (auto& block : config.blocks) test::set_width(block, 256);
  std::vector<io::TensorToWrite> tensors;
  std::vector<std::unique_ptr<Bytes>> held;
  for (const auto& unit : architecture::make_layout(config).units)
    for (const auto& tensor : unit.tensors) {
      std::string before = tensor.stored.name;
      for (int block = 2; block > 0; --block)  // what is block 1 was block 2
        if (const auto at = before.find(base::join("layers.", block - 1, ".")); at != std::string::npos) {
          before[at + 7] = static_cast<char>('0' + block);
          break;
        }
      const auto view = source.find(before);
      const Slice slice = slice_of(before, view.shape);
      const std::int64_t all_cols = view.shape.back();
      std::vector<float> values;
      for (std::int64_t row = slice.row; row < slice.row + slice.rows; ++row) {
        const auto* first = reinterpret_cast<const float*>(view.bytes.data()) + row * all_cols + slice.col;
        values.insert(values.end(), first, first + slice.cols);
      }
      change(tensor.stored.name, values);
      held.push_back(std::make_unique<Bytes>(values.size() * 2));
      io::quantise(GgmlType::bf16, values, *held.back());
      tensors.push_back(
          io::tensor_of_bytes(tensor.stored.name, io::Dtype::bf16, tensor.stored_shape(), *held.back()));
    }
  base::write_file_atomically(directory / "config.json",
                              architecture::hf_config_json(config, {io::Dtype::bf16, {}}));
  io::write_weights(directory, tensors);
  fs::copy_file(test::source() / "models/europa-5m/tokenizer.json", directory / "tokenizer.json");
}

// Rows of `slice` of the tensor of a file.
Bytes sliced(const io::GgufFile& file, const std::string& name, const Slice& slice) {
  const auto& tensor = file.tensors().at(name);
  const auto block = io::block_of(tensor.type);
  const auto in_bytes = [&](std::int64_t values) {
    return static_cast<std::size_t>(values) / block.values * block.bytes;
  };
  const auto bytes = file.bytes(tensor);
  Bytes taken;
  for (std::int64_t row = slice.row; row < slice.row + slice.rows; ++row) {
    const auto part = bytes.subspan(in_bytes(row * tensor.shape.back() + slice.col), in_bytes(slice.cols));
    taken.insert(taken.end(), part.begin(), part.end());
  }
  return taken;
}

TEST_F(LikeItself, RowsAndColumnsThatPruningLeftKeepTheirBlocks) {
  for (const GgmlType type : {GgmlType::q4_k, GgmlType::q2_k, GgmlType::q8_0}) {
    write_any(wide("LlamaForCausalLM"), type, file());
    const test::TemporaryDirectory pruned;
    write_pruned(file(), pruned.path(), [](const std::string&, std::vector<float>&) {});
    const auto made = exported(pruned.path(), {1, 2});
    EXPECT_EQ(made.values->kept, made.values->all);
    const auto before = io::GgufFile::open(file()), after = io::GgufFile::open(made.model);
    for (const auto& [own, was, slice] : std::vector<std::tuple<const char*, const char*, Slice>>{
             {"token_embd.weight", "token_embd.weight", {0, 4096, 0, 256}},
             {"blk.0.attn_q.weight", "blk.1.attn_q.weight", {0, 256, 0, 256}},
             {"blk.0.ffn_gate.weight", "blk.1.ffn_gate.weight", {256, 256, 0, 256}},
             {"blk.1.ffn_up.weight", "blk.2.ffn_up.weight", {256, 256, 0, 256}},
             {"blk.1.ffn_down.weight", "blk.2.ffn_down.weight", {0, 256, 256, 256}}}) {
      const auto& tensor = after.tensors().at(own);
      EXPECT_EQ(tensor.type, type) << own;
      const auto bytes = after.bytes(tensor);
      EXPECT_TRUE(std::ranges::equal(bytes, sliced(before, was, slice))) << io::name(type) << " " << own;
    }
  }
}

TEST_F(LikeItself, OnlyBlocksThatWereChangedAreRounded) {
  write_any(wide("LlamaForCausalLM"), GgmlType::q4_k, file());
  const test::TemporaryDirectory pruned;
  write_pruned(file(), pruned.path(), [](const std::string& name, std::vector<float>& values) {
    if (name == "model.layers.0.mlp.up_proj.weight") values[3 * 256 + 100] += 0.5F;
  });
  const auto made = exported(pruned.path(), {1, 2});
  EXPECT_EQ(made.values->all - made.values->kept, 256);
  const auto before = io::GgufFile::open(file()), after = io::GgufFile::open(made.model);
  const auto then = sliced(before, "blk.1.ffn_up.weight", {256, 256, 0, 256});
  const auto now = after.bytes(after.tensors().at("blk.0.ffn_up.weight"));
  ASSERT_EQ(now.size(), then.size());
  const std::size_t block = io::block_of(GgmlType::q4_k).bytes;
  for (std::size_t i = 0; i < now.size() / block; ++i)
    EXPECT_EQ(std::memcmp(now.data() + i * block, then.data() + i * block, block) == 0, i != 3) << i;
}

TEST_F(LikeItself, ATypeThatIsOnlyReadStaysWhereAllBlocksDo) {
  write_any(wide("LlamaForCausalLM"), GgmlType::q2_k, file());
  const test::TemporaryDirectory pruned;
  write_pruned(file(), pruned.path(), [](const std::string& name, std::vector<float>& values) {
    if (name == "model.layers.0.mlp.up_proj.weight") values[0] += 0.5F;
  });
  const auto after = io::GgufFile::open(exported(pruned.path(), {1, 2}).model);
  EXPECT_EQ(after.tensors().at("blk.0.ffn_up.weight").type, GgmlType::q4_k);
  EXPECT_EQ(after.tensors().at("blk.1.ffn_up.weight").type, GgmlType::q2_k);
}

TEST_F(LikeItself, AValueThatIsNoNumberIsStillRefused) {
  write_any(wide("LlamaForCausalLM"), GgmlType::q8_0, file());
  auto bytes = base::read_file(file());
  const auto opened = io::GgufFile::open(file());
  const auto tensor = opened.bytes(opened.tensors().at("blk.1.ffn_up.weight"));
  const std::string block(reinterpret_cast<const char*>(tensor.data()), 34);
  const auto at = bytes.find(block);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1] = '\x7E';  // a half that is no number
  base::write_file_atomically(file(), bytes);
  EXPECT_SAYS(test::message_of<base::ModelError>([&] { (void)exported(file()); }),
              "tensor \"model.layers.1.mlp.up_proj.weight\"");
}

}  // namespace
}  // namespace retort
