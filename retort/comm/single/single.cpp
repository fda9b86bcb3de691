// A group of one: every call is the identity.
#include <cstring>

#include "retort/base/error.h"
#include "retort/comm/group.h"

namespace retort::comm {
namespace {

class OwnBlock final : public CommonBlock {
 public:
  explicit OwnBlock(std::int64_t bytes)
      : bytes_(new std::byte[static_cast<std::size_t>(bytes)]()), size_(bytes) {}
  std::span<std::byte> bytes() const override { return {bytes_.get(), static_cast<std::size_t>(size_)}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::int64_t size_;
};

class Single final : public Group {
 public:
  explicit Single(std::string level) : level_(std::move(level)) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const std::string& level() const override { return level_; }
  int node() const override { return 0; }
  std::unique_ptr<Group> split(int, const std::string& level) override {
    return std::make_unique<Single>(level);
  }
  std::unique_ptr<CommonBlock> common_block(std::int64_t bytes) override {
    return std::make_unique<OwnBlock>(bytes);
  }
  void abort(const std::string&) noexcept override {}

 protected:
  Handle start(const Collective& call) override {
    if (call.from.bytes() > 0 && call.from.data != call.to.data)
      std::memmove(call.to.data, call.from.data, static_cast<std::size_t>(call.from.bytes()));
    return {};
  }

 private:
  std::string level_;
};

}  // namespace

std::unique_ptr<Group> single_group() {
  return std::make_unique<Single>("world");
}

}  // namespace retort::comm
