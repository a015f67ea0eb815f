// A session whose functions and devices another process has.
#ifndef TVM_SRC_RPC_CLIENT_SESSION_H_
#define TVM_SRC_RPC_CLIENT_SESSION_H_

#include <memory>
#include <string>

#include "channel.h"
#include "session.h"

namespace tvm {
namespace runtime {
namespace rpc {

// Begins a session over a channel whose handshake is done. `constructor` are the arguments by which the other side
// makes its session, none for its own functions and devices; `peer` is what messages call it.
std::shared_ptr<Session> BeginClientSession(std::unique_ptr<Channel> channel, const std::string& peer, TVMArgs constructor,
                                            bool is_logged);

// Ends a session that BeginClientSession has begun.
void CloseClientSession(Session* session);

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RPC_CLIENT_SESSION_H_
