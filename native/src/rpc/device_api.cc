// Devices of other processes: their types carry the number of the session.
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/registry.h>

#include <memory>

#include "session.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

using SessionPtr = std::shared_ptr<Session>;

SessionPtr SessionOf(Device dev) { return Session::At(GetRPCSessionIndex(dev)); }

RemoteSpace* SpaceOf(const void* data) { return static_cast<RemoteSpace*>(const_cast<void*>(data)); }

// The tensor as its own machine knows it.
DLTensor Remote(const DLTensor& tensor) {
  DLTensor remote = tensor;
  remote.device = RemoveRPCSessionMask(tensor.device);
  remote.data = SpaceOf(tensor.data)->data;
  return remote;
}

class RPCDeviceAPI final : public DeviceAPI {
 public:
  void SetDevice(Device dev) final { SessionOf(dev)->SetDevice(RemoveRPCSessionMask(dev)); }

  void GetAttr(Device dev, DeviceAttrKind kind, TVMRetValue* rv) final {
    Device remote = RemoveRPCSessionMask(dev);
    if (remote.device_type == kDLCPU && kind == kExist) {
      *rv = 1;
    } else {
      SessionOf(dev)->GetAttr(remote, kind, rv);
    }
  }

  void* AllocDataSpace(Device dev, size_t nbytes, size_t alignment, DLDataType type_hint) final {
    SessionPtr session = SessionOf(dev);
    void* data = session->AllocData(RemoveRPCSessionMask(dev), nbytes, alignment, type_hint);
    return new RemoteSpace{data, session};
  }

  void* AllocDataSpace(Device dev, int ndim, const int64_t* shape, DLDataType dtype, Optional<String> mem_scope) final {
    SessionPtr session = SessionOf(dev);
    DLTensor like{nullptr, RemoveRPCSessionMask(dev), ndim, dtype, const_cast<int64_t*>(shape), nullptr, 0};
    return new RemoteSpace{session->AllocDataWithScope(like, mem_scope), session};
  }

  void FreeDataSpace(Device dev, void* ptr) final {
    std::unique_ptr<RemoteSpace> space(SpaceOf(ptr));
    try {
      space->session->FreeData(RemoveRPCSessionMask(dev), space->data);
    } catch (const std::exception&) {  // the session has gone, and its memory with it
    }
  }

  void CopyDataFromTo(DLTensor* from, DLTensor* to, TVMStreamHandle stream) final {
    const bool from_remote = IsRPCSessionDevice(from->device), to_remote = IsRPCSessionDevice(to->device);
    const uint64_t nbytes = DataBytes(*from);
    if (from_remote && to_remote) {
      if (SpaceOf(from->data)->session != SpaceOf(to->data)->session) {
        ThrowValueError("a copy between two RPC sessions goes over this machine: array.copyto(tvm.cpu()) comes first");
      }
      DLTensor source = Remote(*from), target = Remote(*to);
      SpaceOf(from->data)->session->CopyAmongRemote(&source, &target, stream);
    } else if (from_remote) {
      CheckHost(to->device);
      DLTensor source = Remote(*from);
      SpaceOf(from->data)->session->CopyFromRemote(&source, static_cast<char*>(to->data) + to->byte_offset, nbytes);
    } else {
      CheckHost(from->device);
      DLTensor target = Remote(*to);
      SpaceOf(to->data)->session->CopyToRemote(static_cast<const char*>(from->data) + from->byte_offset, &target, nbytes);
    }
  }

  TVMStreamHandle CreateStream(Device dev) final { return SessionOf(dev)->CreateStream(RemoveRPCSessionMask(dev)); }
  void FreeStream(Device dev, TVMStreamHandle stream) final { SessionOf(dev)->FreeStream(RemoveRPCSessionMask(dev), stream); }
  void StreamSync(Device dev, TVMStreamHandle stream) final { SessionOf(dev)->StreamSync(RemoveRPCSessionMask(dev), stream); }
  void SetStream(Device dev, TVMStreamHandle stream) final { SessionOf(dev)->SetStream(RemoveRPCSessionMask(dev), stream); }
  TVMStreamHandle GetCurrentStream(Device dev) final { return SessionOf(dev)->GetCurrentStream(RemoveRPCSessionMask(dev)); }

 private:
  static void CheckHost(Device dev) {
    if (dev.device_type != kDLCPU) ThrowValueError("arrays go to and from other machines from cpu(0) only, got ", DeviceText(dev));
  }
};

}  // namespace
}  // namespace rpc

TVM_REGISTER_GLOBAL("device_api.rpc").set_body([](TVMArgs, TVMRetValue* rv) {
  static rpc::RPCDeviceAPI api;
  *rv = static_cast<void*>(&api);
});

}  // namespace runtime
}  // namespace tvm
