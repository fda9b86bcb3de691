#include "retort/data/json_line.h"

#include <limits>
#include <utility>

#include "retort/data/records.h"

namespace retort::data {
namespace {

constexpr std::size_t kMostNames = 4;

class LineVisitor : public base::JsonVisitor {
 public:
  explicit LineVisitor(std::string_view field) : field_(field) {}

  void scalar(base::Json&& value) override { take(std::move(value)); }
  void begin(base::Json&& empty) override {
    take(std::move(empty));
    ++depth_;
  }
  void key(std::string&& name) override {
    if (depth_ != 1) return;
    wanted_ = name == field_;
    if (line.names.size() < kMostNames) line.names.push_back(std::move(name));
  }
  void end() override { --depth_; }

  JsonLine line;

 private:
  void take(base::Json&& value) {
    if (depth_ == 0)
      line.root = std::move(value);
    else if (depth_ == 1 && wanted_)
      line.member = std::move(value);
  }

  std::string_view field_;
  bool wanted_ = false;  // the value that follows is that of the field
  int depth_ = 0;
};

}  // namespace

JsonLine read_json_line(std::string_view line, std::string_view field) {
  LineVisitor visitor(field);
  base::visit_json(line, visitor,
                   {.max_bytes = kMaxDocumentBytes, .max_values = std::numeric_limits<std::size_t>::max()});
  return std::move(visitor.line);
}

}  // namespace retort::data
