#include "cli/rates_file.h"

#include "retort/base/files.h"
#include "retort/base/output_file.h"
#include "retort/report/generation_page.h"

namespace retort::cli {

void require_rates_file(const std::string& path) {
  if (path.empty()) return;
  base::require_replaceable(path, "what retort bench writes", [](std::string_view beginning) {
    return beginning.starts_with("{\n  \"format\": ") && beginning.find("\"kind\": \"") != beginning.npos &&
           beginning.find("\"machine\": ") != beginning.npos;
  });
}

void require_page_file(const std::string& path) {
  if (path.empty()) return;
  base::require_replaceable(path, "a page of retort bench generate", report::is_generation_page);
}

void write_rates_file(const std::string& path, const base::Json& rates, record::Observer& observer) {
  if (path.empty()) return;
  base::write_file_atomically(path, rates.dump(2) + "\n");
  observer.message(record::Level::info, "written: " + path);
}

}  // namespace retort::cli
