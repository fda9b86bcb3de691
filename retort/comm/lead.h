#pragma once
// What rank 0 does for all: it alone reads text, writes files and decides.

#include <functional>
#include <string>

#include "retort/comm/group.h"

namespace retort::comm {

/// Runs `act` on rank 0.  Every rank goes on when it has ended, or throws what it threw.  Collective.
void lead(Group& group, const std::function<void()>& act);

/// What `find` returns on rank 0, on every rank.  Throws as lead().  Collective.
std::string led(Group& group, const std::function<std::string()>& find);

}  // namespace retort::comm
