// Messages: a length, a code, and what belongs to it. docs/rpc.md describes them.
#ifndef TVM_SRC_RPC_PROTOCOL_H_
#define TVM_SRC_RPC_PROTOCOL_H_

#include <tvm/runtime/packed_func.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "channel.h"

namespace tvm {
namespace runtime {
namespace rpc {

constexpr int32_t kMagic = 0xff271;
constexpr int32_t kTrackerMagic = 0x2f271;
constexpr const char* kProtocolVersion = "0.8.0";
// of objects that stay on the other side
constexpr uint32_t kObjectRefIndex = 9;

enum class Code : int32_t {
  kNone,
  kShutdown,
  kInitServer,
  kCallFunc,
  kReturn,
  kException,
  kCopyFromRemote,
  kCopyToRemote,
  kCopyAck,
  // functions of every session, whose arguments and result are packed as those of calls
  kGetGlobalFunc,
  kFreeHandle,
  kDevSetDevice,
  kDevGetAttr,
  kDevAllocData,
  kDevFreeData,
  kDevStreamSync,
  kCopyAmongRemote,
  kDevAllocDataWithScope,
  kDevCreateStream,
  kDevFreeStream,
  kDevSetStream,
  kDevGetCurrentStream,
};

// Arguments of a call that were read from a message. They live as long as this and the message.
class DecodedArgs {
 public:
  TVMArgs args() const { return TVMArgs(values_.data(), codes_.data(), static_cast<int>(codes_.size())); }
  std::vector<TVMValue>& values() { return values_; }
  std::vector<int>& codes() { return codes_; }

 private:
  friend class PacketReader;
  struct Tensor {
    DLTensor tensor;
    std::vector<int64_t> shape;
  };
  std::vector<TVMValue> values_;
  std::vector<int> codes_;
  std::deque<std::string> texts_;
  std::deque<TVMByteArray> bytes_;
  std::deque<Tensor> tensors_;
};

// A message that is being written. Long byte strings are borrowed until it is sent.
class PacketWriter {
 public:
  explicit PacketWriter(Code code) {
    Put<uint64_t>(0);
    Put(code);
  }
  template <class T>
  void Put(const T& value) {
    PutBytes(&value, sizeof(T));
  }
  void PutBytes(const void* data, size_t size) {
    buffer_.append(static_cast<const char*>(data), size);
  }
  void PutText(const char* data, size_t size);
  void PutTensor(const DLTensor& tensor);
  // Functions, modules and objects are handles of the other side.
  void PutArgs(TVMArgs args);
  // Sends it, with bytes at its end that the message's length counts.
  void Send(Channel* channel, Piece tail = {nullptr, 0});

 private:
  void PutValue(TVMValue value, int code);

  struct Borrowed {
    size_t at;  // it comes before this place of the buffer
    Piece piece;
  };
  std::string buffer_;
  std::vector<Borrowed> borrowed_;
  uint64_t borrowed_bytes_{0};
};

// The bytes of a message, which grow as they arrive: what its length promises is not believed before.
class PacketBody {
 public:
  PacketBody() = default;
  PacketBody(const PacketBody&) = delete;
  PacketBody& operator=(const PacketBody&) = delete;
  ~PacketBody() { std::free(data_); }
  void ReadFrom(Channel* channel, uint64_t size);
  const char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_{nullptr};
  size_t size_{0};
  size_t capacity_{0};
};

// Reads a message's bytes, every bound checked.
class PacketReader {
 public:
  PacketReader(const char* data, size_t size) : pos_(data), end_(data + size) {}
  explicit PacketReader(const PacketBody& body) : PacketReader(body.data(), body.size()) {}
  size_t left() const { return static_cast<size_t>(end_ - pos_); }
  const char* Take(uint64_t size);
  template <class T>
  T Read() {
    T value;
    std::memcpy(&value, Take(sizeof(T)), sizeof(T));
    return value;
  }
  std::string ReadText();
  void ReadTensor(DLTensor* tensor, std::vector<int64_t>* shape);
  void ReadArgs(DecodedArgs* into);
  // Raises if there is something after what was read.
  void CheckEnd() const;

 private:
  void ReadValue(int code, TVMValue* value, DecodedArgs* into);

  const char* pos_;
  const char* end_;
};

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RPC_PROTOCOL_H_
