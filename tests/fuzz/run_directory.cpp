// The files of a run directory, cut by zero bytes, and the page and tables that are made of them.
#include "fuzz/harness.h"
#include "retort/record/metrics.h"
#include "retort/record/run_contents.h"
#include "retort/record/run_files.h"
#include "retort/report/report.h"

using namespace retort;

namespace {

constexpr const char* kFiles[] = {"recipe.json",   "provenance.json", "metrics.jsonl",
                                  "stages/a.json", "stages/b.json",   "stages/c.json"};

void write_files(const base::Path& run, std::string_view input) {
  for (const char* name : kFiles) {
    std::error_code ignored;
    std::filesystem::remove(run / name, ignored);
    const auto content = input.substr(0, input.find('\0'));
    if (!input.empty()) fuzz::write(run / name, content);
    input.remove_prefix(std::min(content.size() + 1, input.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const base::Path run = fuzz::folder();
  std::filesystem::create_directories(run / "stages");
  write_files(run, fuzz::text_of(data, size));
  fuzz::taken([] {
    const auto page = report::html_report(run);
    // Words of a seed that would be a tag or an attribute of their own.
    fuzz::require(page.find("<QZX") == page.npos && page.find("\"QZY") == page.npos, "no markup of a file");
  });
  fuzz::taken([] {
    for (const auto& stage : record::read_run(run).stages) {
      (void)report::scores_table(stage.result);
      (void)report::generated_texts(stage.result);
    }
  });
  const record::RunFiles files(run);
  for (const auto& name : files.finished_stages()) fuzz::taken([&] { (void)files.result(name); });
  fuzz::taken([&] { (void)files.recipe(); });
  fuzz::taken([&] { (void)files.provenance(); });
  fuzz::taken([&] { record::Metrics(files.metrics_path()).drop_after("a", 3); });
  return 0;
}
