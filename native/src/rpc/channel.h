// Streams of bytes between two processes, over a socket or a pair of pipes.
#ifndef TVM_SRC_RPC_CHANNEL_H_
#define TVM_SRC_RPC_CHANNEL_H_

#include <tvm/runtime/error.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tvm {
namespace runtime {
namespace rpc {

using Clock = std::chrono::steady_clock;

// The other side has gone, or sends nothing more.
class ChannelClosed : public Error {
 public:
  explicit ChannelClosed(const std::string& what) : Error("RPCError: " + what) {}
};

// A descriptor that is closed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    Close();
    fd_ = other.Release();
    return *this;
  }
  ~Descriptor() { Close(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int Release() {
    int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void Close();

 private:
  int fd_{-1};
};

// A part of what is sent: bytes that stay where they are until then.
struct Piece {
  const void* data;
  size_t size;
};

class Channel {
 public:
  // For a socket both are the same descriptor.
  Channel(Descriptor reader, Descriptor writer) : reader_(std::move(reader)), writer_(std::move(writer)) {}
  explicit Channel(Descriptor socket);

  void Write(const std::vector<Piece>& pieces);
  void Write(const void* data, size_t size) { Write({{data, size}}); }
  // Waits for all of the bytes; raises ChannelClosed if they do not come.
  void Read(void* data, size_t size);
  void Skip(uint64_t size);
  // Whether something comes, false at the end of the stream. This waits as long as it takes.
  bool WaitForData();
  template <class T>
  T Read() {
    T value;
    Read(&value, sizeof(T));
    return value;
  }
  // How long Read waits for the next bytes, and Write for room; without a limit as long as it takes.
  void set_stall_limit(Clock::duration limit) { stall_limit_ = limit; }
  int socket() const { return reader_.get(); }
  // Whether a read or write has failed: then nothing more can be told.
  bool is_failed() const { return is_failed_; }

 private:
  [[noreturn]] void Fail(const std::string& what);
  // Waits until the descriptor can be used; raises at the stall limit, and for Ctrl-C.
  void Wait(int fd, short events, bool is_limited);
  size_t Receive(void* data, size_t size);

  Descriptor reader_;
  Descriptor writer_;
  Clock::duration stall_limit_{0};
  std::vector<char> buffer_;
  size_t begin_{0};
  size_t end_{0};
  bool is_failed_{false};
};

// A connected socket; raises RPCError if nobody answers in time.
Descriptor ConnectTo(const std::string& host, int port, Clock::duration timeout);
// A listening socket on the first free port of a range, and that port.
Descriptor ListenOn(const std::string& host, int port, int port_end, bool reuses_address, int* bound_port);

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RPC_CHANNEL_H_
