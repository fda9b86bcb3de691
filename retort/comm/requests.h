#pragma once
// Work that rank 0 leads: it asks, and every rank answers with its part.  What is decided from the answers is
// decided by rank 0 alone, so ranks whose processors round differently cannot part.

#include <functional>
#include <string>
#include <vector>

#include "retort/comm/group.h"

namespace retort::comm {

class Requests {
 public:
  /// What this rank makes of a request, bytes both.
  using Answer = std::function<std::string(const std::string& request)>;

  /// Every rank of the group has one; `group` outlives it.
  Requests(Group& group, Answer answer) : group_(group), answer_(std::move(answer)) {}
  /// On rank 0: serve() of the others returns, unless it threw because a request failed.
  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  /// On rank 0, while the others serve: the answers of all ranks, in their order.  Throws on every rank what
  /// the first rank threw that failed.
  std::vector<std::string> ask(const std::string& request);
  /// On the other ranks: answers what rank 0 asks, until it has no more.
  void serve();

 private:
  std::vector<std::string> answers(const std::string& request);

  Group& group_;
  Answer answer_;
  bool failed_ = false;  // of rank 0: the last request, which the others know too
};

}  // namespace retort::comm
