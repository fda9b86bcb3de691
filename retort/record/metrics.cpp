#include "retort/record/metrics.h"

#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "retort/base/error.h"

namespace retort::record {
namespace {

/// Empty for a line that is not one whole object.
std::optional<base::Json> parse_line(const std::string& line) {
  try {
    base::Json object = base::parse_json(line);
    if (object.is_object()) return object;
  } catch (const base::JsonFault&) {
  }
  return {};
}

/// Calls `use(line, object)` for each sound line; a file that is absent has none.
template <typename Use>
void for_each_object(const base::Path& path, Use use) {
  std::ifstream in(path, std::ios::binary);
  std::string line;
  while (std::getline(in, line)) {
    if (in.eof()) break;  // no newline: the line was cut off
    if (auto object = parse_line(line)) use(line, std::move(*object));
  }
}

bool later(const base::Json& object, std::string_view stage, std::int64_t step) {
  const auto name = object.find("stage");
  const auto number = object.find("step");
  return name != object.end() && name->is_string() && name->get_ref<const std::string&>() == stage &&
         number != object.end() && number->is_number_integer() && number->get<std::int64_t>() > step;
}

}  // namespace

Metrics::Metrics(base::Path path) : path_(std::move(path)), file_(path_) {}

void Metrics::append(const base::Json& object) {
  if (file_.append(object.dump(-1, ' ', false, base::Json::error_handler_t::replace)) != 0) ++lost_lines_;
}

void Metrics::sync() {
  (void)file_.sync();
}

void Metrics::drop_after(std::string_view stage, std::int64_t step) {
  base::AtomicFile kept(path_);
  for_each_object(path_, [&](const std::string& line, const base::Json& object) {
    if (!later(object, stage, step)) kept.write(line + '\n');
  });
  kept.commit();
  file_ = base::LineFile(path_);
}

std::vector<base::Json> read_metrics(const base::Path& path) {
  std::vector<base::Json> objects;
  for_each_object(path, [&](const std::string&, base::Json object) { objects.push_back(std::move(object)); });
  return objects;
}

}  // namespace retort::record
