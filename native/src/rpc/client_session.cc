// Requests to the other side: one at a time, each with its answer.
#include "client_session.h"

#include <tvm/runtime/registry.h>

#include <cstdio>
#include <mutex>
#include <vector>

#include "../fork.h"
#include "protocol.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

constexpr const char* kTimeoutPrefix = "RPCSessionTimeoutError: ";
// so much of an array goes into one message, which keeps the other side's limit of a message
constexpr uint64_t kCopyBlock = uint64_t{256} << 20;

const char* NameOf(Code code) {
  static const char* const names[] = {"None", "Shutdown", "InitServer", "CallFunc", "Return", "Exception", "CopyFromRemote",
                                      "CopyToRemote", "CopyAck", "GetGlobalFunc", "FreeHandle", "DevSetDevice", "DevGetAttr",
                                      "DevAllocData", "DevFreeData", "DevStreamSync", "CopyAmongRemote",
                                      "DevAllocDataWithScope", "DevCreateStream", "DevFreeStream", "DevSetStream",
                                      "DevGetCurrentStream"};
  auto index = static_cast<size_t>(code);
  return index < sizeof(names) / sizeof(names[0]) ? names[index] : "?";
}

class ClientSession final : public Session {
 public:
  ClientSession(std::unique_ptr<Channel> channel, std::string peer, bool is_logged)
      : channel_(std::move(channel)), peer_(std::move(peer)), is_logged_(is_logged), generation_(ForkGeneration()) {}

  ~ClientSession() { Close(); }

  void Close() {
    std::lock_guard<std::recursive_mutex> lock(mutex_);
    if (channel_ != nullptr && !is_lost_ && generation_ == ForkGeneration()) {
      try {
        PacketWriter(Code::kShutdown).Send(channel_.get());
      } catch (const std::exception&) {  // it has gone already
      }
    }
    channel_.reset();
  }

  void Begin(TVMArgs constructor) {
    std::lock_guard<std::recursive_mutex> lock(mutex_);
    PacketWriter request(Code::kInitServer);
    request.PutText(kProtocolVersion, std::strlen(kProtocolVersion));
    request.PutArgs(constructor);
    PacketBody body;
    Exchange(Code::kInitServer, &request, &body);
  }

  void* GetFunction(const std::string& name) override { return Ask<void*>(Code::kGetGlobalFunc, name); }

  void CallFunc(void* func, TVMArgs args, const TakeReturn& take) override {
    PacketWriter request(Code::kCallFunc);
    request.Put(reinterpret_cast<uint64_t>(func));
    request.PutArgs(args);
    PacketBody body;
    {
      std::lock_guard<std::recursive_mutex> lock(mutex_);
      Exchange(Code::kCallFunc, &request, &body);
    }
    DecodedArgs result = Decode(body);
    take(result.args());
  }

  // Never waits for a call of another thread: the caller may hold what that call needs.
  void FreeHandle(void* handle, int type_code) override {
    {
      std::lock_guard<ForkMutex> lock(freed_mutex_);
      freed_.push_back({handle, type_code, DLDevice{}, false});
    }
    FlushIfIdle();
  }
  void FreeData(Device dev, void* data) override {
    {
      std::lock_guard<ForkMutex> lock(freed_mutex_);
      freed_.push_back({data, 0, dev, true});
    }
    FlushIfIdle();
  }

  void CopyToRemote(const void* from, DLTensor* to, uint64_t nbytes) override {
    DLTensor part = *to;
    for (uint64_t done = 0; done < nbytes; done += kCopyBlock) {
      uint64_t count = std::min(kCopyBlock, nbytes - done);
      part.byte_offset = to->byte_offset + done;
      PacketWriter request(Code::kCopyToRemote);
      request.PutTensor(part);
      request.Put<uint64_t>(count);
      PacketBody body;
      std::lock_guard<std::recursive_mutex> lock(mutex_);
      Exchange(Code::kCopyToRemote, &request, &body, {static_cast<const char*>(from) + done, static_cast<size_t>(count)});
    }
  }

  void CopyFromRemote(DLTensor* from, void* to, uint64_t nbytes) override {
    DLTensor part = *from;
    for (uint64_t done = 0; done < nbytes; done += kCopyBlock) {
      uint64_t count = std::min(kCopyBlock, nbytes - done);
      part.byte_offset = from->byte_offset + done;
      PacketWriter request(Code::kCopyFromRemote);
      request.PutTensor(part);
      request.Put<uint64_t>(count);
      std::lock_guard<std::recursive_mutex> lock(mutex_);
      Guarded([&] {
        Send(Code::kCopyFromRemote, &request);
        auto [code, size] = ReadHead();
        if (code == Code::kException) ThrowRemote(size);
        if (code != Code::kCopyAck || size != count) ThrowUnexpected(code);
        channel_->Read(static_cast<char*>(to) + done, count);
      });
    }
  }

  void CopyAmongRemote(DLTensor* from, DLTensor* to, TVMStreamHandle stream) override {
    Ask<void>(Code::kCopyAmongRemote, from, to, stream);
  }
  void SetDevice(Device dev) override { Ask<void>(Code::kDevSetDevice, dev); }
  void GetAttr(Device dev, DeviceAttrKind kind, TVMRetValue* rv) override {
    *rv = Ask<TVMRetValue>(Code::kDevGetAttr, dev, static_cast<int>(kind));
  }
  void* AllocData(Device dev, uint64_t nbytes, uint64_t alignment, DLDataType type_hint) override {
    return Ask<void*>(Code::kDevAllocData, dev, nbytes, alignment, type_hint);
  }
  void* AllocDataWithScope(const DLTensor& like, const Optional<String>& mem_scope) override {
    DLTensor tensor = like;
    if (!mem_scope.has_value()) return Ask<void*>(Code::kDevAllocDataWithScope, &tensor, nullptr);
    return Ask<void*>(Code::kDevAllocDataWithScope, &tensor, mem_scope.value());
  }
  void StreamSync(Device dev, TVMStreamHandle stream) override { Ask<void>(Code::kDevStreamSync, dev, stream); }
  TVMStreamHandle CreateStream(Device dev) override { return Ask<void*>(Code::kDevCreateStream, dev); }
  void FreeStream(Device dev, TVMStreamHandle stream) override { Ask<void>(Code::kDevFreeStream, dev, stream); }
  void SetStream(Device dev, TVMStreamHandle stream) override { Ask<void>(Code::kDevSetStream, dev, stream); }
  TVMStreamHandle GetCurrentStream(Device dev) override { return Ask<void*>(Code::kDevGetCurrentStream, dev); }

 private:
  struct Freed {
    void* handle;
    int type_code;
    DLDevice device;
    bool is_data;
  };

  // Asks for a function of the session, and converts its result.
  template <class R, class... Args>
  R Ask(Code code, Args&&... args) {
    constexpr size_t count = sizeof...(Args);
    TVMValue values[count];
    int codes[count];
    TVMArgsSetter set(values, codes);
    size_t i = 0;
    (set(i++, std::forward<Args>(args)), ...);
    PacketWriter request(code);
    request.PutArgs(TVMArgs(values, codes, static_cast<int>(count)));
    PacketBody body;
    {
      std::lock_guard<std::recursive_mutex> lock(mutex_);
      Exchange(code, &request, &body);
    }
    if constexpr (!std::is_void<R>::value) {
      DecodedArgs result = Decode(body);
      return result.args().template At<R>(0);
    }
  }

  static DecodedArgs Decode(const PacketBody& body) {
    DecodedArgs result;
    PacketReader reader(body);
    reader.ReadArgs(&result);
    reader.CheckEnd();
    return result;
  }

  void FlushIfIdle() {
    if (!mutex_.try_lock()) return;  // whoever holds it, or the next request, sends them
    std::lock_guard<std::recursive_mutex> lock(mutex_, std::adopt_lock);
    try {
      if (!is_exchanging_) Flush();
    } catch (const std::exception&) {  // the session is lost, and with it all that it had
    }
  }

  void Flush() {
    for (;;) {
      std::vector<Freed> freed;
      {
        std::lock_guard<ForkMutex> lock(freed_mutex_);
        freed.swap(freed_);
      }
      if (freed.empty() || channel_ == nullptr || is_lost_ || generation_ != ForkGeneration()) return;
      for (const Freed& each : freed) FreeNow(each);
    }
  }

  void FreeNow(const Freed& freed) {
    TVMValue values[2];
    int codes[2];
    TVMArgsSetter set(values, codes);
    if (freed.is_data) {
      set(0, freed.device);
      set(1, freed.handle);
    } else {
      set(0, freed.handle);
      set(1, freed.type_code);
    }
    const Code code = freed.is_data ? Code::kDevFreeData : Code::kFreeHandle;
    PacketWriter request(code);
    request.PutArgs(TVMArgs(values, codes, 2));
    PacketBody body;
    Guarded([&] {
      Send(code, &request);
      Receive(&body);
    });
  }

  // Sends a request and waits for what it returns; the caller holds the lock.
  void Exchange(Code code, PacketWriter* request, PacketBody* body, Piece tail = {nullptr, 0}) {
    Flush();
    Guarded([&] {
      Send(code, request, tail);
      Receive(body);
    });
  }

  // Runs an exchange; if it ends half-way, no later one would find its answer.
  template <class F>
  void Guarded(F exchange) {
    if (channel_ == nullptr || is_lost_) throw ChannelClosed(Cat("the connection to ", peer_, " was lost"));
    if (generation_ != ForkGeneration()) {
      ThrowError("the RPC session with ", peer_, " belongs to the process that this one was forked from: connect here too");
    }
    is_exchanging_ = true;
    is_complete_ = false;
    try {
      exchange();
    } catch (const ChannelClosed& error) {
      is_exchanging_ = false;
      is_lost_ = true;
      throw ChannelClosed(Cat("the connection to ", peer_, " was lost: ", std::string(error.what()).substr(std::strlen("RPCError: "))));
    } catch (...) {
      is_exchanging_ = false;
      if (!is_complete_) is_lost_ = true;
      throw;
    }
    is_exchanging_ = false;
  }

  void Send(Code code, PacketWriter* request, Piece tail = {nullptr, 0}) {
    if (is_logged_) std::fprintf(stderr, "rpc: %s <- %s\n", peer_.c_str(), NameOf(code));
    try {
      request->Send(channel_.get(), tail);
    } catch (const ChannelClosed&) {
      // why it has gone may be waiting to be read
      if (!channel_->WaitForData()) throw;
    }
  }

  std::pair<Code, uint64_t> ReadHead() {
    if (!channel_->WaitForData()) throw ChannelClosed("it was closed by the other side");
    uint64_t length = channel_->Read<uint64_t>();
    if (length < sizeof(Code)) ThrowError("the RPC server ", peer_, " sent a message of ", length, " bytes");
    Code code = channel_->Read<Code>();
    if (is_logged_) std::fprintf(stderr, "rpc: %s -> %s, %llu bytes\n", peer_.c_str(), NameOf(code), static_cast<unsigned long long>(length));
    return {code, length - sizeof(Code)};
  }

  void Receive(PacketBody* body) {
    auto [code, size] = ReadHead();
    if (code == Code::kException) ThrowRemote(size);
    if (code != Code::kReturn) ThrowUnexpected(code);
    body->ReadFrom(channel_.get(), size);
    is_complete_ = true;
  }

  [[noreturn]] void ThrowUnexpected(Code code) {
    ThrowError("the RPC server ", peer_, " answered with a message of kind ", NameOf(code), " (", static_cast<int>(code), ")");
  }

  [[noreturn]] void ThrowRemote(uint64_t size) {
    PacketBody body;
    body.ReadFrom(channel_.get(), size);
    is_complete_ = true;
    std::string text = Decode(body).args().At<std::string>(0);
    if (text.compare(0, std::strlen(kTimeoutPrefix), kTimeoutPrefix) == 0) {
      is_complete_ = false;  // nothing comes after it
      throw Error(text);
    }
    throw Error("RPCError: Error caught from RPC call:\n" + text);
  }

  // recursive: what a call drops may belong to the same session
  std::recursive_mutex mutex_;
  std::unique_ptr<Channel> channel_;
  const std::string peer_;
  const bool is_logged_;
  const uint32_t generation_;
  bool is_lost_{false};
  bool is_exchanging_{false};
  bool is_complete_{false};
  ForkMutex freed_mutex_;
  std::vector<Freed> freed_;
};

}  // namespace

std::shared_ptr<Session> BeginClientSession(std::unique_ptr<Channel> channel, const std::string& peer, TVMArgs constructor,
                                            bool is_logged) {
  auto session = std::make_shared<ClientSession>(std::move(channel), peer, is_logged);
  session->Begin(constructor);
  Session::Enter(session);
  return session;
}

void CloseClientSession(Session* session) {
  if (auto* client = dynamic_cast<ClientSession*>(session)) client->Close();
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
