#include "retort/report/page.h"

#include "retort/report/assets.h"

namespace retort::report {
namespace {

/// Ours and Chart.js: neither contains what would end the element (a test holds them to it).
Html script(std::string_view code) {
  return element("script", Html::markup(std::string(code)));
}

Html head_of(const std::string& title, const std::string& generator) {
  const Html policy = Html::markup(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
      "'unsafe-inline'; "
      "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n");
  const Html written_by =
      generator.empty()
          ? Html()
          : Html::markup("<meta name=\"generator\" content=\"" + Html(generator).str() + "\">\n");
  return Html::markup("<meta charset=\"utf-8\">\n") + written_by + policy +
         Html::markup(
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n") +
         element("title", title + " \u00b7 Retort") + element("style", Html::markup(std::string(kPageStyle)));
}

}  // namespace

Html page_footer() {
  return element(
      "footer",
      element("p", "Written by Retort. Charts by Chart.js 3.9 (MIT licence), contained in this page."));
}

std::string page_of(const std::string& title, const Html& body, const std::string& generator) {
  const Html page =
      element("html", {{"lang", "en"}},
              element("head", head_of(title, generator)) +
                  element("body", element("main", body) + script(kChartScript) + script(kPageScript)));
  return "<!DOCTYPE html>\n" + page.str() + "\n";
}

}  // namespace retort::report
