#include "retort/comm/call.h"

#include "retort/base/error.h"

namespace retort::comm {

std::string described(const CallId& call) {
  return base::join(base::word(static_cast<Op>(call.op)), " of ", call.count, " ",
                    base::word(static_cast<Type>(call.type)));
}

std::string different_calls(const std::string& level, int rank, const CallId& call, int other_rank,
                            const CallId& other) {
  return base::join("internal error, please report it: call ", call.number, " of the group '", level, "' is ",
                    described(call), " on rank ", rank, " and ", described(other), " on rank ", other_rank,
                    "; nothing was moved.");
}

}  // namespace retort::comm
