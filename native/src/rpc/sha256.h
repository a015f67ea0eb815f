// SHA-256 and the keyed digest HMAC-SHA256, as of FIPS 180-4 and RFC 2104.
#ifndef TVM_SRC_RPC_SHA256_H_
#define TVM_SRC_RPC_SHA256_H_

#include <cstdint>
#include <string>

namespace tvm {
namespace runtime {
namespace rpc {

constexpr size_t kDigestBytes = 32;

std::string Sha256(const std::string& text);
std::string HmacSha256(const std::string& key, const std::string& text);
// Whether two digests are the same, in a time that does not depend on where they differ.
bool AreEqualDigests(const std::string& a, const std::string& b);

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RPC_SHA256_H_
