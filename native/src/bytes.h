// Binary forms: little-endian numbers, length-prefixed text and vectors, read with every bound checked.
#ifndef TVM_SRC_BYTES_H_
#define TVM_SRC_BYTES_H_

#include <tvm/runtime/error.h>

#include <cstring>
#include <string>
#include <vector>

namespace tvm {
namespace runtime {

class ByteReader {
 public:
  // `what` names the data in error messages, "params blob"
  ByteReader(const void* data, size_t size, std::string what)
      : begin_(static_cast<const char*>(data)), pos_(begin_), end_(begin_ + size), what_(std::move(what)) {}

  size_t left() const { return static_cast<size_t>(end_ - pos_); }
  const std::string& what() const { return what_; }

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
};

class ByteWriter {
 public:
  void Append(const void* data, size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  template <class T>
  void Write(T value) {
    static_assert(std::is_arithmetic<T>::value, "numbers only");
    Append(&value, sizeof(T));
  }
  void WriteString(const std::string& value) {
    Write<uint64_t>(value.size());
    bytes_ += value;
  }
  template <class T>
  void WriteVector(const std::vector<T>& values) {
    Write<uint64_t>(values.size());
    Append(values.data(), values.size() * sizeof(T));
  }
  void WriteStrings(const std::vector<std::string>& values) {
    Write<uint64_t>(values.size());
    for (const std::string& value : values) WriteString(value);
  }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_BYTES_H_
