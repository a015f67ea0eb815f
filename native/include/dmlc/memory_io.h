// Streams over memory.
#ifndef DMLC_MEMORY_IO_H_
#define DMLC_MEMORY_IO_H_

#include <dmlc/io.h>

#include <cstring>
#include <stdexcept>

namespace dmlc {

// Reads and overwrites a region of fixed size.
class MemoryFixedSizeStream : public Stream {
 public:
  using Stream::Read;
  using Stream::Write;
  MemoryFixedSizeStream(void* data, size_t size) : data_(static_cast<char*>(data)), size_(size) {}
  size_t Read(void* ptr, size_t size) override {
    size_t count = std::min(size, size_ - at_);
    if (count) std::memcpy(ptr, data_ + at_, count);
    at_ += count;
    return count;
  }
  void Write(const void* ptr, size_t size) override {
    if (size > size_ - at_) throw std::length_error("the stream's memory is full");
    if (size) std::memcpy(data_ + at_, ptr, size);
    at_ += size;
  }
  void Seek(size_t position) { at_ = std::min(position, size_); }
  size_t Tell() const { return at_; }

 private:
  char* data_;
  size_t size_;
  size_t at_{0};
};

// Reads and writes a string, which grows.
class MemoryStringStream : public Stream {
 public:
  using Stream::Read;
  using Stream::Write;
  explicit MemoryStringStream(std::string* data) : data_(data) {}
  size_t Read(void* ptr, size_t size) override {
    size_t count = std::min(size, data_->size() - at_);
    if (count) std::memcpy(ptr, data_->data() + at_, count);
    at_ += count;
    return count;
  }
  void Write(const void* ptr, size_t size) override {
    if (at_ == data_->size()) {
      data_->append(static_cast<const char*>(ptr), size);
    } else {
      if (size > data_->size() - at_) data_->resize(at_ + size);
      std::memcpy(&(*data_)[at_], ptr, size);
    }
    at_ += size;
  }
  void Seek(size_t position) { at_ = std::min(position, data_->size()); }
  size_t Tell() const { return at_; }

 private:
  std::string* data_;
  size_t at_{0};
};

}  // namespace dmlc
#endif  // DMLC_MEMORY_IO_H_
