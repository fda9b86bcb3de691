#include "retort/chat/template_loop.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "retort/io/quote.h"

namespace retort::chat {
namespace {

std::shared_ptr<const Callable> method(const char* name,
                                       std::function<Value(const Arguments&, Budget&)> call) {
  return std::make_shared<const Callable>(Callable{name, std::move(call)});
}

}  // namespace

std::optional<Value> LoopState::find_next() {
  while (at_ < items_.size()) {
    const Value& item = items_[at_++];
    if (!test_ || test_(item)) return item;
  }
  return std::nullopt;
}

bool LoopState::advance() {
  auto next = ahead_ ? std::exchange(ahead_, std::nullopt) : find_next();
  if (!next) return false;
  previous_ = std::exchange(current_, std::move(*next));
  ++index0_;
  return true;
}

const Value* LoopState::next_item() {
  if (!ahead_) ahead_ = find_next();
  return ahead_ ? &*ahead_ : nullptr;
}

std::int64_t LoopState::length() {
  Values rest;
  while (auto item = find_next()) rest.push_back(std::move(*item));
  items_ = std::move(rest);
  test_ = nullptr;
  at_ = 0;
  return std::ssize(items_) + index0_ + 1 + (ahead_ ? 1 : 0);
}

bool LoopState::changed(const Values& values, Budget& budget) {
  const bool same =
      last_changed_ && std::equal(values.begin(), values.end(), last_changed_->begin(), last_changed_->end(),
                                  [&](const auto& a, const auto& b) { return equal(a, b, budget); });
  if (!same) last_changed_ = values;
  return !same;
}

void LoopState::finish() {
  items_.resize(at_);
  test_ = nullptr;
  last_changed_.reset();
}

Value loop_attribute(const std::shared_ptr<LoopState>& loop, std::string_view name) {
  const auto index0 = loop->index0();
  if (name == "index0") return index0;
  if (name == "index") return index0 + 1;
  if (name == "first") return index0 == 0;
  if (name == "last") return loop->next_item() == nullptr;
  if (name == "length") return loop->length();
  if (name == "revindex") return loop->length() - index0;
  if (name == "revindex0") return loop->length() - index0 - 1;
  if (name == "depth") return std::int64_t{1};
  if (name == "depth0") return std::int64_t{0};
  if (name == "previtem")
    return index0 == 0 ? Value::undefined("there is no previous item") : loop->previous();
  if (name == "nextitem") {
    const Value* next = loop->next_item();
    return next != nullptr ? *next : Value::undefined("there is no next item");
  }
  if (name == "cycle")
    return method("cycle", [loop](const Arguments& arguments, Budget&) {
      if (arguments.positional.empty()) throw TemplateFault{"loop.cycle takes items, found none"};
      return arguments.positional[static_cast<std::size_t>(loop->index0()) % arguments.positional.size()];
    });
  if (name == "changed")
    return method("changed", [loop](const Arguments& arguments, Budget& budget) -> Value {
      return loop->changed(arguments.positional, budget);
    });
  return Value::undefined("a loop has no attribute " + io::quote(name));
}

}  // namespace retort::chat
