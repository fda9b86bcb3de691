#include "retort/publish/card.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/printable.h"
#include "retort/base/units.h"
#include "retort/publish/padded.h"

namespace retort::publish {
namespace {

using base::Json;

constexpr std::size_t kMaxLineage = std::size_t{1} << 26;

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string row(const std::string& name, const std::string& value) {
  return base::join("| ", name, " | ", value, " |\n");
}

// What a model's retort.json says; null where there is none.
Json read_origin(const base::Path& model) try {
  const base::Path file = model / "retort.json";
  if (!std::filesystem::is_regular_file(file)) return {};
  return base::parse_json(base::read_file(file, kMaxLineage), {.max_bytes = kMaxLineage});
} catch (const base::JsonFault&) {
  return {};
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

std::string sizes(const architecture::Config& config) {
  const auto heads = [](const architecture::Block& block) {
    return block.attention ? block.attention->num_heads : 0;
  };
  std::string text = "| | |\n| --- | --- |\n";
  text += row("parameters", base::human_count(static_cast<double>(architecture::num_parameters(config))));
  text += row("blocks", base::join(config.blocks.size()));
  text += row("hidden size", base::join(config.hidden_size));
  text += row("MLP channels", of_blocks(config, architecture::mlp_width));
  text += row("query heads", of_blocks(config, heads));
  text += row("KV heads", of_blocks(config, architecture::kv_groups));
  return text + row("context", base::join(config.max_position_embeddings, " tokens"));
}

// How many numbers a list of the lineage holds, in which pairs stand for ranges.
std::int64_t length(const Json& list) {
  std::int64_t count = 0;
  for (const Json& entry : list)
    count += entry.is_array() && entry.size() == 2
                 ? entry[1].get<std::int64_t>() - entry[0].get<std::int64_t>() + 1
                 : 1;
  return count;
}

// Empty where the file says it in another way.
std::string origin(const Json& origin) try {
  if (!origin.is_object() || !origin.contains("lineage")) return "";
  const Json& lineage = origin["lineage"];
  std::string text =
      base::join("\n## Where it comes from\n\nOf the original model's ", lineage.at("teacher_blocks").dump(),
                 " blocks ", lineage.at("blocks").size(), " are left, and of its ",
                 lineage.at("teacher_hidden").dump(), " hidden features ", length(lineage.at("hidden")), ".");
  if (const std::string pattern = lineage.value("pattern", ""); !pattern.empty())
    text += base::join(" ", lineage.at("sparse_layers").size(), " of its matrices are ", pattern,
                       " sparse; the zeros are stored.");
  text += "\n";
  const Json made = origin.value("provenance", Json::object());
  if (made.contains("kind"))
    text += base::join("\nIts last stage was of kind `", made["kind"].get<std::string>(), "`, by Retort ",
                       made.value("retort", "?"), ". It read:\n\n");
  if (const auto data = made.value("data", Json::array()); !data.empty()) {
    std::string names;
    for (const Json& name : data)
      names += (names.empty() ? "`" : ", `") + base::as_utf8(name.get<std::string>()) + "`";
    text += base::join("- text of ", names, "\n");
  }
  for (const Json& input : made.value("inputs", Json::array()))
    text += base::join("- `", base::as_utf8(input.value("name", "")), "`\n");
  return text;
} catch (const Json::exception&) {
  return "";
}

std::string checks(const Json& checks) {
  const Json &logits = checks.at("logits"), &greedy = checks.at("greedy"),
             &perplexity = checks.at("perplexity");
  std::string text = "\n## Compared with the model that it was made from\n\n| | |\n| --- | --- |\n";
  text += row("token ids", base::join("equal on ", checks.at("tokens").at("texts").dump(), " texts"));
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
  // What the Hugging Face Hub reads.
  std::string text = base::join("---\nlibrary_name: ", gguf ? "gguf" : "transformers",
                                "\npipeline_tag: text-generation\ntags: [retort]\n---\n\n");
  text +=
      base::join("# ", name, " for ", program, "\n\nWeights are stored as ", type, ".\n\n", sizes(config));
  text += origin(read_origin(model));
  if (!measured.empty())
    text += base::join("\n## Measured before it was written\n\n```\n", measured, "```\n");
  text += checks(certificate.at("checks"));
  text += commands(certificate);
  base::write_file_atomically(directory / "README.md", text);
}

}  // namespace retort::publish
