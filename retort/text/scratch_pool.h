#pragma once
// Working memory that threads take in turn, so that a text finds the words of those before it.

#include <memory>
#include <mutex>
#include <vector>

#include "retort/text/bpe.h"

namespace retort::text {

/// There are as many pieces of it as there were threads at once.  All functions may be called from several
/// threads.
class ScratchPool {
 public:
  std::unique_ptr<BpeScratch> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<BpeScratch>();
    auto scratch = std::move(free_.back());
    free_.pop_back();
    return scratch;
  }
  void give_back(std::unique_ptr<BpeScratch> scratch) {
    scratch->shrink();
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<BpeScratch>> free_;
};

}  // namespace retort::text
