#include "retort/record/metrics.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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

/// Bytes up to and with the last newline.
off_t whole_lines(int descriptor, off_t size) {
  char block[4096];
  while (size > 0) {
    const off_t start = size > off_t{sizeof block} ? size - off_t{sizeof block} : 0;
    const ssize_t count = ::pread(descriptor, block, static_cast<std::size_t>(size - start), start);
    if (count <= 0) return size;
    for (ssize_t i = count; i > 0; --i)
      if (block[i - 1] == '\n') return start + i;
    size = start;
  }
  return 0;
}

}  // namespace

Metrics::Metrics(base::Path path) : path_(std::move(path)) {
  open();
}

Metrics::~Metrics() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Metrics::Metrics(Metrics&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      lost_lines_(other.lost_lines_) {}

void Metrics::open() {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  base::require<base::StorageError>(descriptor_ >= 0, path_.string(),
                                    ": cannot be opened for writing: ", base::system_message(errno), ".");
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) return;
  const off_t whole = whole_lines(descriptor_, status.st_size);
  if (whole < status.st_size && ::ftruncate(descriptor_, whole) != 0)
    throw base::StorageError(base::join(
        path_.string(), ": dropping a line that was cut off failed: ", base::system_message(errno), "."));
}

void Metrics::append(const base::Json& object) {
  const std::string line = object.dump(-1, ' ', false, base::Json::error_handler_t::replace) + '\n';
  struct stat before {};
  const bool known = ::fstat(descriptor_, &before) == 0;
  const ssize_t written = ::write(descriptor_, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return;
  ++lost_lines_;
  // Half a line would spoil the next one.  Where even cutting fails, reading leaves the damaged line out.
  if (known && written > 0 && ::ftruncate(descriptor_, before.st_size) != 0) return;
}

void Metrics::sync() {
  ::fdatasync(descriptor_);
}

void Metrics::drop_after(std::string_view stage, std::int64_t step) {
  base::AtomicFile kept(path_);
  for_each_object(path_, [&](const std::string& line, const base::Json& object) {
    if (!later(object, stage, step)) kept.write(line + '\n');
  });
  kept.commit();
  ::close(descriptor_);
  open();
}

std::vector<base::Json> read_metrics(const base::Path& path) {
  std::vector<base::Json> objects;
  for_each_object(path, [&](const std::string&, base::Json object) { objects.push_back(std::move(object)); });
  return objects;
}

}  // namespace retort::record
