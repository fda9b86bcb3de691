// A group of one: every call is the identity.
#include <cstring>

#include "retort/base/error.h"
#include "retort/comm/group.h"
#include "retort/comm/staged_call.h"

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
  Single(std::shared_ptr<Job> job, std::string level) : job_(std::move(job)), level_(std::move(level)) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const std::string& level() const override { return level_; }
  int node() const override { return 0; }
  std::unique_ptr<Group> split(int, const std::string& level) override {
    return std::make_unique<Single>(job_, level);
  }
  std::unique_ptr<CommonBlock> common_block(std::int64_t bytes) override {
    return std::make_unique<OwnBlock>(bytes);
  }
  bool has_common_memory() const override { return true; }
  Job& job() const override { return *job_; }

 protected:
  Handle start(const Collective& call) override {
    if (call.from.bytes() == 0 || call.from.data == call.to.data) return {};
    const StagedCall staged(call, job_->accelerator());
    const auto& here = staged.call();
    std::memmove(here.to.data, here.from.data, static_cast<std::size_t>(here.from.bytes()));
    staged.finish();
    return {};
  }

 private:
  std::shared_ptr<Job> job_;
  std::string level_;
};

}  // namespace

std::unique_ptr<Group> single_group() {
  return std::make_unique<Single>(lone_job(), "world");
}

}  // namespace retort::comm
