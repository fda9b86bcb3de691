#pragma once
// A loop of a template as it goes: what it is at, and the variable `loop`.

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "retort/chat/template_value.h"

namespace retort::chat {

/// Items are tested when they are needed and not before: what a body assigns may decide on later ones.
class LoopState {
 public:
  using Test = std::function<bool(const Value&)>;
  LoopState(Values items, Test test) : items_(std::move(items)), test_(std::move(test)) {}

  /// Goes to the next item; false where there is none.
  bool advance();
  const Value& item() const { return current_; }
  /// The item behind this one, or null.
  const Value* next_item();
  std::int64_t index0() const { return index0_; }
  /// Tests all that are left.
  std::int64_t length();
  const Value& previous() const { return previous_; }
  /// Whether the values differ from those of the last call.
  bool changed(const Values& values, Budget& budget);
  /// What refers to the interpreter goes.
  void finish();

 private:
  std::optional<Value> find_next();

  Values items_;
  Test test_;
  std::size_t at_ = 0;
  std::optional<Value> ahead_;
  Value current_, previous_;
  std::int64_t index0_ = -1;
  std::optional<Values> last_changed_;
};

/// loop.name
Value loop_attribute(const std::shared_ptr<LoopState>& loop, std::string_view name);

}  // namespace retort::chat
