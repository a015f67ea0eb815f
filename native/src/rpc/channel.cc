// Sockets and pipes: whole reads and writes, limits on waiting.
#include "channel.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>

#include "../interrupt.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr size_t kMaxPieces = 64;
constexpr int kSocketBufferBytes = 4 << 20;

void SetOption(int fd, int level, int name, int value) { setsockopt(fd, level, name, &value, sizeof(value)); }

void PrepareSocket(int fd) {
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  // a machine that vanishes without a word is noticed
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
#ifdef SO_NOSIGPIPE
  SetOption(fd, SOL_SOCKET, SO_NOSIGPIPE, 1);
#endif
}

bool IsSocket(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
}

std::string ReasonOf(int error) { return std::strerror(error); }

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses Resolve(const std::string& host, int port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  int rc = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (rc != 0) throw ChannelClosed(Cat("the address ", host, " is not known: ", gai_strerror(rc)));
  return Addresses(found, freeaddrinfo);
}

// Connects without waiting longer than the timeout; 0 or the error.
int ConnectSocket(int fd, const addrinfo& address, Clock::duration timeout) {
  int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  if (connect(fd, address.ai_addr, address.ai_addrlen) != 0 && errno != EINPROGRESS) return errno;
  pollfd wanted{fd, POLLOUT, 0};
  auto limit = Clock::now() + timeout;
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now()).count();
    if (left < 0) return ETIMEDOUT;
    int rc = poll(&wanted, 1, static_cast<int>(std::min<int64_t>(left + 1, INT_MAX)));
    if (rc > 0) break;
    if (rc < 0 && errno != EINTR) return errno;
    PollSignals();
  }
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  fcntl(fd, F_SETFL, flags);
  return error;
}

}  // namespace

void Descriptor::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Channel::Channel(Descriptor socket) : reader_(std::move(socket)) { PrepareSocket(reader_.get()); }

void Channel::Fail(const std::string& what) {
  is_failed_ = true;
  throw ChannelClosed(what);
}

void Channel::Wait(int fd, short events, bool is_limited) {
  const bool has_limit = is_limited && stall_limit_.count() > 0;
  const auto limit = Clock::now() + stall_limit_;
  for (;;) {
    int milliseconds = -1;
    if (has_limit) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now()).count();
      if (left < 0) Fail("the other side stalls in the middle of a message");
      milliseconds = static_cast<int>(std::min<int64_t>(left + 1, INT_MAX));
    }
    pollfd wanted{fd, events, 0};
    int rc = poll(&wanted, 1, milliseconds);
    if (rc > 0) return;
    if (rc < 0 && errno != EINTR) Fail(Cat("cannot wait for the other side: ", ReasonOf(errno)));
    PollSignals();
  }
}

size_t Channel::Receive(void* data, size_t size) {
  for (;;) {
    ssize_t count = read(reader_.get(), data, size);
    if (count >= 0) return static_cast<size_t>(count);
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      Wait(reader_.get(), POLLIN, true);
    } else if (errno == ECONNRESET) {
      return 0;
    } else if (errno != EINTR) {
      Fail(Cat("cannot read from the other side: ", ReasonOf(errno)));
    }
  }
}

bool Channel::WaitForData() {
  if (begin_ < end_) return true;
  Wait(reader_.get(), POLLIN, false);
  if (buffer_.empty()) buffer_.resize(kBufferBytes);
  begin_ = 0;
  end_ = Receive(buffer_.data(), buffer_.size());
  return end_ > 0;
}

void Channel::Read(void* data, size_t size) {
  char* target = static_cast<char*>(data);
  while (size > 0) {
    if (begin_ < end_) {
      size_t count = std::min(size, end_ - begin_);
      std::memcpy(target, buffer_.data() + begin_, count);
      begin_ += count;
      target += count;
      size -= count;
      continue;
    }
    Wait(reader_.get(), POLLIN, true);
    size_t count;
    if (size >= kBufferBytes) {  // straight to where it is wanted
      count = Receive(target, size);
      target += count;
      size -= count;
    } else {
      if (buffer_.empty()) buffer_.resize(kBufferBytes);
      begin_ = 0;
      count = end_ = Receive(buffer_.data(), buffer_.size());
    }
    if (count == 0) Fail("the connection was closed by the other side");
  }
}

void Channel::Skip(uint64_t size) {
  char ignored[4096];
  while (size > 0) {
    size_t count = static_cast<size_t>(std::min<uint64_t>(size, sizeof(ignored)));
    Read(ignored, count);
    size -= count;
  }
}

void Channel::Write(const std::vector<Piece>& pieces) {
  const int fd = writer_ ? writer_.get() : reader_.get();
  const bool is_socket = IsSocket(fd);
  std::vector<iovec> rest;
  for (const Piece& piece : pieces) {
    if (piece.size > 0) rest.push_back({const_cast<void*>(piece.data), piece.size});
  }
  size_t first = 0;
  while (first < rest.size()) {
    ssize_t count;
    size_t number = std::min(rest.size() - first, kMaxPieces);
    if (is_socket) {
      msghdr message{};
      message.msg_iov = &rest[first];
      message.msg_iovlen = number;
#ifdef MSG_NOSIGNAL
      count = sendmsg(fd, &message, MSG_NOSIGNAL | (stall_limit_.count() > 0 ? MSG_DONTWAIT : 0));
#else
      count = sendmsg(fd, &message, 0);
#endif
    } else {
      count = writev(fd, &rest[first], static_cast<int>(number));
    }
    if (count < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        Wait(fd, POLLOUT, true);
      } else if (errno == EINTR) {
        PollSignals();
      } else {
        Fail(Cat("cannot write to the other side: ", ReasonOf(errno)));
      }
      continue;
    }
    for (size_t left = static_cast<size_t>(count); left > 0;) {
      size_t taken = std::min(left, rest[first].iov_len);
      rest[first].iov_base = static_cast<char*>(rest[first].iov_base) + taken;
      rest[first].iov_len -= taken;
      left -= taken;
      if (rest[first].iov_len == 0) ++first;
    }
  }
}

Descriptor ConnectTo(const std::string& host, int port, Clock::duration timeout) {
  if (port <= 0 || port > 65535) ThrowValueError("a port is a number from 1 to 65535, got ", port);
  Addresses addresses = Resolve(host, port, 0);
  int error = 0;
  for (addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    Descriptor fd(socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol));
    if (!fd) continue;
    SetOption(fd.get(), SOL_SOCKET, SO_SNDBUF, kSocketBufferBytes);
    error = ConnectSocket(fd.get(), *each, timeout);
    if (error == 0) return fd;
  }
  throw ChannelClosed(Cat("cannot connect to ", host, ":", port, ": ", ReasonOf(error)));
}

Descriptor ListenOn(const std::string& host, int port, int port_end, bool reuses_address, int* bound_port) {
  int error = 0;
  for (int candidate = port; candidate < std::max(port_end, port + 1); ++candidate) {
    Addresses addresses = Resolve(host, candidate, AI_PASSIVE);
    const addrinfo& address = *addresses;
    Descriptor fd(socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol));
    if (!fd) ThrowError("cannot make a socket: ", ReasonOf(errno));
    SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, reuses_address);
    if (bind(fd.get(), address.ai_addr, address.ai_addrlen) == 0 && listen(fd.get(), SOMAXCONN) == 0) {
      sockaddr_storage bound{};
      socklen_t size = sizeof(bound);
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size);
      *bound_port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                                      : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
      return fd;
    }
    error = errno;
  }
  ThrowError("cannot listen on ", host, ", ports ", port, " to ", port_end, ": ", ReasonOf(error));
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
