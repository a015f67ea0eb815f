// Binary forms: little-endian numbers, length-prefixed text and vectors, read with every bound checked.
#ifndef TVM_SRC_BYTES_H_
#define TVM_SRC_BYTES_H_

#include <dmlc/io.h>
#include <tvm/runtime/error.h>
#include <tvm/runtime/module.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "checksum.h"

namespace tvm {
namespace runtime {

class ByteReader : public dmlc::Stream {
 public:
  using dmlc::Stream::Read;
  using dmlc::Stream::Write;
  // `what` names the data in error messages, "params blob". With an `owner`, which keeps the data where it is, what is
  // read may share it.
  ByteReader(const void* data, size_t size, std::string what, ObjectPtr<Object> owner = nullptr)
      : begin_(static_cast<const char*>(data)), pos_(begin_), end_(begin_ + size), what_(std::move(what)),
        owner_(std::move(owner)) {}

  // The reader behind the stream that loaders of modules get.
  static ByteReader* Of(void* stream) { return static_cast<ByteReader*>(LoaderStream(stream)); }

  size_t Read(void* ptr, size_t size) override {
    size_t count = std::min(size, left());
    if (count) std::memcpy(ptr, Take(count), count);
    return count;
  }
  void Write(const void*, size_t) override { ThrowError(what_, " cannot be written"); }

  size_t left() const { return static_cast<size_t>(end_ - pos_); }
  const std::string& what() const { return what_; }
  const ObjectPtr<Object>& owner() const { return owner_; }
  const char* pos() const { return pos_; }
  // Whether all bytes are known to be as they were written, so that checksums of parts need not be looked at.
  bool is_verified() const { return is_verified_; }
  void set_verified() { is_verified_ = true; }

  const char* Take(size_t size) {
    if (size > left()) {
      ThrowValueError(what_, " is truncated: ", size, " bytes wanted at offset ", pos_ - begin_, ", ", left(), " left");
    }
    const char* start = pos_;
    pos_ += size;
    return start;
  }
  template <class T>
  T Read() {
    T value;
    std::memcpy(&value, Take(sizeof(T)), sizeof(T));
    return value;
  }
  std::string ReadString() {
    uint64_t size = Read<uint64_t>();
    return std::string(Take(Checked(size, 1)), size);
  }
  template <class T>
  std::vector<T> ReadVector() {
    uint64_t count = Read<uint64_t>();
    std::vector<T> values(Checked(count, sizeof(T)));
    if (count) std::memcpy(values.data(), Take(count * sizeof(T)), count * sizeof(T));
    return values;
  }
  std::vector<std::string> ReadStrings() {
    uint64_t count = Checked(Read<uint64_t>(), sizeof(uint64_t));
    std::vector<std::string> values(count);
    for (std::string& value : values) value = ReadString();
    return values;
  }
  // The count itself, if that many items can be left at all.
  uint64_t Checked(uint64_t count, size_t item_bytes) {
    if (count > left() / item_bytes) {
      ThrowValueError(what_, " is truncated or corrupt: ", count, " items announced, ", left(), " bytes left");
    }
    return count;
  }

 private:
  const char* begin_;
  const char* pos_;
  const char* end_;
  std::string what_;
  ObjectPtr<Object> owner_;
  bool is_verified_{!AreChecksumsVerified()};
};

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_BYTES_H_
