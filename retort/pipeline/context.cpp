#include "retort/pipeline/context.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "retort/architecture/longest_context.h"
#include "retort/base/as_errors.h"
#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/machine.h"
#include "retort/base/parallel.h"
#include "retort/base/printable.h"
#include "retort/base/units.h"
#include "retort/base/utf8.h"
#include "retort/comm/lead.h"
#include "retort/data/chat_encoder.h"
#include "retort/data/sequence_bytes.h"
#include "retort/io/model_directory.h"
#include "retort/io/quote.h"
#include "retort/model/dtype.h"
#include "retort/ops/device_memory.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/pipeline/torch_errors.h"
#include "retort/record/provenance.h"
#include "retort/record/stopped.h"
#include "retort/text/tokenizer_description.h"

namespace retort::pipeline {

void Context::lead(const std::function<void()>& act) const {
  comm::lead(group, act);
}

bool Context::agreed(bool of_rank_0) const {
  std::string word = of_rank_0 ? "yes" : "";
  group.share(word);
  return !word.empty();
}

std::vector<data::Sequence> Context::read_once(
    const std::function<std::vector<data::Sequence>()>& read) const {
  std::vector<data::Sequence> sequences;
  lead([&] { sequences = read(); });
  if (group.size() == 1) return sequences;
  std::string bytes;
  if (leads()) bytes = data::to_bytes(sequences);
  group.share(bytes);
  return leads() ? sequences : data::sequences_of(bytes);
}

void Context::stop_if_asked(const std::string& sentence) const {
  const bool asked = agreed(observer.stop_requested());
  group.together([&] { base::require<record::StoppedError>(!asked, sentence); });
}

int Context::threads_of_machine() const {
  return static_cast<int>(
      std::min<std::int64_t>(at::get_num_threads() * place.ranks.of_machine, base::usable_processors()));
}

base::Path Context::model_path(const std::string& name) const {
  return recipe.find_stage(name) ? directory.model_directory(name) : base::Path(name);
}

base::Path Context::finalist_path(const std::string& stage, std::size_t number) const {
  return directory.stage_directory(stage) / "finalists" / std::to_string(number);
}

std::string beside_tensors() {
  const auto bytes = static_cast<std::uint64_t>(ops::process_base_bytes());
  return base::join("the process itself has ", base::human_bytes(bytes), " besides");
}

std::int64_t available_bytes(const AvailableMemory& asked, at::Device device) {
  if (asked) return asked();
  if (!device.is_cpu()) return ops::free_bytes(device);
  // Libraries, the memory of threads, files that are mapped while they are read, and holes between blocks.
  constexpr std::int64_t kProgramBytes = std::int64_t{1} << 28, kHoles = 16;
  const auto found = base::available_memory_bytes();
  return std::max<std::int64_t>(0, found - found / kHoles - kProgramBytes);
}

namespace {

void require_rows(const text::Tokenizer& tokenizer, std::int64_t rows, const std::vector<std::int32_t>& ids) {
  if (tokenizer.vocab_size() <= rows) return;
  for (const auto id : ids)
    base::require<base::DataError>(
        id < rows, "text: expected tokens with a row in the model, found ",
        io::quote(tokenizer.id_to_token(id)), " (id ", id, " of ", rows,
        " rows); take it out of the text, or give the model rows with resize_token_embeddings of "
        "transformers.");
}

}  // namespace

data::Encode ModelText::encode() const {
  data::Encode encode = [tokenizer = tokenizer, rows = rows](std::string_view text) {
    auto ids = tokenizer.encode(text, /*add_special_tokens=*/false);
    require_rows(tokenizer, rows, ids);
    return ids;
  };
  encode.chat = [tokenizer = tokenizer, rows = rows,
                 chat = data::ChatEncoder(model, tokenizer)](const chat::Conversation& conversation) {
    auto tokens = chat(conversation);
    require_rows(tokenizer, rows, tokens.ids);
    return tokens;
  };
  return encode;
}

std::vector<std::int32_t> ModelText::ids_without_token(std::int64_t vocab_size) const {
  std::vector<std::int32_t> ids;
  for (std::int32_t id = 0; id < vocab_size; ++id)
    if (!tokenizer.token_bytes(id)) ids.push_back(id);
  return ids;
}

std::vector<std::int32_t> ModelText::prompt_ids(std::string_view text, bool bos) const {
  base::require<base::UsageError>(base::is_utf8(text), "prompt: expected text in UTF-8, found ",
                                  io::quote(text),
                                  "; set the terminal to UTF-8, or convert the text by iconv.");
  auto ids = tokenizer.encode(text, /*add_special_tokens=*/true);
  if (bos && special.bos >= 0 && (ids.empty() || ids.front() != special.bos))
    ids.insert(ids.begin(), special.bos);
  require_rows(tokenizer, rows, ids);
  return ids;
}

ModelText read_model_text(const base::Path& directory, const architecture::Config& config) {
  ModelText text{text::Tokenizer::from_file(directory), {}, config.vocab_size, directory};
  const std::string lacking = text::which_lacks_a_row(text.tokenizer, config.vocab_size);
  base::require<base::ModelError>(lacking.empty(), directory.string(), ": ", lacking, ".");
  if (!config.bos_token_ids.empty()) text.special.bos = config.bos_token_ids.front();
  if (!config.eos_token_ids.empty()) text.special.eos = config.eos_token_ids.front();
  for (const auto id : {text.special.bos, text.special.eos})
    if (id >= 0) require_rows(text.tokenizer, text.rows, {id});
  return text;
}

base::Json weight_checksums(const base::Path& directory) {
  base::Json files = base::Json::object();
  const auto opened = io::ModelDirectory::open(directory);
  for (const auto& file : opened.weight_files())
    files[base::as_utf8(file.filename().native())] = base::hash_file(file);
  return files;
}

base::Json describe_input(const std::string& name, const base::Path& directory) {
  return {{"name", name},
          {"directory", base::as_utf8(directory.native())},
          {"xxh128", weight_checksums(directory)},
          {"tokenizer", text::describe_tokenizer(directory).steps}};
}

base::Json provenance_of(const recipe::Stage& stage, at::ScalarType compute_dtype, const base::Json& inputs) {
  return {{"retort", record::long_version()},
          {"stage", stage.name},
          {"kind", recipe::name(stage.kind)},
          {"data", stage.data},
          {"compute_dtype", model::dtype_name(compute_dtype)},
          {"inputs", inputs}};
}

void in_stage(const recipe::Stage& stage, const std::function<void()>& act) try {
  translate_torch_errors([&] { base::as_errors(act); });
} catch (const base::Error& error) {
  if (error.code() == base::ExitCode::stopped || error.code() == base::ExitCode::temporary) throw;
  const std::string sentence = error.what(), said = base::join("stage '", stage.name, "'");
  const bool named = sentence.starts_with(stage.name + ":") || sentence.find(said) != std::string::npos;
  base::throw_error(error.code(), named ? sentence : base::join(said, ": ", sentence));
}

void require_context(const std::string& stage, const char* key, std::int64_t tokens,
                     const architecture::Config& config) {
  const auto longest = architecture::longest_context(config);
  base::require<base::UsageError>(tokens <= longest, "stage '", stage, "': ", key, " is ", tokens,
                                  ", the model was made for at most ", longest, " tokens.");
}

}  // namespace retort::pipeline
