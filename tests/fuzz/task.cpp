// A task file; behind a line "%%" its documents, d.jsonl.  Requests that are made are judged.
#include "fuzz/harness.h"
#include "retort/tasks/scores.h"

using namespace retort;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kCut = "\n%%\n";
  const auto input = fuzz::text_of(data, size);
  const auto yaml = input.substr(0, input.find(kCut));
  const auto file = fuzz::folder() / "t.yaml";
  fuzz::write(file, yaml);
  fuzz::write(fuzz::folder() / "d.jsonl", input.substr(std::min(yaml.size() + kCut.size(), input.size())));
  fuzz::taken([&] {
    auto task = tasks::read_task(file);
    auto documents = tasks::read_documents(task, {});
    const auto prepared = tasks::prepare(std::move(task), std::move(documents),
                                         {.limit = 4, .system_instruction = {}, .chat = {}});
    std::vector<std::vector<tasks::Answer>> answers;
    for (const auto& document : prepared.documents)
      answers.emplace_back(document.requests.size(), tasks::Answer{-1, false, "#### 7 (A) yes"});
    const auto scores = tasks::score(prepared, answers, {.bootstrap_iterations = 10});
    fuzz::require(scores.num_documents == std::ssize(prepared.documents), "each document has a score");
  });
  return 0;
}
