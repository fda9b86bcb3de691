#include "retort/publish/modelfile.h"

#include <algorithm>
#include <string>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/base/printable.h"
#include "retort/chat/template_files.h"
#include "retort/text/tokenizer.h"

namespace retort::publish {
namespace {

// Its cache is made for the whole context when a model is loaded.
constexpr std::int64_t kMostContext = 8192;

}  // namespace

void write_modelfile(const architecture::Config& config, const base::Path& model, const base::Path& gguf) {
  const auto tokenizer = text::Tokenizer::from_file(model);
  std::string text = base::join("FROM ./", base::as_utf8(gguf.filename().native()), "\n");
  text += base::join("PARAMETER num_ctx ", std::min(config.max_position_embeddings, kMostContext), "\n");
  for (const auto id : config.eos_token_ids)
    if (id < tokenizer.vocab_size())
      text += base::join("PARAMETER stop ", base::Json(tokenizer.id_to_token(id)).dump(), "\n");
  // With a chat template in the file Ollama looks for the one of its own that says the same.
  if (chat::find_templates(model).named.empty()) text += "TEMPLATE \"\"\"{{ .Prompt }}\"\"\"\n";
  base::write_file_atomically(gguf.parent_path() / "Modelfile", text);
}

}  // namespace retort::publish
