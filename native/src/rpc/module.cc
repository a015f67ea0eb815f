// Values of another process: what is called here runs there.
#include "module.h"

#include <tvm/runtime/registry.h>

#include <list>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "../bytes.h"
#include "client_session.h"
#include "protocol.h"

namespace tvm {
namespace runtime {
namespace rpc {

TVM_REGISTER_OBJECT_TYPE(RPCObjectRefObj);

namespace {

using SessionPtr = std::shared_ptr<Session>;

// A handle of the other side, freed there at the end.
struct Held {
  Held(SessionPtr session, void* handle, int type_code) : session(std::move(session)), handle(handle), type_code(type_code) {}
  Held(const Held&) = delete;
  ~Held() {
    try {
      session->FreeHandle(handle, type_code);
    } catch (const std::exception&) {  // the session has gone, and all that it had
    }
  }
  const SessionPtr session;
  void* const handle;
  const int type_code;
};

class HeldArray : public Object {
 public:
  static constexpr uint32_t kTypeIndex = kRuntimeObject;
  HeldArray(SessionPtr session, void* data, void* handle)
      : space{data, session}, held(std::move(session), handle, kTVMNDArrayHandle) {}
  RemoteSpace space;
  Held held;
};

class RemoteFunc : public PackedFuncObj {
 public:
  RemoteFunc(SessionPtr session, void* handle) : held(std::move(session), handle, kTVMPackedFuncHandle) {
    caller = [](PackedFuncObj* self, TVMArgs args, TVMRetValue* rv) { static_cast<RemoteFunc*>(self)->Call(args, rv); };
  }
  void Call(TVMArgs args, TVMRetValue* rv) const;
  const Held held;
};

PackedFunc WrapFunc(const SessionPtr& session, void* handle) {
  return PackedFunc(ObjectPtr<Object>(make_object<RemoteFunc>(session, handle)));
}

class RPCModuleNode final : public ModuleNode {
 public:
  RPCModuleNode(SessionPtr session, void* handle) : session_(std::move(session)) {
    if (handle != nullptr) held_ = std::make_unique<Held>(session_, handle, kTVMModuleHandle);
  }
  const char* type_key() const final { return kModuleTypeKey; }
  int GetPropertyMask() const final { return kRunnable; }

  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>&) final {
    if (name == "CloseRPCConnection") {
      return PackedFunc([session = session_](TVMArgs, TVMRetValue*) { CloseClientSession(session.get()); });
    }
    if (held_ == nullptr) return FindGlobal(name);
    return Remote("tvm.rpc.server.ModuleGetFunction")(GetRef<Module>(this), name, true);
  }

  String GetFormat() final { return "rpc"; }

  // A function of the other side that this module needs.
  const PackedFunc& Remote(const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex_);
    PackedFunc& func = functions_[name];
    if (!func.defined()) func = FindGlobal(name);
    if (!func.defined()) ThrowError("RPCError: the server has no function ", name);
    return func;
  }

  const SessionPtr& session() const { return session_; }
  void* handle() const { return held_ == nullptr ? nullptr : held_->handle; }

 private:
  PackedFunc FindGlobal(const std::string& name) const {
    void* handle = session_->GetFunction(name);
    return handle == nullptr ? PackedFunc() : WrapFunc(session_, handle);
  }

  const SessionPtr session_;
  std::unique_ptr<Held> held_;
  std::mutex mutex_;
  std::unordered_map<std::string, PackedFunc> functions_;
};

RPCModuleNode* NodeOf(const Module& module) {
  if (!IsRemote(module)) ThrowTypeError("expected a module of an RPC session, got one of type ", module->type_key());
  return static_cast<RPCModuleNode*>(module.node());
}

Module WrapModule(const SessionPtr& session, void* handle) {
  return Module(ObjectPtr<Object>(make_object<RPCModuleNode>(session, handle)));
}

NDArray WrapArray(const SessionPtr& session, const DLTensor& tensor, void* handle) {
  auto held = make_object<HeldArray>(session, tensor.data, handle);
  NDArray array = NDArray::FromMemory(&held->space, {tensor.shape, tensor.shape + tensor.ndim}, tensor.dtype,
                                      AddRPCSessionMask(tensor.device, session->table_index()), held);
  array.tensor()->byte_offset = tensor.byte_offset;
  return array;
}

// What a call returned: its type code, its value, and for an array its handle.
void WrapReturn(const SessionPtr& session, TVMArgs args, TVMRetValue* rv) {
  switch (int(args[0])) {
    case kTVMNullptr: return;
    case kTVMPackedFuncHandle: *rv = WrapFunc(session, args[1]); return;
    case kTVMModuleHandle: *rv = WrapModule(session, args[1]); return;
    case kTVMObjectHandle:
      *rv = ObjectRef(ObjectPtr<Object>(make_object<RPCObjectRefObj>(args[1].operator void*(), session)));
      return;
    case kTVMDLTensorHandle:
    case kTVMNDArrayHandle: *rv = WrapArray(session, *args[1].operator DLTensor*(), args[2]); return;
    default: *rv = args[1];
  }
}

[[noreturn]] void ThrowLocal(int i, const char* what) {
  throw ArgumentError(i, Cat("a remote function takes only ", what, " of its own session"));
}

// The arguments of a call as the other side means them.
class RemoteArgs {
 public:
  RemoteArgs(const Session* session, TVMArgs args)
      : session_(session), values_(args.values, args.values + args.num_args), codes_(args.type_codes, args.type_codes + args.num_args) {
    for (size_t i = 0; i < values_.size(); ++i) Translate(static_cast<int>(i), TVMArgValue(values_[i], codes_[i], static_cast<int>(i)));
  }
  TVMArgs args() const { return TVMArgs(values_.data(), codes_.data(), static_cast<int>(codes_.size())); }

 private:
  void Translate(int i, TVMArgValue arg) {
    switch (codes_[i]) {
      case kTVMDLTensorHandle:
      case kTVMNDArrayHandle: return TakeTensor(i, *arg.operator DLTensor*());
      case kDLDevice: return TakeDevice(i, arg);
      case kTVMPackedFuncHandle: return TakeFunc(i, static_cast<PackedFuncObj*>(FromHandle<PackedFuncObj>(values_[i].v_handle)));
      case kTVMModuleHandle: return TakeModule(i, arg);
      case kTVMObjectRValueRefArg:
      case kTVMObjectHandle: return TakeObject(i, arg);
      default: return;
    }
  }

  void TakeTensor(int i, const DLTensor& tensor) {
    if (!IsRPCSessionDevice(tensor.device) || GetRPCSessionIndex(tensor.device) != session_->table_index()) {
      ThrowLocal(i, Cat("arrays of its own session, made by tvm.nd.array(values, remote.cpu()); this one is on ",
                        DeviceText(tensor.device), ", and arrays").c_str());
    }
    tensors_.push_back(tensor);
    DLTensor& remote = tensors_.back();
    remote.device = RemoveRPCSessionMask(tensor.device);
    remote.data = static_cast<RemoteSpace*>(tensor.data)->data;
    values_[i].v_handle = &remote;
    codes_[i] = kTVMDLTensorHandle;
  }

  void TakeDevice(int i, DLDevice device) {
    if (IsRPCSessionDevice(device) && GetRPCSessionIndex(device) != session_->table_index()) ThrowLocal(i, "devices");
    values_[i].v_device = IsRPCSessionDevice(device) ? RemoveRPCSessionMask(device) : device;
  }

  void TakeFunc(int i, PackedFuncObj* func) {
    auto* remote = dynamic_cast<RemoteFunc*>(func);
    if (remote == nullptr || remote->held.session.get() != session_) ThrowLocal(i, "functions");
    values_[i].v_handle = remote->held.handle;
  }

  void TakeModule(int i, const Module& module) {
    if (!IsRemote(module) || NodeOf(module)->session().get() != session_) ThrowLocal(i, "modules");
    if (NodeOf(module)->handle() == nullptr) ThrowLocal(i, "modules that were loaded, and");
    values_[i].v_handle = NodeOf(module)->handle();
  }

  void TakeObject(int i, const TVMArgValue& arg) {
    ObjectRef object = arg;
    if (auto* text = object.as<StringObj>()) {
      values_[i].v_str = text->data;
      codes_[i] = kTVMStr;
      return;
    }
    auto* remote = object.as<RPCObjectRefObj>();
    if (remote == nullptr || remote->session.get() != session_) {
      ThrowLocal(i, Cat("numbers, text, bytes, arrays, functions, modules and objects; this one is of type ",
                        ForeignTypeName(object.get()), ", and objects").c_str());
    }
    values_[i].v_handle = remote->handle;
    codes_[i] = kTVMObjectHandle;
  }

  const Session* session_;
  std::vector<TVMValue> values_;
  std::vector<int> codes_;
  std::list<DLTensor> tensors_;
};

void RemoteFunc::Call(TVMArgs args, TVMRetValue* rv) const {
  RemoteArgs translated(held.session.get(), args);
  held.session->CallFunc(held.handle, translated.args(), [&](TVMArgs result) { WrapReturn(held.session, result, rv); });
}

}  // namespace

RPCObjectRefObj::~RPCObjectRefObj() {
  try {
    session->FreeHandle(handle, kTVMObjectHandle);
  } catch (const std::exception&) {  // the session has gone, and all that it had
  }
}

Module SessionModule(std::shared_ptr<Session> session) { return WrapModule(session, nullptr); }

bool IsRemote(const Module& module) { return module.defined() && std::strcmp(module->type_key(), kModuleTypeKey) == 0; }

std::shared_ptr<Session> SessionOf(const Module& module) { return NodeOf(module)->session(); }

TVMRetValue RemoteTimeEvaluator(const Module& module, TVMArgs args) {
  RPCModuleNode* node = NodeOf(module);
  DLDevice device{static_cast<DLDeviceType>(int(args[2])), int(args[3])};
  if (!IsRPCSessionDevice(device) || GetRPCSessionIndex(device) != node->session()->table_index()) {
    ThrowValueError("time_evaluator of a remote module needs a device of its session, such as remote.cpu(); got ", DeviceText(device));
  }
  std::vector<TVMValue> values(args.values, args.values + args.num_args);
  std::vector<int> codes(args.type_codes, args.type_codes + args.num_args);
  // the session itself stands for no module: its functions are the global ones
  if (node->handle() == nullptr) codes[0] = kTVMNullptr;
  values[2].v_int64 = RemoveRPCSessionMask(device).device_type;
  TVMRetValue evaluator;
  node->Remote("runtime.RPCTimeEvaluator").CallPacked(TVMArgs(values.data(), codes.data(), args.num_args), &evaluator);
  return evaluator;
}

TVM_REGISTER_GLOBAL("rpc.LocalSession").set_body_typed([] { return SessionModule(MakeLocalSession(0)); });

TVM_REGISTER_GLOBAL("rpc.LoadRemoteModule").set_body_typed([](Module session, std::string name) {
  TVMRetValue module = NodeOf(session)->Remote("tvm.rpc.server.load_module")(name);
  return Module(module);
});

TVM_REGISTER_GLOBAL("rpc.ImportRemoteModule").set_body_typed([](Module parent, Module child) {
  NodeOf(parent)->Remote("tvm.rpc.server.ImportModule")(parent, child);
});

TVM_REGISTER_GLOBAL("rpc.SessionModuleOf").set_body_typed([](Module module) { return SessionModule(SessionOf(module)); });

TVM_REGISTER_GLOBAL("rpc.SessTableIndex").set_body_typed([](Module module) { return SessionOf(module)->table_index(); });

TVM_REGISTER_GLOBAL("tvm.rpc.server.ImportModule").set_body_typed([](Module parent, Module child) { parent->Import(child); });

TVM_REGISTER_GLOBAL("tvm.rpc.server.ModuleGetFunction").set_body_typed([](Module module, std::string name, bool query_imports) {
  return module.GetFunction(name, query_imports);
});

// (session, address of the data there, a tensor of the same extents, device, handle to free at the end)
TVM_REGISTER_GLOBAL("tvm.rpc.NDArrayFromRemoteOpaqueHandle")
    .set_body_typed([](Module module, void* data, DLTensor* like, DLDevice device, void* handle) {
      DLTensor tensor = *like;
      tensor.data = data;
      tensor.device = IsRPCSessionDevice(device) ? RemoveRPCSessionMask(device) : device;
      return WrapArray(SessionOf(module), tensor, handle);
    });

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
