// The server's side of a session: reads requests and answers them.
#ifndef TVM_SRC_RPC_SERVE_H_
#define TVM_SRC_RPC_SERVE_H_

#include <cstdint>
#include <string>

#include "channel.h"

namespace tvm {
namespace runtime {
namespace rpc {

// 0 is no limit.
struct ServeLimits {
  uint64_t message_bytes{0};
  uint64_t array_bytes{0};
  int stall_seconds{0};
};

// Answers requests until the other side ends the session or is gone. Nothing that it sends raises.
void ServeSession(Channel* channel, const ServeLimits& limits);

// Sends an error in place of an answer.
void SendException(Channel* channel, const std::string& text);

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RPC_SERVE_H_
