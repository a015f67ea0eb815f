// JSON messages to the tracker, each with its length before it.
#include "tracker_client.h"

#include "../json.h"
#include "handshake.h"
#include "protocol.h"
#include "sha256.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

constexpr int32_t kMaxAnswerBytes = 1 << 24;
constexpr auto kPatience = std::chrono::seconds(10);

enum TrackerCode : int { kFail = -1, kSuccess = 0, kPut = 3, kUpdateInfo = 5, kPendingKeys = 7, kAuthenticate = 8 };

std::string Hex(const std::string& bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char c : bytes) text += {digits[c >> 4], digits[c & 15]};
  return text;
}

std::string AddressJson(const std::string& address) { return address.empty() ? "null" : Json::Quote(address); }

}  // namespace

TrackerClient::TrackerClient(const std::string& host, int port, const std::string& secret, const std::string& key,
                             const std::string& address, int server_port)
    : channel_(ConnectTo(host, port, std::chrono::seconds(5))), key_(key), address_(address), server_port_(server_port) {
  channel_.set_stall_limit(kPatience);
  channel_.Write(&kTrackerMagic, sizeof(kTrackerMagic));
  if (channel_.Read<int32_t>() != kTrackerMagic) ThrowError(host, ":", port, " is no RPC tracker");
  if (!secret.empty()) Authenticate(secret);
  AskForSuccess(Cat("[", static_cast<int>(kUpdateInfo), ", {\"key\": ", Json::Quote("server:" + key), ", \"addr\": [",
                    AddressJson(address), ", ", server_port, "]}]"));
}

void TrackerClient::Authenticate(const std::string& secret) {
  std::string nonce = Hex(RandomBytes(kDigestBytes));
  std::string text = Ask(Cat("[", static_cast<int>(kAuthenticate), ", \"", nonce, "\"]"));
  Json answer = Json::Parse(text, "the tracker's answer");
  if (answer.kind() != Json::Kind::kArray || answer.Array("answer").size() != 3) {
    ThrowError("the RPC tracker does not know the secret that this server was given, or asks for none");
  }
  const std::string other = answer.Array("answer")[1].String("nonce");
  if (!AreEqualDigests(answer.Array("answer")[2].String("proof"), Hex(HmacSha256(secret, "tracker" + nonce + other)))) {
    ThrowError("the RPC tracker has another secret than this server");
  }
  AskForSuccess(Cat("[", static_cast<int>(kAuthenticate), ", \"", Hex(HmacSha256(secret, "peer" + other + nonce)), "\"]"));
}

void TrackerClient::Put(const std::string& match_key) {
  AskForSuccess(Cat("[", static_cast<int>(kPut), ", ", Json::Quote(key_), ", [", server_port_, ", ", Json::Quote(match_key),
                    "], ", AddressJson(address_), "]"));
}

std::vector<std::string> TrackerClient::PendingKeys() {
  Json answer = Json::Parse(Ask(Cat("[", static_cast<int>(kPendingKeys), "]")), "the tracker's answer");
  std::vector<std::string> keys;
  for (const Json& key : answer.Array("match keys")) keys.push_back(key.String("match key"));
  return keys;
}

std::string TrackerClient::Ask(const std::string& message) {
  int32_t size = static_cast<int32_t>(message.size());
  channel_.Write({{&size, sizeof(size)}, {message.data(), message.size()}});
  size = channel_.Read<int32_t>();
  if (size < 0 || size > kMaxAnswerBytes) ThrowError("the RPC tracker sent an answer of ", size, " bytes");
  std::string answer(static_cast<size_t>(size), '\0');
  if (size > 0) channel_.Read(&answer[0], answer.size());
  return answer;
}

void TrackerClient::AskForSuccess(const std::string& message) {
  std::string answer = Ask(message);
  if (answer != "0") ThrowError("the RPC tracker refuses this server: ", answer);
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
