// The constants are computed, as the standard defines them: roots of the first primes.
#include "sha256.h"

#include <algorithm>
#include <cmath>

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

constexpr size_t kBlockBytes = 64;
constexpr int kRounds = 64;

// The first 32 bits of the fractional part, which the standard's constants are made of.
uint32_t FractionOf(long double root) { return static_cast<uint32_t>((root - std::floor(root)) * 4294967296.0L); }

struct Constants {
  uint32_t initial[8];
  uint32_t rounds[kRounds];
  Constants() {
    int count = 0;
    for (int n = 2; count < kRounds; ++n) {
      bool is_prime = true;
      for (int d = 2; d * d <= n; ++d) is_prime = is_prime && n % d != 0;
      if (!is_prime) continue;
      if (count < 8) initial[count] = FractionOf(std::sqrt(static_cast<long double>(n)));
      rounds[count++] = FractionOf(std::cbrt(static_cast<long double>(n)));
    }
  }
};

uint32_t Rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

void AddBlock(const unsigned char* block, const Constants& constants, uint32_t* state) {
  uint32_t w[kRounds];
  for (int i = 0; i < 16; ++i) {
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 | block[4 * i + 3];
  }
  for (int i = 16; i < kRounds; ++i) {
    uint32_t s0 = Rotate(w[i - 15], 7) ^ Rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t s1 = Rotate(w[i - 2], 17) ^ Rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
  for (int i = 0; i < kRounds; ++i) {
    uint32_t t1 = h + (Rotate(e, 6) ^ Rotate(e, 11) ^ Rotate(e, 25)) + ((e & f) ^ (~e & g)) + constants.rounds[i] + w[i];
    uint32_t t2 = (Rotate(a, 2) ^ Rotate(a, 13) ^ Rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t last[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state[i] += last[i];
}

}  // namespace

std::string Sha256(const std::string& text) {
  static const Constants constants;
  std::string padded = text + '\x80';
  padded.resize((padded.size() + 8 + kBlockBytes - 1) / kBlockBytes * kBlockBytes, '\0');
  const uint64_t bits = uint64_t{text.size()} * 8;
  for (int i = 0; i < 8; ++i) padded[padded.size() - 1 - i] = static_cast<char>(bits >> (8 * i));
  uint32_t state[8];
  std::copy(constants.initial, constants.initial + 8, state);
  for (size_t at = 0; at < padded.size(); at += kBlockBytes) {
    AddBlock(reinterpret_cast<const unsigned char*>(padded.data()) + at, constants, state);
  }
  std::string digest(kDigestBytes, '\0');
  for (size_t i = 0; i < kDigestBytes; ++i) digest[i] = static_cast<char>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

std::string HmacSha256(const std::string& key, const std::string& text) {
  std::string padded = key.size() > kBlockBytes ? Sha256(key) : key;
  padded.resize(kBlockBytes, '\0');
  std::string inner = padded, outer = padded;
  for (char& c : inner) c = static_cast<char>(c ^ 0x36);
  for (char& c : outer) c = static_cast<char>(c ^ 0x5c);
  return Sha256(outer + Sha256(inner + text));
}

bool AreEqualDigests(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
