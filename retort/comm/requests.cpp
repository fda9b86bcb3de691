#include "retort/comm/requests.h"

#include <exception>

namespace retort::comm {
namespace {

// Before the text of a request; an empty message is the end.
constexpr char kRequest = '?';

}  // namespace

Requests::~Requests() {
  if (group_.rank() != 0 || group_.size() == 1 || failed_) return;
  try {
    std::string end;
    group_.share(end);
  } catch (const std::exception&) {  // another rank failed: whoever waits for a call is told
  }
}

std::vector<std::string> Requests::answers(const std::string& request) {
  std::string own;
  group_.agree([&] { own = answer_(request); });
  return group_.all_texts(own);
}

std::vector<std::string> Requests::ask(const std::string& request) {
  if (group_.size() == 1) return {answer_(request)};
  failed_ = true;  // until it is answered
  auto message = kRequest + request;
  group_.share(message);
  auto all = answers(request);
  failed_ = false;
  return all;
}

void Requests::serve() {
  for (std::string message;; message.clear()) {
    group_.share(message);
    if (message.empty()) return;
    (void)answers(message.substr(1));
  }
}

}  // namespace retort::comm
