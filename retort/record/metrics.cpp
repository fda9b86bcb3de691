#include "retort/record/metrics.h"

#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/json_file.h"

namespace retort::record {
namespace {

/// Empty for a line that is not one whole object.
std::optional<base::Json> parse_line(const std::string& line) {
  try {
    base::Json object = base::parse_own_json(line);
    if (object.is_object()) return object;
  } catch (const base::JsonFault&) {
  }
  return {};
}

/// Calls `use(line, object)` for each line, with no object where it is none; a file that is absent has none.
/// Throws StorageError where it cannot be read: who writes it anew would lose the rest.
template <typename Use>
void for_each_line(const base::Path& path, Use use) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return;
  auto in = base::open_file(path);
  std::string line;
  while (std::getline(in, line)) {
    if (in.eof()) break;  // no newline: the line was cut off
    use(line, parse_line(line));
  }
  base::require_was_read(in, path);
}

bool is_of(const base::Json& object, std::string_view stage) {
  const auto name = object.find("stage");
  return name != object.end() && name->is_string() && name->get_ref<const std::string&>() == stage;
}

bool later(const base::Json& object, std::string_view stage, std::int64_t step) {
  const auto number = object.find("step");
  return is_of(object, stage) && number != object.end() && number->is_number_integer() &&
         number->get<std::int64_t>() > step;
}

}  // namespace

Metrics::Metrics(base::Path path) : path_(std::move(path)), file_(path_) {}

void Metrics::append(const base::Json& object) {
  const int error = file_.append(object.dump(-1, ' ', false, base::Json::error_handler_t::replace));
  if (error == 0) return;
  ++lost_lines_;
  lost_because_ = error;
}

void Metrics::sync(Observer& observer) {
  if (const int error = file_.sync(); error != 0)
    observer.message(Level::warning, base::join(path_.string(), ": could not be synced to disk: ",
                                                base::system_message(error),
                                                "; training goes on, but a crash may cost the last lines."));
  if (lost_lines_ > 0)
    observer.message(
        Level::warning,
        base::join(
            path_.string(), ": ", lost_lines_, lost_lines_ == 1 ? " line was" : " lines were",
            " lost, writing failed: ", base::system_message(lost_because_),
            "; training goes on, but its curve lacks them. Make room or give back the right to write."));
  lost_lines_ = 0;
}

void Metrics::drop_after(std::string_view stage, std::int64_t step) {
  rewrite([&](const base::Json& object) { return !later(object, stage, step); });
}

void Metrics::rewrite(const std::function<bool(const base::Json& object)>& keep) {
  base::AtomicFile kept(path_);
  for_each_line(path_, [&](const std::string& line, const std::optional<base::Json>& object) {
    if (!object || keep(*object)) kept.write(line + '\n');
  });
  kept.commit();
  file_ = base::LineFile(path_);
}

std::int64_t for_each_metric(const base::Path& path, const std::function<void(base::Json object)>& use) {
  std::int64_t damaged = 0;
  for_each_line(path, [&](const std::string&, std::optional<base::Json> object) {
    if (object)
      use(std::move(*object));
    else
      ++damaged;
  });
  return damaged;
}

std::vector<base::Json> read_metrics(const base::Path& path, std::int64_t* damaged) {
  std::vector<base::Json> objects;
  const auto count = for_each_metric(path, [&](base::Json object) { objects.push_back(std::move(object)); });
  if (damaged) *damaged = count;
  return objects;
}

}  // namespace retort::record
