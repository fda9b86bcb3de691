#include "retort/io/model_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "files_for_tests.h"
#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/io/tokenizer_file.h"
#include "support/temporary_directory.h"

namespace retort::io {
namespace {

namespace fs = std::filesystem;
using base::ModelError;
using test::as_bytes;
using test::message_of;
using test::write_file;

TensorToWrite tensor(const std::string& name, std::string_view four_bytes) {
  return tensor_of_bytes(name, Dtype::f32, {1}, as_bytes(four_bytes));
}

std::string text_of(const TensorView& view) {
  return {reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size()};
}

// A directory with config.json, an index and the shards one.safetensors (a, b) and two.safetensors (c).
class ShardedModel : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(model());
    write_file(model() / "config.json", "{}");
    write_safetensors(model() / "one.safetensors", std::vector{tensor("a", "aaaa"), tensor("b", "bbbb")});
    write_safetensors(model() / "two.safetensors", std::vector{tensor("c", "cccc")});
    index(R"({"a":"one.safetensors","b":"one.safetensors","c":"two.safetensors"})");
  }
  fs::path model() const { return root_ / "model"; }
  void index(const std::string& weight_map) {
    write_file(model() / "model.safetensors.index.json",
               R"({"metadata":{},"weight_map":)" + weight_map + "}");
  }
  std::string refusal() {
    return message_of<ModelError>([&] { ModelDirectory::open(model()); });
  }

  test::TemporaryDirectory root_;
};

TEST_F(ShardedModel, FindsEveryTensorInItsShard) {
  const auto opened = ModelDirectory::open(model());
  EXPECT_EQ(opened.names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(text_of(opened.find("c")), "cccc");
  EXPECT_EQ(opened.find("a").shape[0], 1);
  EXPECT_EQ(opened.total_bytes(), 12U);
  EXPECT_EQ(opened.weight_files().size(), 2U);
  EXPECT_EQ(opened.metadata().at("format"), "pt");
  EXPECT_FALSE(opened.contains("d"));
  EXPECT_THROW(opened.find("d"), ModelError);
}

TEST_F(ShardedModel, RefusesShardsOutsideTheDirectory) {
  fs::copy_file(model() / "two.safetensors", root_ / "two.safetensors");
  for (const std::string& path : std::vector<std::string>{
           "../two.safetensors", "./two.safetensors", "sub/../two.safetensors", "", "..",
           (root_ / "two.safetensors").string(), "two.safetensors/", "two.bin", "a\\u0000.safetensors"}) {
    index(R"({"a":"one.safetensors","b":"one.safetensors","c":")" + path + "\"}");
    EXPECT_SAYS(refusal(), "expected the plain name");
  }
}

TEST_F(ShardedModel, RefusesLinksOutOfTheDirectory) {
  fs::rename(model() / "two.safetensors", root_ / "two.safetensors");
  fs::create_symlink("../two.safetensors", model() / "two.safetensors");
  EXPECT_SAYS(refusal(), "outside the model directory");
}

TEST_F(ShardedModel, FollowsLinksInsideTheDirectory) {
  fs::rename(model() / "two.safetensors", model() / "blob");
  fs::create_symlink("blob", model() / "two.safetensors");
  EXPECT_EQ(text_of(ModelDirectory::open(model()).find("c")), "cccc");
}

TEST_F(ShardedModel, RefusesABrokenLinkAndAMissingShard) {
  fs::remove(model() / "two.safetensors");
  EXPECT_SAYS(refusal(), "is missing");
  fs::create_symlink("nowhere", model() / "two.safetensors");
  EXPECT_SAYS(refusal(), "leads nowhere");
}

TEST_F(ShardedModel, RefusesAPipeInThePlaceOfAShard) {
  fs::remove(model() / "two.safetensors");
  ASSERT_EQ(::mkfifo((model() / "two.safetensors").c_str(), 0600), 0);
  EXPECT_SAYS(refusal(), "not a regular file");
}

TEST_F(ShardedModel, RefusesAnIndexThatDisagreesWithTheShards) {
  index(R"({"a":"one.safetensors","c":"two.safetensors"})");
  EXPECT_SAYS(refusal(), "does not list it");
  index(R"({"a":"one.safetensors","b":"two.safetensors","c":"two.safetensors"})");
  EXPECT_SAYS(refusal(), "says \"two.safetensors\"");
  index(R"({"a":"one.safetensors","b":"one.safetensors","c":"two.safetensors","d":"two.safetensors"})");
  EXPECT_SAYS(refusal(), "does not hold it");
}

TEST_F(ShardedModel, RefusesATensorThatTwoShardsHold) {
  write_safetensors(model() / "two.safetensors", std::vector{tensor("c", "cccc"), tensor("a", "aaaa")});
  EXPECT_SAYS(refusal(), "lies in \"two.safetensors\"");
}

TEST_F(ShardedModel, RefusesAnIndexThatIsNoIndex) {
  for (const char* map :
       {"[]", "{}", "null", "{\"a\":1}", "{\"a\":\"one.safetensors\",\"a\":\"one.safetensors\"}"}) {
    index(map);
    EXPECT_SAYS(refusal(), "index.json");
  }
  write_file(model() / "model.safetensors.index.json", "{");
  EXPECT_SAYS(refusal(), "not sound JSON");
}

TEST_F(ShardedModel, RefusesADamagedShard) {
  fs::resize_file(model() / "one.safetensors", fs::file_size(model() / "one.safetensors") - 1);
  EXPECT_SAYS(refusal(), "truncated");
}

TEST_F(ShardedModel, SaysWhichWeightsBesideThemAreNotRead) {
  EXPECT_TRUE(ModelDirectory::open(model()).notes().empty());
  write_safetensors(model() / "consolidated.safetensors", std::vector{tensor("a", "bbbb")});
  write_file(model() / "training_args.bin", "x");
  auto notes = ModelDirectory::open(model()).notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_SAYS(notes[0], "read from \"model.safetensors.index.json\"");
  EXPECT_SAYS(notes[0], "not from \"consolidated.safetensors\"; remove");
  fs::remove(model() / "consolidated.safetensors");

  write_safetensors(model() / "model.safetensors", std::vector{tensor("a", "cccc")});
  const auto opened = ModelDirectory::open(model());
  EXPECT_EQ(text_of(opened.find("a")), "cccc") << "as transformers";
  notes = opened.notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_SAYS(notes[0], "read from \"model.safetensors\"");
  EXPECT_SAYS(notes[0],
              "not from \"model.safetensors.index.json\", \"one.safetensors\" and \"two.safetensors\"");
}

TEST_F(ShardedModel, SaysNothingOfAnIndexOfTheOneFile) {
  write_safetensors(model() / "model.safetensors", std::vector{tensor("a", "cccc")});
  index(R"({"a":"model.safetensors"})");
  fs::remove(model() / "one.safetensors");
  fs::remove(model() / "two.safetensors");
  EXPECT_TRUE(ModelDirectory::open(model()).notes().empty());
}

TEST_F(ShardedModel, SaysThatAnAdapterBesideItIsNotRead) {
  write_file(model() / "adapter_config.json", "{}");
  const auto notes = ModelDirectory::open(model()).notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_SAYS(notes[0], "the adapter of \"adapter_config.json\" is not read");
}

// A directory with config.json and tensors of these names.
ModelDirectory with_names(const fs::path& directory, const std::vector<std::string>& names,
                          const std::string& config = "{}") {
  std::vector<TensorToWrite> tensors;
  for (const auto& name : names) tensors.push_back(tensor(name, "aaaa"));
  write_file(directory / "config.json", config);
  write_safetensors(directory / "model.safetensors", tensors);
  return ModelDirectory::open(directory);
}

TEST(ModelDirectory, ReadsNamesWithOneWordTooManyOrTooFewAsTransformersDoes) {
  const std::vector<std::string> usual{"lm_head.weight", "model.embed_tokens.weight",
                                       "model.layers.0.mlp.up_proj.weight", "model.norm.weight"};
  const std::vector<std::string> longer{"model.lm_head.weight", "model.model.embed_tokens.weight",
                                        "model.model.layers.0.mlp.up_proj.weight", "model.model.norm.weight"};
  const std::vector<std::string> shorter{"lm_head.weight", "embed_tokens.weight",
                                         "layers.0.mlp.up_proj.weight", "norm.weight"};
  for (const auto& names : {usual, longer, shorter}) {
    const test::TemporaryDirectory directory;
    const auto model = with_names(directory.path(), names);
    EXPECT_EQ(model.names(), usual);
    EXPECT_EQ(text_of(model.find("model.norm.weight")), "aaaa");
    EXPECT_EQ(model.notes().size(), names == usual ? 0U : 1U);
  }
  const test::TemporaryDirectory directory;
  EXPECT_SAYS(with_names(directory.path(), longer).notes().at(0),
              "\"model.lm_head.weight\" is read as \"lm_head.weight\", and so are 3 more");
  const std::vector<std::string> both{"model.model.norm.weight", "model.norm.weight"};
  EXPECT_EQ(with_names(directory.path(), both).names(), both) << "none of two is taken for the other";
  const std::vector<std::string> compiled{"_orig_mod.model.norm.weight"};
  EXPECT_EQ(with_names(directory.path(), compiled).names(), compiled) << "transformers does not read these";
}

TEST(ModelDirectory, ReadsAHeadAloneAsTheEmbeddingOfATiedModel) {
  const std::vector<std::string> alone{"lm_head.weight", "model.norm.weight"};
  for (const char* config : {"{}", R"({"tie_word_embeddings": true})"}) {
    const test::TemporaryDirectory directory;
    const auto model = with_names(directory.path(), alone, config);
    EXPECT_EQ(model.names(), (std::vector<std::string>{"model.embed_tokens.weight", "model.norm.weight"}));
    ASSERT_EQ(model.notes().size(), 1U);
    EXPECT_SAYS(model.notes()[0], "\"lm_head.weight\" is read as \"model.embed_tokens.weight\"");
  }
  for (const char* config :
       {R"({"tie_word_embeddings": false})", R"({"text_config": {"tie_word_embeddings": false}})"}) {
    const test::TemporaryDirectory directory;
    EXPECT_EQ(with_names(directory.path(), alone, config).names(), alone);
  }
}

TEST(ModelDirectory, ListsTheTensorsOfWhatAModelTakesInBesideText) {
  const test::TemporaryDirectory directory;
  const auto model = with_names(directory.path(),
                                {"language_model.model.norm.weight", "multi_modal_projector.weight",
                                 "vision_tower.patch_embedding.weight"},
                                R"({"text_config": {}})");
  EXPECT_EQ(model.names(), std::vector<std::string>{"model.norm.weight"});
  ASSERT_EQ(model.unread().size(), 1U);
  EXPECT_EQ(
      model.unread().begin()->second,
      (std::vector<std::string>{"multi_modal_projector.weight", "vision_tower.patch_embedding.weight"}));
}

TEST(ModelDirectory, FollowsTheLinksOfTheHuggingFaceCacheButNoOthers) {
  const test::TemporaryDirectory root;
  const fs::path cache = root / "models--org--name";
  const fs::path snapshot = cache / "snapshots" / "0123";
  fs::create_directories(snapshot);
  fs::create_directories(cache / "blobs");
  write_file(cache / "blobs" / "c", "{}");
  write_safetensors(cache / "blobs" / "w", std::vector{tensor("a", "aaaa")});
  fs::create_symlink("../../blobs/c", snapshot / "config.json");
  fs::create_symlink("../../blobs/w", snapshot / "model.safetensors");
  EXPECT_EQ(text_of(ModelDirectory::open(snapshot).find("a")), "aaaa");
  fs::rename(cache / "blobs" / "w", root / "w");
  fs::remove(snapshot / "model.safetensors");
  fs::create_symlink(root / "w", snapshot / "model.safetensors");
  EXPECT_SAYS(message_of<ModelError>([&] { ModelDirectory::open(snapshot); }), "outside the model directory");
}

TEST(ModelDirectory, OpensNoTokenizerOutsideItAndNoPipe) {
  for (const char* name : {"tokenizer.json", "tekken.json", "tokenizer.model"}) {
    const test::TemporaryDirectory directory, elsewhere;
    write_file(elsewhere / "secret", "{}");
    fs::create_symlink(elsewhere / "secret", directory / name);
    EXPECT_SAYS(message_of<ModelError>([&] { read_tokenizer_text(directory.path(), 1000); }),
                "outside the model directory");
    fs::remove(directory / name);
    fs::create_symlink("nowhere", directory / name);
    EXPECT_SAYS(message_of<ModelError>([&] { read_tokenizer_text(directory.path(), 1000); }),
                "leads nowhere");
    fs::remove(directory / name);
    ASSERT_EQ(::mkfifo((directory / name).c_str(), 0600), 0);
    EXPECT_SAYS(message_of<ModelError>([&] { read_tokenizer_text(directory.path(), 1000); }),
                "is not a regular file");
    EXPECT_SAYS(message_of<ModelError>([&] { read_tokenizer_text(directory / name, 1000); }), "is a pipe");
  }
}

// Parts of a GGUF file often lie in a folder of the snapshot.
TEST(ModelDirectory, OfAFolderInASnapshotOfTheCacheMayHaveLinksToItsBlobs) {
  const test::TemporaryDirectory root;
  const fs::path cache = root / "models--org--name", folder = cache / "snapshots" / "0123" / "Q4";
  fs::create_directories(folder);
  fs::create_directories(cache / "blobs");
  write_file(cache / "blobs" / "t", "{}");
  write_file(root / "other", "{}");
  fs::create_symlink("../../../blobs/t", folder / "tokenizer.json");
  EXPECT_EQ(read_tokenizer_text(folder, 1000).text, "{}");
  fs::create_directory_symlink(folder, root / "mine");
  EXPECT_EQ(read_tokenizer_text(root / "mine", 1000).text, "{}");
  fs::remove(folder / "tokenizer.json");
  fs::create_symlink("../../../../other", folder / "tokenizer.json");
  EXPECT_SAYS(message_of<ModelError>([&] { read_tokenizer_text(folder, 1000); }),
              "outside the model directory");
}

TEST(ModelDirectory, SaysHowToConvertPickledWeights) {
  const test::TemporaryDirectory directory;
  write_file(directory / "config.json", "{}");
  EXPECT_SAYS(message_of<ModelError>([&] { ModelDirectory::open(directory.path()); }), "has neither");
  write_file(directory / "pytorch_model.bin", "x");
  const std::string message = message_of<ModelError>([&] { ModelDirectory::open(directory.path()); });
  EXPECT_SAYS(message, "pytorch_model.bin");
  EXPECT_SAYS(message, "save_pretrained");
}

TEST(ModelDirectory, SaysWhatIsMissing) {
  const test::TemporaryDirectory directory;
  EXPECT_SAYS(message_of<ModelError>([&] { ModelDirectory::open(directory / "none"); }), "no such directory");
  EXPECT_SAYS(message_of<ModelError>([&] { ModelDirectory::open(directory.path()); }),
              "\"config.json\" is missing");
  write_file(directory / "config.json", std::string((1 << 20) + 1, ' '));
  EXPECT_SAYS(message_of<ModelError>([&] { ModelDirectory::open(directory.path()); }), "expected at most");
}

TEST(ModelDirectory, CopiesTheTokenizerByteForByte) {
  const test::TemporaryDirectory from;
  const test::TemporaryDirectory to;
  write_file(from / "tokenizer.json", std::string("{\r\n\0}", 5));
  copy_files(accompanying_files(from.path()), to.path());
  EXPECT_EQ(base::read_file(to / "tokenizer.json"), base::read_file(from / "tokenizer.json"));
}

TEST(ModelDirectory, CopiesAllThatBelongsToAModelButNeitherWeightsNorCode) {
  const std::vector<std::string> belongs{"tokenizer.json",
                                         "tokenizer_config.json",
                                         "special_tokens_map.json",
                                         "added_tokens.json",
                                         "tokenizer.model",
                                         "tekken.json",
                                         "vocab.json",
                                         "vocab.txt",
                                         "merges.txt",
                                         "chat_template.jinja",
                                         "chat_template.json",
                                         "additional_chat_templates/tool_use.jinja",
                                         "additional_chat_templates/rag.jinja",
                                         "processor_config.json",
                                         "preprocessor_config.json",
                                         "video_preprocessor_config.json",
                                         "generation_config.json"};
  const std::vector<std::string> stays{"README.md",           "config.json",
                                       "model.safetensors",   "pytorch_model.bin",
                                       "modeling_evil.py",    "consolidated.safetensors",
                                       "retort.json",         "additional_chat_templates/evil.py",
                                       "original/params.json"};
  const test::TemporaryDirectory from;
  const test::TemporaryDirectory to;
  fs::create_directories(from / "additional_chat_templates");
  fs::create_directories(from / "original");
  for (const auto* names : {&belongs, &stays})
    for (const std::string& name : *names) write_file(from / name, "\"" + name + "\"");
  copy_files(accompanying_files(from.path()), to.path());
  for (const std::string& name : belongs) {
    ASSERT_TRUE(fs::is_regular_file(to / name)) << name;
    EXPECT_EQ(base::read_file(to / name), "\"" + name + "\"");
  }
  for (const std::string& name : stays) EXPECT_FALSE(fs::exists(to / name)) << name;
}

TEST(ModelDirectory, CopiesATokenizerThatCutsAsItsConfigurationAsks) {
  const test::TemporaryDirectory from, to;
  write_file(from / "tokenizer.json",
             R"({"pre_tokenizer": {"type": "Metaspace"}, "model": {"type": "BPE"}})");
  write_file(from / "tokenizer_config.json", R"({"fix_mistral_regex": true})");
  copy_files(accompanying_files(from.path()), to.path());
  const base::Json copy = base::parse_json(base::read_file(to / "tokenizer.json"));
  const base::Json& steps = copy.at("pre_tokenizer").at("pretokenizers");
  EXPECT_TRUE(
      steps.at(0).at("pattern").at("Regex").get<std::string>().ends_with(R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"));
  EXPECT_EQ(steps.at(1).at("type"), "ByteLevel");
  EXPECT_EQ(copy.at("model").at("type"), "BPE");
  write_file(from / "tokenizer_config.json", "{");
  EXPECT_SAYS(message_of<ModelError>([&] { accompanying_files(from.path()); }),
              "tokenizer_config.json: not sound JSON");
}

TEST(ModelDirectory, CopiesATokenizerThatIsGivenAsAFile) {
  const test::TemporaryDirectory from;
  const test::TemporaryDirectory to;
  write_file(from / "mine.json", "{}");
  copy_files(accompanying_files(from / "mine.json"), to.path());
  EXPECT_EQ(base::read_file(to / "tokenizer.json"), "{}");
}

// A snapshot of the Hugging Face cache holds links; a copy of it holds files.
TEST(ModelDirectory, CopiesWhatTheLinksOfACacheLeadTo) {
  const test::TemporaryDirectory cache;
  const test::TemporaryDirectory to;
  const auto root = cache / "models--a--b", snapshot = root / "snapshots" / "1234";
  fs::create_directories(root / "blobs");
  fs::create_directories(snapshot / "additional_chat_templates");
  write_file(root / "blobs" / "0001", "tokenizer");
  write_file(root / "blobs" / "0002", "template");
  fs::create_symlink("../../blobs/0001", snapshot / "tokenizer.json");
  fs::create_symlink("../../../blobs/0002", snapshot / "additional_chat_templates" / "rag.jinja");
  copy_files(accompanying_files(snapshot), to.path());
  for (const char* name : {"tokenizer.json", "additional_chat_templates/rag.jinja"})
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(to / name))) << name;
  EXPECT_EQ(base::read_file(to / "tokenizer.json"), "tokenizer");
  EXPECT_EQ(base::read_file(to / "additional_chat_templates/rag.jinja"), "template");
}

TEST(ModelDirectory, RefusesToCopyWhatALinkBringsInFromAnotherPlace) {
  const auto refusal = [](const std::string& name) {
    const test::TemporaryDirectory from;
    fs::create_directories(from / "additional_chat_templates");
    fs::create_symlink("/etc/passwd", from / name);
    return message_of<ModelError>([&] { accompanying_files(from.path()); });
  };
  for (const char* name : {"tokenizer.json", "tekken.json", "additional_chat_templates/a.jinja"})
    EXPECT_SAYS(refusal(name), "outside the model directory");
  const test::TemporaryDirectory from;
  const test::TemporaryDirectory elsewhere;
  write_file(elsewhere / "a.jinja", "x");
  fs::create_directory_symlink(elsewhere.path(), from / "additional_chat_templates");
  EXPECT_SAYS(message_of<ModelError>([&] { accompanying_files(from.path()); }),
              "outside the model directory");
}

TEST(Weights, ReadBackTheSameInOneFileAndInShards) {
  const std::vector<TensorToWrite> tensors{tensor("d", "dddd"), tensor("a", "aaaa"), tensor("c", "cccc"),
                                           tensor("b", "bbbb"), tensor("e", "eeee")};
  for (const std::size_t most :
       {std::size_t{3}, std::size_t{8}, std::size_t{19}, std::size_t{20}, kMaxShardBytes}) {
    const test::TemporaryDirectory directory;
    write_file(directory / "config.json", "{}");
    const auto files = write_weights(directory.path(), tensors, {{"key", "value"}}, most);
    EXPECT_EQ(files.size(), most < 8 ? 6U : most < 19 ? 4U : most < 20 ? 3U : 1U);
    for (const std::string& file : files) EXPECT_TRUE(fs::exists(directory / file)) << file;
    const auto model = ModelDirectory::open(directory.path());
    EXPECT_EQ(model.names().size(), 5U);
    for (const std::string& name : model.names())
      EXPECT_EQ(text_of(model.find(name)), std::string(4, name[0]));
    EXPECT_EQ(model.metadata().at("key"), "value");
  }
}

TEST(Weights, NamesShardsAndIndexAsHuggingFaceDoes) {
  const test::TemporaryDirectory directory;
  const auto files =
      write_weights(directory.path(), std::vector{tensor("b", "bbbb"), tensor("a", "aaaa")}, {}, 4);
  EXPECT_EQ(files,
            (std::vector<std::string>{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                                      "model.safetensors.index.json"}));
  const auto index = base::parse_json(base::read_file(directory / files.back()));
  EXPECT_EQ(index["metadata"]["total_size"], 8);
  EXPECT_EQ(index["weight_map"]["a"], files[0]);
  EXPECT_EQ(index["weight_map"]["b"], files[1]);
}

TEST(NoSuchModel, OfTheHubIsFetchedFirst) {
  EXPECT_SAYS(how_to_get("HuggingFaceTB/SmolLM2-135M"),
              "hf download HuggingFaceTB/SmolLM2-135M --local-dir DIRECTORY");
  for (const char* path : {"./m", "/a/b", "m", "a/b/c", "/m", "m/"})
    EXPECT_EQ(how_to_get(path), "give the directory of a Hugging Face model or a GGUF file") << path;
}

}  // namespace
}  // namespace retort::io
