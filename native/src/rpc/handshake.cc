// Keys and proofs. The proof of either side is a digest over both sides' random numbers, so that neither can be replayed.
#include "handshake.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "protocol.h"
#include "serve.h"
#include "sha256.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

constexpr int32_t kMaxKeyBytes = 4096;
constexpr size_t kNonceBytes = 32;
constexpr size_t kLeastSecretBytes = 16;
constexpr const char* kProofOption = "-auth=hmac-sha256";
constexpr const char* kTimeoutOption = "-timeout=";
constexpr const char* kNoProof =
    "RPCError: this server requires a secret, which classic clients cannot prove to know: connect with classic-tvm and "
    "key_file=..., the server's --key-file";

void WriteText(Channel* channel, const std::string& text) {
  int32_t size = static_cast<int32_t>(text.size());
  channel->Write({{&size, sizeof(size)}, {text.data(), text.size()}});
}

void WriteCode(Channel* channel, Answer answer) {
  int32_t code = kMagic + static_cast<int32_t>(answer);
  channel->Write(&code, sizeof(code));
}

std::string ReadBytes(Channel* channel, size_t size) {
  std::string text(size, '\0');
  if (size > 0) channel->Read(&text[0], size);
  return text;
}

std::string ReadKeyText(Channel* channel) {
  int32_t size = channel->Read<int32_t>();
  if (size < 0 || size > kMaxKeyBytes) throw ChannelClosed(Cat("a key of RPC has at most ", kMaxKeyBytes, " bytes, got ", size));
  return ReadBytes(channel, static_cast<size_t>(size));
}

std::string ProofOf(const char* who, const std::string& secret, const std::string& first, const std::string& second,
                    const std::string& key) {
  return HmacSha256(secret, std::string(who) + first + second + key);
}

// Says that this side can prove what it knows, if it knows something.
std::string Announced(const std::string& key, const std::string& secret) {
  return secret.empty() ? key : key + " " + kProofOption;
}

// Lets a peer that cannot prove anything begin its session, and tells it why there is none.
void RefuseUnproven(Channel* channel, const std::string& server_key) {
  channel->Write(&kMagic, sizeof(kMagic));
  WriteText(channel, server_key);
  const uint64_t size = channel->Read<uint64_t>();
  if (size <= (uint64_t{1} << 20)) channel->Skip(size);
  SendException(channel, kNoProof);
}

}  // namespace

KeyOptions ParseKey(const std::string& text) {
  KeyOptions options;
  std::istringstream words(text);
  words >> options.key;
  for (std::string word; words >> word;) {
    if (word == kProofOption) options.can_prove = true;
    if (word.rfind(kTimeoutOption, 0) == 0) options.timeout = std::strtod(word.c_str() + std::strlen(kTimeoutOption), nullptr);
  }
  if (!(options.timeout > 0)) options.timeout = 0;
  return options;
}

void SendKey(Channel* channel, const std::string& own_key, const std::string& secret) {
  std::string key = Announced(own_key, secret);
  int32_t size = static_cast<int32_t>(key.size());
  channel->Write({{&kMagic, sizeof(kMagic)}, {&size, sizeof(size)}, {key.data(), key.size()}});
}

std::string ReceiveKey(Channel* channel, const std::string& own_key, const std::string& secret, const std::string& peer) {
  channel->WaitForData();  // a proxy answers when it has found the other side
  int32_t answer = channel->Read<int32_t>() - kMagic;
  std::string nonce, own_nonce;
  if (answer == static_cast<int32_t>(Answer::kProve)) {
    if (secret.empty()) throw ChannelClosed(Cat(peer, " asks for a secret, and this side has none: pass key_file=..."));
    nonce = ReadBytes(channel, kNonceBytes);
    own_nonce = RandomBytes(kNonceBytes);
    std::string proof = ProofOf("client", secret, nonce, own_nonce, Announced(own_key, secret));
    channel->Write({{own_nonce.data(), own_nonce.size()}, {proof.data(), proof.size()}});
    channel->WaitForData();
    answer = channel->Read<int32_t>() - kMagic;
  }
  if (answer == static_cast<int32_t>(Answer::kDuplicate)) throw ChannelClosed(Cat("the key ", own_key, " is in use already at ", peer));
  if (answer == static_cast<int32_t>(Answer::kMismatch)) {
    throw ChannelClosed(Cat(peer, " is there, and has no server for the key '", own_key.substr(own_key.find(':') + 1), "'"));
  }
  if (answer == static_cast<int32_t>(Answer::kRefused)) throw ChannelClosed(Cat(peer, " has another secret than this side"));
  if (answer != 0) throw ChannelClosed(Cat(peer, " is no RPC server of TVM: it answers with ", answer + kMagic));
  std::string key = ReadKeyText(channel);
  if (secret.empty()) return key;
  if (nonce.empty()) throw ChannelClosed(Cat(peer, " did not ask for the secret that this side was given, and may be anybody"));
  std::string proof = ReadBytes(channel, kDigestBytes);
  if (!AreEqualDigests(proof, ProofOf("server", secret, own_nonce, nonce, key))) {
    throw ChannelClosed(Cat(peer, " does not know the secret that this side was given"));
  }
  return key;
}

std::string HandshakeAsClient(Channel* channel, const std::string& own_key, const std::string& secret, const std::string& peer) {
  SendKey(channel, own_key, secret);
  return ReceiveKey(channel, own_key, secret, peer);
}

bool HandshakeAsServer(Channel* channel, const std::string& match_key, const std::string& server_key, const std::string& secret,
                       KeyOptions* client) {
  if (channel->Read<int32_t>() != kMagic) return false;
  std::string key = ReadKeyText(channel);
  *client = ParseKey(key);
  if (client->key != "client:" + match_key) {
    WriteCode(channel, Answer::kMismatch);
    return false;
  }
  std::string proof;
  if (!secret.empty()) {
    if (!client->can_prove) {
      RefuseUnproven(channel, server_key);
      return false;
    }
    std::string nonce = RandomBytes(kNonceBytes);
    WriteCode(channel, Answer::kProve);
    channel->Write(nonce.data(), nonce.size());
    std::string client_nonce = ReadBytes(channel, kNonceBytes);
    if (!AreEqualDigests(ReadBytes(channel, kDigestBytes), ProofOf("client", secret, nonce, client_nonce, key))) {
      WriteCode(channel, Answer::kRefused);
      return false;
    }
    proof = ProofOf("server", secret, client_nonce, nonce, server_key);
  }
  channel->Write(&kMagic, sizeof(kMagic));
  WriteText(channel, server_key);
  channel->Write(proof.data(), proof.size());
  return true;
}

std::string ReadSecret(const std::string& path) {
  if (path.empty()) return "";
  struct stat info;
  std::ifstream file(path);
  if (!file.good() || stat(path.c_str(), &info) != 0) ThrowValueError("the key file ", path, " cannot be read");
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    ThrowValueError("the key file ", path, " can be read by other users: chmod 600 ", path);
  }
  std::string secret((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const char* white = " \t\r\n";
  size_t begin = secret.find_first_not_of(white);
  secret = begin == std::string::npos ? "" : secret.substr(begin, secret.find_last_not_of(white) - begin + 1);
  if (secret.size() < kLeastSecretBytes) {
    ThrowValueError("the key file ", path, " needs at least ", kLeastSecretBytes, " bytes: head -c 32 /dev/urandom | base64 > ", path);
  }
  return secret;
}

std::string RandomBytes(size_t count) {
  Descriptor source(open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  std::string bytes(count, '\0');
  size_t done = 0;
  while (done < count) {
    ssize_t got = read(source.get(), &bytes[done], count - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) ThrowError("cannot read /dev/urandom");
    done += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
