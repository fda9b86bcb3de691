#include "retort/report/report.h"

#include <algorithm>

#include "retort/record/run_files.h"
#include "retort/report/page.h"
#include "retort/report/sections.h"

namespace retort::report {
namespace {

struct Shown {
  const Section& section;
  Html body;
};

std::vector<Shown> shown(const Run& run) {
  Palette palette;
  for (const Stage& stage : run.stages)
    if (!measures_models(stage) && stage.kind != "profile" && stage.kind != "select")
      palette.color(stage.name);
  std::vector<Shown> parts;
  for (const Section& section : kSections)
    if (Html body = section.body(run, palette); !body.empty()) parts.push_back({section, std::move(body)});
  return parts;
}

Html contents(const std::vector<Shown>& parts) {
  if (parts.size() < 2) return {};
  Html items;
  for (const Shown& part : parts)
    items += element("li", element("a", {{"href", std::string("#") + part.section.id}}, part.section.title));
  return element("nav", {{"aria-label", "Contents"}}, element("ol", items));
}

Html notes(const Run& run) {
  Html items;
  for (const std::string& note : run.notes) items += element("li", note);
  if (items.empty()) return {};
  return element("aside", element("p", "Parts of this run could not be read:") + element("ul", items));
}

Html body_of(const Run& run) {
  const std::vector<Shown> parts = shown(run);
  Html body = headline(run) + pipeline(run) + notes(run) + contents(parts);
  if (parts.empty()) body += element("p", {{"class", "empty"}}, "This run has not written any results yet.");
  for (const Shown& part : parts)
    body += element("section", {{"id", part.section.id}}, element("h2", part.section.title) + part.body);
  return body + page_footer();
}

}  // namespace

Html each_stage(const Run& run, std::string_view kind, Html (*body)(const Stage& stage)) {
  const auto stages = std::ranges::count(run.stages, kind, &Stage::kind);
  Html all;
  for (const Stage& stage : run.stages) {
    if (stage.kind != kind || !stage.result.is_object()) continue;
    if (stages > 1) all += element("h3", stage.name);
    all += body(stage);
  }
  return all;
}

const Stage* stage_of(const Run& run, std::string_view name) {
  const auto found = std::ranges::find(run.stages, name, &Stage::name);
  return found == run.stages.end() ? nullptr : &*found;
}

std::string html_report(const base::Path& run_directory) {
  const Run run = record::read_run(run_directory);
  return page_of(title_of(run), body_of(run));
}

void write_report(const base::Path& run_directory) {
  base::write_file_atomically(record::RunFiles(run_directory).report_path(), html_report(run_directory));
}

}  // namespace retort::report
