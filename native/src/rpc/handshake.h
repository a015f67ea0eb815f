// What two peers say before the first message: a magic number, their keys, and the proof that they know a secret.
#ifndef TVM_SRC_RPC_HANDSHAKE_H_
#define TVM_SRC_RPC_HANDSHAKE_H_

#include <string>

#include "channel.h"

namespace tvm {
namespace runtime {
namespace rpc {

// Answers to a key, beside the magic number itself, which accepts it.
enum class Answer : int32_t {
  kDuplicate = 1,  // a proxy has a server of that key
  kMismatch = 2,   // there is no server of that key
  kProve = 3,      // the peer is to prove that it knows the secret; an extension
  kRefused = 4,    // the proof is wrong
};

// The options that follow a key: "client:board -timeout=10".
struct KeyOptions {
  std::string key;
  double timeout{0};
  bool can_prove{false};
};
KeyOptions ParseKey(const std::string& text);

// The client's part, and that of a server that connects to a proxy; the other side's key with its options.
std::string HandshakeAsClient(Channel* channel, const std::string& own_key, const std::string& secret, const std::string& peer);

// The second half of that part, for a server that waits at a proxy between the two.
void SendKey(Channel* channel, const std::string& own_key, const std::string& secret);
std::string ReceiveKey(Channel* channel, const std::string& own_key, const std::string& secret, const std::string& peer);

// The server's part. False if the client was refused; it has been told why.
bool HandshakeAsServer(Channel* channel, const std::string& match_key, const std::string& server_key, const std::string& secret,
                       KeyOptions* client);

// The secret in a file, without white space around it; raises if others may read the file.
std::string ReadSecret(const std::string& path);
// Bytes that nobody can guess.
std::string RandomBytes(size_t count);

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RPC_HANDSHAKE_H_
