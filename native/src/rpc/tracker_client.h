// A server's connection to the tracker, at which it offers itself.
#ifndef TVM_SRC_RPC_TRACKER_CLIENT_H_
#define TVM_SRC_RPC_TRACKER_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "channel.h"

namespace tvm {
namespace runtime {
namespace rpc {

class TrackerClient {
 public:
  // Connects and tells the tracker about the server; raises if that fails. An empty `address` lets the tracker take the
  // address that it sees.
  TrackerClient(const std::string& host, int port, const std::string& secret, const std::string& key,
                const std::string& address, int server_port);
  // Offers the server for one session, to whoever gets the match key.
  void Put(const std::string& match_key);
  // The match keys that nobody has asked for.
  std::vector<std::string> PendingKeys();
  int socket() const { return channel_.socket(); }

 private:
  std::string Ask(const std::string& message);
  void AskForSuccess(const std::string& message);
  void Authenticate(const std::string& secret);

  Channel channel_;
  const std::string key_;
  const std::string address_;
  const int server_port_;
};

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RPC_TRACKER_CLIENT_H_
