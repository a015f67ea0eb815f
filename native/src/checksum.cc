// Checksums.
#include "checksum.h"

#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tvm {
namespace runtime {
namespace {

constexpr size_t kTextDigits = 64;
constexpr size_t kFewestDigits = 8;  // more blanks than any text has by chance

}  // namespace

// Each step is reversible, so a word that differs changes the result for sure.
uint64_t MixIntoChecksum(uint64_t state, uint64_t word) {
  state ^= word;
  return (state << 29 | state >> 35) * 0x9E3779B97F4A7C15u;
}

Checksum::Checksum(uint64_t seed) : seed_(seed), lanes_{seed, seed + 1, seed + 2, seed + 3} {}

const char* Checksum::AddBlocks(const char* data, size_t count) {
  uint64_t lanes[kLanes];
  std::memcpy(lanes, lanes_, sizeof(lanes));
  for (; count > 0; --count, data += kBlock) {
    uint64_t words[kLanes];
    std::memcpy(words, data, sizeof(words));
    for (int i = 0; i < kLanes; ++i) lanes[i] = MixIntoChecksum(lanes[i], words[i]);
  }
  std::memcpy(lanes_, lanes, sizeof(lanes));
  return data;
}

void Checksum::Add(const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  size_t waiting = size_ % kBlock;
  size_ += size;
  if (waiting > 0) {
    size_t count = std::min(size, kBlock - waiting);
    if (count > 0) std::memcpy(rest_ + waiting, bytes, count);
    bytes += count;
    size -= count;
    if (waiting + count < kBlock) return;
    AddBlocks(rest_, 1);
  }
  bytes = AddBlocks(bytes, size / kBlock);
  if (size % kBlock > 0) std::memcpy(rest_, bytes, size % kBlock);
}

uint64_t Checksum::Value() const {
  uint64_t words[kLanes] = {};
  if (size_ % kBlock > 0) std::memcpy(words, rest_, size_ % kBlock);
  uint64_t value = seed_;
  for (int i = 0; i < kLanes; ++i) value = MixIntoChecksum(value, MixIntoChecksum(lanes_[i], words[i]));
  return MixIntoChecksum(value, size_);
}

std::string WithChecksum(const std::string& text) {
  Checksum checksum;
  checksum.Add(text.data(), text.size());
  uint64_t value = checksum.Value();
  std::string result = text + "\n";
  for (size_t i = 0; i < kTextDigits; ++i) result += value >> i & 1 ? '\t' : ' ';
  return result;
}

void CheckText(const std::string& text, const std::string& what) {
  size_t end = text.find_last_not_of(" \t");
  size_t digits = end == std::string::npos ? 0 : text.size() - end - 1;
  if (digits < kFewestDigits || text[end] != '\n' || !AreChecksumsVerified()) return;
  if (digits != kTextDigits || WithChecksum(text.substr(0, end)) != text) {
    ThrowValueError(what, " is damaged: its checksum is wrong (in a text that was changed on purpose, remove the blanks after the last line)");
  }
}

bool AreChecksumsVerified() {
  const char* text = std::getenv("TVM_CHECKSUM");
  std::string value = text == nullptr ? "" : text;
  std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::tolower(c); });
  return value != "0" && value != "off" && value != "false";
}

TVM_REGISTER_GLOBAL("runtime.WithChecksum").set_body_typed([](std::string text) { return WithChecksum(text); });

// (array of bytes, how many of the first to leave out) -> 16 digits
TVM_REGISTER_GLOBAL("runtime.Checksum").set_body_typed([](NDArray bytes, int64_t first) {
  int64_t size = static_cast<int64_t>(DataBytes(*bytes.tensor()));
  if (first < 0 || first > size) ThrowValueError("cannot leave out ", first, " of ", size, " bytes");
  Checksum checksum;
  checksum.Add(static_cast<char*>(bytes->data) + bytes->byte_offset + first, static_cast<size_t>(size - first));
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(checksum.Value()));
  return std::string(digits);
});

}  // namespace runtime
}  // namespace tvm
