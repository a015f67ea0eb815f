// Requests of the other side, one after the other. A request that cannot be done is answered by an exception; a message
// that cannot be understood ends the session, since nobody knows where the next one begins.
#include "serve.h"

#include <tvm/runtime/registry.h>

#include <cstring>
#include <memory>
#include <vector>

#include "module.h"
#include "protocol.h"
#include "session.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

constexpr size_t kMaxVersionLength = 256;

// A message that breaks the protocol.
class ProtocolError : public Error {
 public:
  explicit ProtocolError(const std::string& what) : Error("RPCError: " + what) {}
};

class Server {
 public:
  Server(Channel* channel, const ServeLimits& limits) : channel_(channel), limits_(limits) {
    if (limits.stall_seconds > 0) channel->set_stall_limit(std::chrono::seconds(limits.stall_seconds));
  }

  void Run() {
    try {
      while (channel_->WaitForData() && ServeOne()) {
      }
    } catch (const ChannelClosed&) {  // the session ends with it
    } catch (const std::exception& error) {
      TryToTell(error.what());
    }
  }

 private:
  void TryToTell(const char* text) {
    try {
      SendException(channel_, text);
    } catch (const std::exception&) {  // nobody listens any more
    }
  }

  // Whether the session goes on.
  bool ServeOne() {
    const uint64_t length = channel_->Read<uint64_t>();
    if (length < sizeof(Code)) throw ProtocolError(Cat("a message is at least 4 bytes long, got one of ", length));
    const Code code = channel_->Read<Code>();
    const uint64_t size = length - sizeof(Code);
    if (code == Code::kShutdown) return false;
    if (code == Code::kCopyToRemote) {
      CopyToRemote(size);
      return true;
    }
    if (limits_.message_bytes != 0 && size > limits_.message_bytes) {
      throw ProtocolError(Cat("a message may have ", limits_.message_bytes, " bytes here, got one of ", size));
    }
    PacketBody body;
    body.ReadFrom(channel_, size);
    PacketReader reader(body);
    switch (code) {
      case Code::kInitServer: AnswerWith([&](TVMRetValue*) { InitServer(&reader); }); break;
      case Code::kCallFunc: CallFunc(&reader); break;
      case Code::kCopyFromRemote: CopyFromRemote(&reader); break;
      default:
        if (code < Code::kGetGlobalFunc || code > Code::kDevGetCurrentStream) {
          throw ProtocolError(Cat("there is no message of kind ", static_cast<int>(code)));
        }
        SessionFunction(code, &reader);
    }
    return true;
  }

  // Runs what a request asks for and answers with the result, which `run` leaves in its argument, or the exception.
  template <class F>
  void AnswerWith(F run) {
    TVMRetValue result;
    try {
      run(&result);
    } catch (const std::exception& error) {
      return Refuse(error);
    }
    TVMValue value;
    int code;
    TVMArgsSetter set(&value, &code);
    set(0, static_cast<const TVMArgValue&>(result));
    Return(TVMArgs(&value, &code, 1));
  }

  // A connection that was lost may be that of the session to a further machine, of which there is somebody to tell.
  void Refuse(const std::exception& error) {
    if (channel_->is_failed()) throw ChannelClosed("the client has gone");
    SendException(channel_, error.what());
  }

  void Return(TVMArgs args) {
    PacketWriter answer(Code::kReturn);
    answer.PutArgs(args);
    answer.Send(channel_);
  }

  Session* session() const {
    if (session_ == nullptr) ThrowError("the RPC session has not begun: InitServer comes first");
    return session_.get();
  }

  void InitServer(PacketReader* reader) {
    uint64_t size = reader->Read<uint64_t>();
    if (size > kMaxVersionLength) ThrowValueError("a version of the RPC protocol of ", size, " letters");
    std::string version(reader->Take(size), size);
    DecodedArgs decoded;
    reader->ReadArgs(&decoded);
    reader->CheckEnd();
    if (version != kProtocolVersion) {
      ThrowError("the RPC client speaks version ", version, " of the protocol, this server ", kProtocolVersion);
    }
    if (session_ != nullptr) ThrowError("the RPC session has already begun");
    TVMArgs args = decoded.args();
    if (args.num_args == 0) {
      session_ = MakeLocalSession(limits_.array_bytes);
      return;
    }
    std::string name = args[0];
    PackedFunc construct = Registry::Find(name);
    if (!construct.defined()) ThrowError("this RPC server has no constructor of sessions that is called ", name);
    TVMRetValue module;
    construct.CallPacked(TVMArgs(args.values + 1, args.type_codes + 1, args.num_args - 1), &module);
    session_ = SessionOf(module);
  }

  void CallFunc(PacketReader* reader) {
    PacketWriter answer(Code::kReturn);
    try {
      void* func = reinterpret_cast<void*>(reader->Read<uint64_t>());
      DecodedArgs decoded;
      reader->ReadArgs(&decoded);
      reader->CheckEnd();
      bool is_taken = false;
      session()->CallFunc(func, decoded.args(), [&](TVMArgs result) {
        is_taken = true;
        answer.PutArgs(result);
        answer.Send(channel_);  // now, while what is borrowed lives
      });
      if (!is_taken) ThrowError("the function has ended without a result");
    } catch (const std::exception& error) {
      Refuse(error);
    }
  }

  void CopyFromRemote(PacketReader* reader) {
    DLTensor tensor;
    std::vector<int64_t> shape;
    std::unique_ptr<char[]> copy;
    char* data = nullptr;
    uint64_t nbytes = 0;
    try {
      reader->ReadTensor(&tensor, &shape);
      nbytes = reader->Read<uint64_t>();
      reader->CheckEnd();
      CheckPart(tensor, nbytes);
      data = session()->FindHostData(tensor, nbytes);
      if (data == nullptr && nbytes > 0) {
        copy.reset(new char[nbytes]);
        session()->CopyFromRemote(&tensor, copy.get(), nbytes);
        data = copy.get();
      }
    } catch (const std::exception& error) {
      return Refuse(error);
    }
    PacketWriter(Code::kCopyAck).Send(channel_, {data, static_cast<size_t>(nbytes)});
  }

  // The bytes go straight to the array, whatever a message may have.
  void CopyToRemote(uint64_t size) {
    constexpr uint64_t kFixed = sizeof(uint64_t) + sizeof(DLDevice) + sizeof(int32_t) + sizeof(DLDataType);
    uint64_t left = size;
    auto read = [&](void* into, uint64_t count) {
      if (count > left) throw ProtocolError("a message CopyToRemote is too short");
      channel_->Read(into, count);
      left -= count;
    };
    std::vector<char> head(kFixed);
    read(head.data(), kFixed);
    int32_t ndim;
    std::memcpy(&ndim, head.data() + sizeof(uint64_t) + sizeof(DLDevice), sizeof(ndim));
    if (ndim < 0 || ndim > 256) throw ProtocolError(Cat("an array of ", ndim, " dimensions"));
    const uint64_t rest = static_cast<uint64_t>(ndim) * sizeof(int64_t) + 2 * sizeof(uint64_t);
    head.resize(kFixed + rest);
    read(head.data() + kFixed, rest);
    try {
      PacketReader reader(head.data(), head.size());
      DLTensor tensor;
      std::vector<int64_t> shape;
      reader.ReadTensor(&tensor, &shape);
      uint64_t nbytes = reader.Read<uint64_t>();
      if (nbytes != left) ThrowValueError("CopyToRemote of ", nbytes, " bytes that brings ", left);
      CheckPart(tensor, nbytes);
      TakeBytes(&tensor, nbytes, &left);
    } catch (const std::exception& error) {
      if (!channel_->is_failed()) channel_->Skip(left);
      return Refuse(error);
    }
    AnswerWith([](TVMRetValue*) {});
  }

  void TakeBytes(DLTensor* tensor, uint64_t nbytes, uint64_t* left) {
    char* data = session()->FindHostData(*tensor, nbytes);
    std::unique_ptr<char[]> copy;
    if (data == nullptr && nbytes > 0) {
      if (limits_.message_bytes != 0 && nbytes > limits_.message_bytes) {
        ThrowValueError("a copy to a device may have ", limits_.message_bytes, " bytes here, got ", nbytes);
      }
      copy.reset(new char[nbytes]);
    }
    *left = 0;
    channel_->Read(copy != nullptr ? copy.get() : data, nbytes);
    if (copy != nullptr) session()->CopyToRemote(copy.get(), tensor, nbytes);
  }

  static void CheckPart(const DLTensor& tensor, uint64_t nbytes) {
    if (tensor.byte_offset + nbytes < nbytes) ThrowValueError("a copy of ", nbytes, " bytes from byte ", tensor.byte_offset);
  }

  void SessionFunction(Code code, PacketReader* reader) {
    AnswerWith([&](TVMRetValue* rv) {
      DecodedArgs decoded;
      reader->ReadArgs(&decoded);
      reader->CheckEnd();
      Run(code, decoded.args(), rv);
    });
  }

  void Run(Code code, TVMArgs args, TVMRetValue* rv) {
    switch (code) {
      case Code::kGetGlobalFunc: *rv = session()->GetFunction(args[0]); return;
      case Code::kFreeHandle: session()->FreeHandle(args[0], args.num_args > 1 ? int(args[1]) : kTVMOpaqueHandle); return;
      case Code::kDevSetDevice: session()->SetDevice(args[0]); return;
      case Code::kDevGetAttr: session()->GetAttr(args[0], static_cast<DeviceAttrKind>(int(args[1])), rv); return;
      case Code::kDevAllocData:
        *rv = session()->AllocData(args[0], uint64_t(args[1]), uint64_t(args[2]), args[3]);
        return;
      case Code::kDevAllocDataWithScope: {
        DLTensor* like = args[0];
        if (like == nullptr) ThrowTypeError("RPC: AllocDataWithScope needs a tensor, got None");
        Optional<String> scope = args[1].is_null() ? Optional<String>() : Optional<String>(String(std::string(args[1])));
        *rv = session()->AllocDataWithScope(*like, scope);
        return;
      }
      case Code::kDevFreeData: session()->FreeData(args[0], args[1]); return;
      case Code::kDevStreamSync: session()->StreamSync(args[0], args[1]); return;
      case Code::kCopyAmongRemote: {
        DLTensor* from = args[0];
        DLTensor* to = args[1];
        if (from == nullptr || to == nullptr) ThrowTypeError("RPC: CopyAmongRemote needs two tensors, got None");
        session()->CopyAmongRemote(from, to, args[2]);
        return;
      }
      case Code::kDevCreateStream: *rv = session()->CreateStream(args[0]); return;
      case Code::kDevFreeStream: session()->FreeStream(args[0], args[1]); return;
      case Code::kDevSetStream: session()->SetStream(args[0], args[1]); return;
      case Code::kDevGetCurrentStream: *rv = session()->GetCurrentStream(args[0]); return;
      default: ThrowError("there is no message of kind ", static_cast<int>(code));
    }
  }

  Channel* channel_;
  const ServeLimits limits_;
  std::shared_ptr<Session> session_;
};

}  // namespace

void ServeSession(Channel* channel, const ServeLimits& limits) { Server(channel, limits).Run(); }

void SendException(Channel* channel, const std::string& text) {
  TVMValue value;
  int code;
  TVMArgsSetter set(&value, &code);
  set(0, text);
  PacketWriter answer(Code::kException);
  answer.PutArgs(TVMArgs(&value, &code, 1));
  answer.Send(channel);
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
