// A server: accepts clients, and serves each in a process of its own.
#ifndef TVM_SRC_RPC_LISTENER_H_
#define TVM_SRC_RPC_LISTENER_H_

#include <tvm/runtime/packed_func.h>

#include <string>

#include "serve.h"

namespace tvm {
namespace runtime {
namespace rpc {

struct ListenerOptions {
  std::string host{"127.0.0.1"};
  int port{9091};
  int port_end{9199};
  std::string key;
  bool is_proxy{false};  // host and port are those of a proxy, to which the server connects
  std::string tracker_host;
  int tracker_port{0};
  std::string custom_address;  // what the tracker tells clients in place of the address that it sees
  std::string key_file;
  bool is_open{false};  // addresses that others reach need no secret
  bool reuses_address{true};
  bool is_silent{false};
  double session_seconds{0};  // the most that a session may take, 0 for no limit
  int control{-1};            // a descriptor at whose end the server ends
  ServeLimits limits{uint64_t{4} << 30, 0, 60};
};

// What the surrounding language does in its place; each may be null.
struct ListenerHooks {
  PackedFunc fork;     // forks this process; the number of the child, 0 in the child
  PackedFunc ready;    // called with the port once clients can come
  PackedFunc prepare;  // called in a session's process before it is served
  PackedFunc finish;   // and after it
};

// Serves until a signal, or the end of the control descriptor.
void Listen(const ListenerOptions& options, const ListenerHooks& hooks);

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RPC_LISTENER_H_
