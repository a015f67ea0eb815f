// Checksums of files and of what they embed: 64 bits, as fast as memory is read.
#ifndef TVM_SRC_CHECKSUM_H_
#define TVM_SRC_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace tvm {
namespace runtime {

// Of bytes that come piece by piece; how they are cut makes no difference.
class Checksum {
 public:
  explicit Checksum(uint64_t seed = 1);
  void Add(const void* data, size_t size);
  uint64_t Value() const;

 private:
  static constexpr int kLanes = 4;
  static constexpr size_t kBlock = kLanes * sizeof(uint64_t);

  const char* AddBlocks(const char* data, size_t count);

  uint64_t seed_;
  uint64_t lanes_[kLanes];
  uint64_t size_{0};
  char rest_[kBlock];  // the first size_ % kBlock bytes are waiting
};

uint64_t MixIntoChecksum(uint64_t state, uint64_t word);

// The checksum of a text after its last line, as 64 blanks and tabs, which no reader of JSON minds. A program that reads
// and writes the text anew leaves it out.
std::string WithChecksum(const std::string& text);
// Raises if the text ends with a checksum that is not its own; `what` names it.
void CheckText(const std::string& text, const std::string& what);

// Whether readers verify checksums: unless TVM_CHECKSUM is 0.
bool AreChecksumsVerified();

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_CHECKSUM_H_
