#include "retort/publish/card.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/printable.h"
#include "retort/base/units.h"
#include "retort/publish/ancestry.h"

namespace retort::publish {
namespace {

using base::Json;

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string row(const std::string& name, const std::string& value) {
  return base::join("| ", name, " | ", value, " |\n");
}

// What a file says, as a cell of a table: in one line, and without its marks.
std::string cell(std::string text) {
  for (char& letter : text)
    if (letter == '|' || letter == '`' || static_cast<unsigned char>(letter) < 0x20) letter = ' ';
  return text;
}

// "512", or "352 to 512" where blocks differ.
template <typename Size>
std::string of_blocks(const architecture::Config& config, Size size) {
  std::int64_t least = size(config.blocks.front()), most = least;
  for (const auto& block : config.blocks) {
    least = std::min(least, size(block));
    most = std::max(most, size(block));
  }
  return least == most ? base::join(most) : base::join(least, " to ", most);
}

// Of each model a column: this one, and where it is another one the model that it comes from.
std::string sizes(const std::vector<const architecture::Config*>& models) {
  const auto heads = [](const architecture::Block& block) {
    return block.attention ? block.attention->num_heads : 0;
  };
  const auto of_each = [&](const std::string& name, auto&& say) {
    std::string line = base::join("| ", name, " |");
    for (const auto* config : models) line += base::join(" ", say(*config), " |");
    return line + "\n";
  };
  std::string text = models.size() == 1 ? "| | |\n| --- | --- |\n"
                                        : "| | this model | that it comes from |\n| --- | --- | --- |\n";
  text += of_each("parameters", [](const auto& config) {
    return base::human_count(static_cast<double>(architecture::num_parameters(config)));
  });
  text += of_each("blocks", [](const auto& config) { return base::join(config.blocks.size()); });
  text += of_each("hidden size", [](const auto& config) { return base::join(config.hidden_size); });
  text +=
      of_each("MLP channels", [](const auto& config) { return of_blocks(config, architecture::mlp_width); });
  text += of_each("query heads", [&](const auto& config) { return of_blocks(config, heads); });
  text += of_each("KV heads", [](const auto& config) { return of_blocks(config, architecture::kv_groups); });
  return text + of_each("context", [](const auto& config) {
           return base::join(config.max_position_embeddings, " tokens");
         });
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "`" : ", `") + cell(name) + "`";
  return text.empty() ? "-" : text;
}

// The first model first.
std::string origin(const std::vector<Ancestor>& ancestry) {
  if (ancestry.size() < 2 && ancestry.front().kind.empty()) return "";
  std::string text =
      "\n## Where it comes from\n\n| model | made by | text | parameters |\n| --- | --- | --- | --- |\n";
  for (auto one = ancestry.rbegin(); one != ancestry.rend(); ++one) {
    std::string made = one->kind.empty() ? "-" : "`" + cell(one->kind) + "`";
    if (!one->teacher.empty()) made += ", taught by `" + cell(one->teacher) + "`";
    text += base::join(
        "| `", cell(one->name), "` | ", made, " | ", listed(one->data), " | ",
        one->config ? base::human_count(static_cast<double>(architecture::num_parameters(*one->config)))
                    : "-",
        " |\n");
  }
  if (const auto& pattern = ancestry.front().pattern; !pattern.empty())
    text += base::join("\nIts matrices are ", cell(pattern), " sparse; the zeros are stored.\n");
  return text;
}

// A name on the Hugging Face Hub: "owner/name", and nothing that is a path elsewhere.
bool is_on_hub(const std::string& name) {
  const auto slash = name.find('/');
  const bool plain = std::ranges::all_of(name, [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '-' || letter == '_' || letter == '.' || letter == '/';
  });
  return plain && slash != name.npos && slash > 0 && name.front() != '.' && slash + 1 < name.size() &&
         name.find('/', slash + 1) == name.npos && !std::filesystem::exists(name);
}

std::string checks(const Json& checks) {
  const Json &logits = checks.at("logits"), &greedy = checks.at("greedy"),
             &perplexity = checks.at("perplexity");
  std::string text = "\n## Compared with the model that it was made from\n\n| | |\n| --- | --- |\n";
  const Json& tokens = checks.at("tokens");
  text += row("token ids", base::join("equal on ", tokens.at("texts").dump(), " texts, ",
                                      tokens.at("with_added_tokens").dump(), " of them with added tokens",
                                      tokens.at("chat") == true ? ", one a conversation" : ""));
  text += row("largest difference of a logit", number(logits.at("largest_difference"), 3));
  text += row("mean KL divergence", base::join(number(logits.at("mean_kl"), 3), " nats a token"));
  text += row("same most likely token",
              base::join(number(100 * logits.at("top1_agreement").get<double>(), 4), " %"));
  text += row("greedy answer", base::join(greedy.at("equal").dump(), " of ", greedy.at("tokens").dump(),
                                          " tokens equal from the beginning on"));
  return text +
         row("perplexity of these texts", base::join(number(perplexity.at("written"), 5), ", of the model ",
                                                     number(perplexity.at("source"), 5)));
}

std::string commands(const Json& certificate) {
  const std::string program = certificate.at("program"), file = certificate.at("model");
  std::string lines = "retort generate " + file + " --prompt 'Once upon a time'";
  if (program == "llama.cpp") lines = "llama-cli -m " + file + " -p 'Once upon a time'";
  if (program == "ollama") lines = "ollama create my-model -f Modelfile\nollama run my-model";
  if (program == "vllm") lines = "vllm serve .";
  if (program == "transformers")
    lines =
        "python -c 'from transformers import pipeline; print(pipeline(\"text-generation\", \".\")(\"Once "
        "upon a "
        "time\"))'";
  return base::join("\n## Use\n\nIn this directory:\n\n```\n", lines,
                    "\n```\n\n`retort verify .` checks the files and answers against `certificate.json`.\n");
}

}  // namespace

void write_card(const Json& certificate, const architecture::Config& config, const std::string& name,
                const base::Path& model, const std::string& measured, const base::Path& directory) {
  const std::string program = certificate.at("program"), type = certificate.at("type");
  const bool gguf = program == "llama.cpp" || program == "ollama";
  const auto ancestry = ancestry_of(model, name);
  const std::string first = ancestry.size() > 1 ? ancestry.back().name : own_name(model);
  // What the Hugging Face Hub reads.
  std::string text =
      base::join("---\nlibrary_name: ", gguf ? "gguf" : "transformers", "\npipeline_tag: text-generation\n",
                 is_on_hub(first) ? "base_model: " + first + "\n" : "", "tags: [retort]\n---\n\n");
  text += base::join("# ", name, " for ", program, "\n\nWeights are stored as ", type, ".");
  if (!first.empty()) text += base::join(" The model comes from `", cell(first), "`.");
  text += base::join(" A whole model of its family ", certificate.at("seen").get<std::string>(), ".");
  text += "\n\n";
  std::vector<const architecture::Config*> models{&config};
  if (ancestry.size() > 1 && ancestry.back().config) models.push_back(&*ancestry.back().config);
  text += sizes(models);
  text += origin(ancestry);
  if (!measured.empty())
    text += base::join("\n## Measured before it was written\n\n```\n", measured, "```\n");
  text += checks(certificate.at("checks"));
  text += commands(certificate);
  base::write_file_atomically(directory / "README.md", text);
}

}  // namespace retort::publish
