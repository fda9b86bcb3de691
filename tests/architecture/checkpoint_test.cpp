#include "retort/architecture/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

#include "configs_for_tests.h"
#include "retort/architecture/counts.h"
#include "retort/architecture/hf_config.h"
#include "retort/architecture/layout.h"
#include "retort/base/error.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::architecture {
namespace {

using base::Json;
using test::message_of;
using test::small_config;

// The tensors of a configuration, all zero, as they would be written.
std::map<std::string, io::TensorToWrite> zero_tensors(const Config& config) {
  static const std::vector<std::byte> kZeros(1 << 20);
  std::map<std::string, io::TensorToWrite> tensors;
  for (const Unit& unit : make_layout(config).units)
    for (const Tensor& tensor : unit.tensors)
      tensors[tensor.name] =
          io::tensor_of_bytes(tensor.name, io::Dtype::bf16, tensor.shape,
                              std::span(kZeros).first(static_cast<std::size_t>(2 * tensor.numel)));
  return tensors;
}

using Change = std::function<void(std::map<std::string, io::TensorToWrite>&)>;

void write_model(const Config& config, const Change& change, const std::filesystem::path& directory) {
  auto tensors = zero_tensors(config);
  change(tensors);
  std::vector<io::TensorToWrite> list;
  for (const auto& [name, tensor] : tensors) list.push_back(tensor);
  base::write_file_atomically(directory / "config.json", hf_config_json(config));
  io::write_weights(directory, list);
}

void check(const Config& config, const Change& change) {
  const test::TemporaryDirectory directory;
  write_model(config, change, directory.path());
  check_tensors(config, io::ModelDirectory::open(directory.path()));
}

std::string refusal(const Config& config, const Change& change) {
  return message_of<base::ModelError>([&] { check(config, change); });
}

// The weights of one configuration beside another.
std::string refusal_of(const Config& config, const std::function<void(Config&)>& change) {
  const test::TemporaryDirectory directory;
  write_model(
      config, [](auto&) {}, directory.path());
  Config other = config;
  change(other);
  const auto model = io::ModelDirectory::open(directory.path());
  return message_of<base::ModelError>([&] { check_tensors(other, model); });
}

TEST(Checkpoint, AcceptsExactlyTheTensorsOfTheLayout) {
  EXPECT_NO_THROW(check(small_config(), [](auto&) {}));
  EXPECT_NO_THROW(check(small_config(true), [](auto&) {}));
}

// Of the head beside a tied embedding, and the frequencies of a block.
void add_what_follows(std::map<std::string, io::TensorToWrite>& tensors) {
  auto head = tensors["model.embed_tokens.weight"];
  head.name = "lm_head.weight";
  tensors[head.name] = head;
  tensors["rotary"] =
      io::tensor_of_bytes("model.layers.0.self_attn.rotary_emb.inv_freq", io::Dtype::f32, {0}, {});
}

TEST(Checkpoint, IgnoresWhatFollowsFromTheConfigurationAndListsIt) {
  const test::TemporaryDirectory directory;
  write_model(small_config(true), add_what_follows, directory.path());
  const auto model = io::ModelDirectory::open(directory.path());
  std::vector<std::string> notes;
  const Config config = read_config(directory.path(), &notes);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_TRUE(notes.empty());
  EXPECT_NO_THROW(check_tensors(config, model));
  const auto unread = unread_tensors(config, model);
  ASSERT_EQ(unread.size(), 2U);
  EXPECT_EQ(unread.at("the head is the embedding, whose values it has"),
            std::vector<std::string>{"lm_head.weight"});
  EXPECT_EQ(unread.at("the rotary frequencies follow from the configuration"),
            std::vector<std::string>{"model.layers.0.self_attn.rotary_emb.inv_freq"});
  notes = notes_on_files(config, model);
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_SAYS(notes[0], "not read is \"lm_head.weight\": the head is the embedding");
}

TEST(Checkpoint, UntiesAModelWhoseFileHasAHeadOfItsOwn) {
  static const std::vector<std::byte> kOnes(1 << 20, std::byte{0x3F});
  for (const bool by_type : {false, true}) {
    const test::TemporaryDirectory directory;
    write_model(
        small_config(true),
        [&](auto& tensors) {
          const auto shape = tensors["model.embed_tokens.weight"].shape;
          const auto count = static_cast<std::size_t>(shape[0] * shape[1]);
          tensors["lm_head.weight"] =
              io::tensor_of_bytes("lm_head.weight", by_type ? io::Dtype::f32 : io::Dtype::bf16, shape,
                                  std::span(kOnes).first(count * (by_type ? 4 : 2)));
        },
        directory.path());
    const auto model = io::ModelDirectory::open(directory.path());
    std::vector<std::string> notes;
    const Config config = read_config(directory.path(), &notes);
    EXPECT_FALSE(config.tie_word_embeddings);
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_SAYS(notes[0], "lm_head.weight differs from the embedding; the head is read as it is");
    EXPECT_NO_THROW(check_tensors(config, model));
    EXPECT_TRUE(unread_tensors(config, model).empty());
    EXPECT_SAYS(message_of<base::ModelError>([&] { check_tensors(small_config(true), model); }),
                "\"lm_head.weight\" differs from the embedding");
  }
}

TEST(CheckpointOracle, TiesAndUntiesHeadsAsTransformersDoes) {
  const auto heads = test::oracles("architecture") / "heads";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(heads)) {
    SCOPED_TRACE(entry.path().filename());
    const Json expected = base::parse_json(base::read_file(entry.path() / "expected.json"));
    const Config config = read_config(entry.path());
    EXPECT_EQ(config.tie_word_embeddings, expected["tied"].get<bool>());
    EXPECT_NO_THROW(check_tensors(config, io::ModelDirectory::open(entry.path())));
    EXPECT_EQ(num_parameters(config), expected["parameters"].get<std::int64_t>());
    ++count;
  }
  EXPECT_EQ(count, 5);
}

TEST(Checkpoint, SaysWhatIsThereInThePlaceOfATensor) {
  const auto renamed = [](const char* prefix) {
    return [prefix](auto& tensors) {
      for (auto& [name, tensor] : tensors) tensor.name = prefix + name;
    };
  };
  EXPECT_SAYS(refusal(small_config(), renamed("_orig_mod.")),
              "\"_orig_mod.model.embed_tokens.weight\" is there, as written by torch.compile; take "
              "\"_orig_mod.\" off the names");
  EXPECT_SAYS(refusal(small_config(), renamed("base_model.model.")), "adapter is not merged");
  EXPECT_SAYS(refusal(small_config(), renamed("student.")),
              "\"student.model.embed_tokens.weight\" is there; take \"student.\" off the names");
  EXPECT_SAYS(
      refusal(small_config(), [](auto& t) { t["model.embed_tokens.weight"].name = "tok_embeddings.weight"; }),
      "as in Meta's and Mistral's own files");
  EXPECT_SAYS(refusal(small_config(),
                      [](auto& t) {
                        t["model.layers.0.mlp.up_proj.weight"].name = "model.layers.0.mlp.up_proj.qweight";
                      }),
              "its values are quantised there");
}

TEST(Checkpoint, SaysHowManyBlocksThereAre) {
  auto config = small_config();
  const auto more = config.blocks.size();
  EXPECT_SAYS(refusal_of(config, [](Config& c) { c.blocks.pop_back(); }),
              base::join("the weights have ", more, " blocks: use the config.json that belongs to them"));
}

TEST(Checkpoint, RefusesAMissingTensor) {
  EXPECT_SAYS(refusal(small_config(), [](auto& t) { t.erase("model.layers.2.mlp.up_proj.weight"); }),
              "\"model.layers.2.mlp.up_proj.weight\" is missing");
  EXPECT_SAYS(refusal(small_config(), [](auto& t) { t.erase("lm_head.weight"); }), "tie_word_embeddings");
}

TEST(Checkpoint, RefusesAnotherShapeAndSaysBoth) {
  const std::string message = refusal(small_config(), [](auto& t) {
    std::swap(t["model.layers.0.mlp.up_proj.weight"].shape[0],
              t["model.layers.0.mlp.up_proj.weight"].shape[1]);
  });
  EXPECT_SAYS(message, "has shape [32, 88], expected [88, 32]");
}

TEST(Checkpoint, RefusesTensorsThatHaveNoPlace) {
  EXPECT_SAYS(refusal(small_config(),
                      [](auto& t) {
                        t["bias"] = io::tensor_of_bytes("model.layers.0.self_attn.q_proj.bias",
                                                        io::Dtype::bf16, {0}, {});
                      }),
              "\"model.layers.0.self_attn.q_proj.bias\" has no place");
}

TEST(Checkpoint, RefusesATensorOfVisionInAModelOfText) {
  const auto message = refusal(small_config(), [](auto& t) {
    t["vision"] = io::tensor_of_bytes("vision_tower.patch_embedding.weight", io::Dtype::bf16, {0}, {});
  });
  EXPECT_SAYS(message, "\"vision_tower.patch_embedding.weight\" has no place");
}

TEST(Checkpoint, RefusesAModelWithoutTheBiasThatItsConfigurationPromises) {
  auto config = small_config();
  config.architecture = "Qwen2ForCausalLM";
  for (auto& block : config.blocks) block.attention->kind.query_key_value_bias = true;
  EXPECT_NO_THROW(check(config, [](auto&) {}));
  EXPECT_SAYS(refusal(config, [](auto& t) { t.erase("model.layers.1.self_attn.k_proj.bias"); }),
              "\"model.layers.1.self_attn.k_proj.bias\" is missing");
}

TEST(Checkpoint, RefusesDtypesThatAreNoWeights) {
  EXPECT_SAYS(refusal(small_config(), [](auto& t) { t["model.norm.weight"].dtype = io::Dtype::i16; }),
              "dtype I16");
}

void expect_opens(const std::filesystem::path& directory, std::int64_t parameters) {
  SCOPED_TRACE(directory.string());
  const auto model = io::ModelDirectory::open(directory);
  const Config config = parse_hf_config(model.config_text(), directory.string());
  EXPECT_NO_THROW(check_tensors(config, model));
  if (parameters > 0) {
    EXPECT_EQ(num_parameters(config), parameters);
  }
}

TEST(CheckpointOracle, OpensWhatTransformersSaves) {
  const auto models = test::oracles("architecture") / "models";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(models)) {
    const Json expected = base::parse_json(base::read_file(entry.path() / "expected.json"));
    expect_opens(entry.path(), expected["parameters"].get<std::int64_t>());
    const Layout layout = make_layout(read_config(entry.path()));
    for (const auto& [name, shape] : expected["shapes"].items()) {
      const auto place = layout.find(name);
      ASSERT_TRUE(place) << name;
      EXPECT_EQ(layout.at(*place).shape, shape.get<std::vector<std::int64_t>>()) << name;
    }
    ++count;
  }
  EXPECT_EQ(count, 3);
}

TEST(CheckpointOracle, KnowsTheDtypeOfTheWeights) {
  const auto models = test::oracles("architecture") / "models";
  const auto dtype_of = [&](const char* name) {
    return weight_dtype(read_config(models / name), io::ModelDirectory::open(models / name));
  };
  EXPECT_EQ(dtype_of("llama_untied"), io::Dtype::f32);
  EXPECT_EQ(dtype_of("llama_tied_bf16"), io::Dtype::bf16);
  EXPECT_EQ(dtype_of("mistral_sharded_f16"), io::Dtype::f16);
}

struct DtypeFound {
  io::Dtype dtype;
  std::vector<std::string> notes;
};

// bfloat16 matrices with norms of another type, beside a config.json that says `declared`.
DtypeFound dtype_with(io::Dtype norms, const Json& declared) {
  static const std::vector<std::byte> kZeros(1 << 10);
  const test::TemporaryDirectory directory;
  const Config config = small_config();
  std::vector<io::TensorToWrite> list;
  for (auto& [name, tensor] : zero_tensors(config))
    list.push_back(tensor.shape.size() == 2
                       ? tensor
                       : io::tensor_of_bytes(name, norms, tensor.shape,
                                             std::span(kZeros).first(io::item_bytes(norms) * 32)));
  Json json = Json::parse(hf_config_json(config));
  json.erase("torch_dtype");
  json["dtype"] = declared;
  base::write_file_atomically(directory / "config.json", json.dump());
  io::write_weights(directory.path(), list);
  DtypeFound found{};
  found.dtype = weight_dtype(config, io::ModelDirectory::open(directory.path()), &found.notes);
  return found;
}

TEST(Checkpoint, TakesTheDtypeThatAllWeightsHave) {
  const auto agreed = dtype_with(io::Dtype::bf16, "bfloat16");
  EXPECT_EQ(agreed.dtype, io::Dtype::bf16);
  EXPECT_TRUE(agreed.notes.empty());
  const auto silent = dtype_with(io::Dtype::bf16, nullptr);
  EXPECT_EQ(silent.dtype, io::Dtype::bf16);
  EXPECT_TRUE(silent.notes.empty());
  const auto contradicted = dtype_with(io::Dtype::bf16, "float32");
  EXPECT_EQ(contradicted.dtype, io::Dtype::bf16);
  ASSERT_EQ(contradicted.notes.size(), 1U);
  EXPECT_SAYS(contradicted.notes[0], "config.json says float32, but all weights are bfloat16");
}

TEST(Checkpoint, TakesTheDtypeOfTheConfigurationWhereWeightsDifferAndSaysSo) {
  const auto said = dtype_with(io::Dtype::f32, "float32");
  EXPECT_EQ(said.dtype, io::Dtype::f32);
  ASSERT_EQ(said.notes.size(), 1U);
  EXPECT_SAYS(said.notes[0], "7 tensors of float32, 23 tensors of bfloat16; config.json says float32");
  for (const Json& unknown : {Json(nullptr), Json("int8"), Json(16)}) {
    const auto most = dtype_with(io::Dtype::f32, unknown);
    EXPECT_EQ(most.dtype, io::Dtype::bf16);
    ASSERT_EQ(most.notes.size(), 1U);
    EXPECT_SAYS(most.notes[0], "most values are bfloat16");
  }
}

TEST(Checkpoint, OpensTheEmbeddedModel) {
  expect_opens(test::source() / "models" / "europa-5m", 5'509'824);
}

TEST(CheckpointSharedData, OpensEveryModel) {
  RETORT_SHARED_DATA_OR_SKIP(data);
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data / "models")) {
    expect_opens(entry.path(), 0);
    ++count;
  }
  EXPECT_GE(count, 3);
}

}  // namespace
}  // namespace retort::architecture
