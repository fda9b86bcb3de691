#include "retort/comm/lead.h"

namespace retort::comm {

void lead(Group& group, const std::function<void()>& act) {
  group.agree([&] {
    if (group.rank() == 0) act();
  });
}

std::string led(Group& group, const std::function<std::string()>& find) {
  std::string found;
  lead(group, [&] { found = find(); });
  group.share(found);
  return found;
}

}  // namespace retort::comm
