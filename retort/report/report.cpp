#include "retort/report/report.h"

#include "retort/record/run_files.h"
#include "retort/report/assets.h"
#include "retort/report/sections.h"

namespace retort::report {
namespace {

struct Section {
  std::string id;
  std::string title;
  Html body;
};

std::vector<Section> sections_of(const Run& run) {
  Palette palette;
  for (const Stage& stage : run.stages)
    if (stage.kind != "evaluate" && stage.kind != "profile" && stage.kind != "select")
      palette.color(stage.name);
  std::vector<Section> sections;
  const auto add = [&](const char* id, const char* title, Html body) {
    if (!body.empty()) sections.push_back({id, title, std::move(body)});
  };
  add("scores", "Scores", scores(run, palette));
  add("trade-off", "Size and quality", trade_offs(run));
  add("training", "Training", training(run, palette));
  add("profile", "Activations", profiles(run));
  add("pruning", "What was pruned", pruning(run));
  add("selection", "Models after a short distillation", selection(run));
  add("sparsity", "2:4 sparsity", sparsity(run));
  add("memory", "Time and memory", costs(run) + memory(run));
  add("text", "Generated text", generated(run));
  add("recipe", "Recipe", recipe(run));
  add("provenance", "Provenance", provenance(run));
  return sections;
}

Html contents(const std::vector<Section>& sections) {
  if (sections.size() < 2) return {};
  Html items;
  for (const Section& section : sections)
    items += element("li", element("a", {{"href", "#" + section.id}}, section.title));
  return element("nav", {{"aria-label", "Contents"}}, element("ol", items));
}

Html notes(const Run& run) {
  Html items;
  for (const std::string& note : run.notes) items += element("li", note);
  if (items.empty()) return {};
  return element("aside", element("p", "Parts of this run could not be read:") + element("ul", items));
}

Html body_of(const Run& run) {
  const std::vector<Section> sections = sections_of(run);
  Html body = headline(run) + pipeline(run) + notes(run) + contents(sections);
  if (sections.empty())
    body += element("p", {{"class", "empty"}}, "This run has not written any results yet.");
  for (const Section& section : sections)
    body += element("section", {{"id", section.id}}, element("h2", section.title) + section.body);
  body += element(
      "footer",
      element("p", "Written by Retort. Charts by Chart.js 3.9 (MIT licence), contained in this page."));
  return element("main", body);
}

/// Ours and Chart.js: neither contains what would end the element (a test holds them to it).
Html script(std::string_view code) {
  return element("script", Html::markup(std::string(code)));
}

}  // namespace

std::string html_report(const base::Path& run_directory) {
  const Run run = record::read_run(run_directory);
  const Html policy = Html::markup(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
      "'unsafe-inline'; "
      "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n");
  const Html head = Html::markup("<meta charset=\"utf-8\">\n") + policy +
                    Html::markup(
                        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                        "<meta name=\"color-scheme\" content=\"light dark\">\n") +
                    element("title", title_of(run) + " \u00b7 Retort") +
                    element("style", Html::markup(std::string(kPageStyle)));
  const Html page = element(
      "html", {{"lang", "en"}},
      element("head", head) + element("body", body_of(run) + script(kChartScript) + script(kPageScript)));
  return "<!DOCTYPE html>\n" + page.str() + "\n";
}

void write_report(const base::Path& run_directory) {
  base::write_file_atomically(record::RunFiles(run_directory).report_path(), html_report(run_directory));
}

}  // namespace retort::report
