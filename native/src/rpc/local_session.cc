// The functions, arrays and devices of this machine. Whoever uses the session gets numbers in place of addresses, so that
// a wrong one is an error and no crash.
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "../fork.h"
#include "protocol.h"
#include "session.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

struct Space {
  char* data;
  uint64_t size;
  DLDevice device;
};

// What a handle stands for. Memory that was asked for is an array of bytes, of the code kMemory.
struct Entry {
  int type_code;
  ObjectPtr<Object> object;
  Space space;  // of arrays and memory
};

constexpr int kMemory = kTVMOpaqueHandle;

bool IsHost(DLDevice device) { return device.device_type == kDLCPU; }

class LocalSession final : public Session {
 public:
  explicit LocalSession(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  void* GetFunction(const std::string& name) override {
    PackedFunc func = Registry::Find(name);
    return func.defined() ? Keep(kTVMPackedFuncHandle, ObjectPtr<Object>(func.get_mutable())) : nullptr;
  }

  void CallFunc(void* func, TVMArgs args, const TakeReturn& take) override {
    std::vector<TVMValue> values(args.values, args.values + args.num_args);
    std::vector<int> codes(args.type_codes, args.type_codes + args.num_args);
    std::vector<ObjectPtr<Object>> kept;  // another thread may free a handle meanwhile
    PackedFunc callee(FindObject(func, kTVMPackedFuncHandle));
    for (size_t i = 0; i < values.size(); ++i) Resolve(&values[i], &codes[i], &kept);
    TVMRetValue result;
    callee.CallPacked(TVMArgs(values.data(), codes.data(), args.num_args), &result);
    Return(std::move(result), take);
  }

  void FreeHandle(void* handle, int) override { Remove(handle, false); }

  void CopyToRemote(const void* from, DLTensor* to, uint64_t nbytes) override {
    Space space = Locate(*to, nbytes);
    int64_t size = static_cast<int64_t>(nbytes);
    DLTensor source = Bytes(const_cast<void*>(from), {kDLCPU, 0}, &size), target = Bytes(space.data, space.device, &size);
    NDArray::CopyFromTo(&source, &target);
    DeviceAPI::Get(space.device)->StreamSync(space.device, nullptr);
  }

  void CopyFromRemote(DLTensor* from, void* to, uint64_t nbytes) override {
    Space space = Locate(*from, nbytes);
    int64_t size = static_cast<int64_t>(nbytes);
    DLTensor source = Bytes(space.data, space.device, &size), target = Bytes(to, {kDLCPU, 0}, &size);
    NDArray::CopyFromTo(&source, &target);
    DeviceAPI::Get(space.device)->StreamSync(space.device, nullptr);
  }

  void CopyAmongRemote(DLTensor* from, DLTensor* to, TVMStreamHandle stream) override {
    DLTensor source = Located(*from), target = Located(*to);
    DLDevice device = IsHost(source.device) ? target.device : source.device;
    DeviceAPI::Get(device)->CopyDataFromTo(&source, &target, Known(stream));
  }

  char* FindHostData(const DLTensor& tensor, uint64_t nbytes) override {
    return IsHost(tensor.device) ? Locate(tensor, nbytes).data : nullptr;
  }

  void SetDevice(Device dev) override { DeviceAPI::Get(dev)->SetDevice(dev); }
  void GetAttr(Device dev, DeviceAttrKind kind, TVMRetValue* rv) override {
    DeviceAPI* api = DeviceAPI::Get(dev, kind == kExist);
    if (api != nullptr) {
      api->GetAttr(dev, kind, rv);
    } else {
      *rv = 0;
    }
  }

  void* AllocData(Device dev, uint64_t nbytes, uint64_t alignment, DLDataType type_hint) override {
    CheckRoomFor(nbytes);
    // arrays are aligned as this runtime's compiled code wants it, whatever is asked for
    return KeepMemory(NDArray::Empty({static_cast<int64_t>(nbytes)}, {kDLUInt, 8, 1}, dev));
  }

  void* AllocDataWithScope(const DLTensor& like, const Optional<String>& mem_scope) override {
    CheckRoomFor(DataBytes(like));
    return KeepMemory(NDArray::Empty(ShapeTuple(like.shape, like.shape + like.ndim), like.dtype, like.device, mem_scope));
  }

  void FreeData(Device, void* handle) override { Remove(handle, true); }

  void StreamSync(Device dev, TVMStreamHandle stream) override { DeviceAPI::Get(dev)->StreamSync(dev, Known(stream)); }
  TVMStreamHandle CreateStream(Device dev) override { return Publish(DeviceAPI::Get(dev)->CreateStream(dev)); }
  void FreeStream(Device dev, TVMStreamHandle stream) override { DeviceAPI::Get(dev)->FreeStream(dev, Known(stream)); }
  void SetStream(Device dev, TVMStreamHandle stream) override { DeviceAPI::Get(dev)->SetStream(dev, Known(stream)); }
  TVMStreamHandle GetCurrentStream(Device dev) override { return Publish(DeviceAPI::Get(dev)->GetCurrentStream(dev)); }

 private:
  using Lock = std::lock_guard<ForkMutex>;

  static DLTensor Bytes(void* data, DLDevice device, int64_t* size) {
    return DLTensor{data, device, 1, {kDLUInt, 8, 1}, size, nullptr, 0};
  }

  static uint64_t Number(void* handle) { return reinterpret_cast<uint64_t>(handle); }

  void* Insert(Entry entry) {
    Lock lock(mutex_);
    entries_.emplace(next_, std::move(entry));
    return reinterpret_cast<void*>(next_++);
  }
  void* Keep(int type_code, ObjectPtr<Object> object) { return Insert({type_code, std::move(object), {}}); }

  void* KeepMemory(const NDArray& memory) {
    Space space{static_cast<char*>(memory->data), DataBytes(*memory.tensor()), memory->device};
    {
      Lock lock(mutex_);
      bytes_ += space.size;
    }
    return Insert({kMemory, ObjectPtr<Object>(memory.get_mutable()), space});
  }

  void Remove(void* handle, bool is_memory) {
    Entry entry;  // its destructor runs without the lock
    Lock lock(mutex_);
    auto it = entries_.find(Number(handle));
    if (it == entries_.end() || (it->second.type_code == kMemory) != is_memory) ThrowUnknown(handle);
    entry = std::move(it->second);
    if (is_memory) bytes_ -= entry.space.size;
    entries_.erase(it);
  }

  [[noreturn]] static void ThrowUnknown(void* handle) {
    ThrowValueError("RPC: the session has given out no handle ", Number(handle), ", or it was freed");
  }

  ObjectPtr<Object> FindObject(void* handle, int type_code) {
    Lock lock(mutex_);
    auto it = entries_.find(Number(handle));
    if (it == entries_.end()) ThrowUnknown(handle);
    if (it->second.type_code != type_code) {
      ThrowTypeError("RPC: the handle ", Number(handle), " is of kind ", ArgTypeCode2Str(it->second.type_code), ", wanted ",
                     ArgTypeCode2Str(type_code));
    }
    return it->second.object;
  }

  void CheckRoomFor(uint64_t nbytes) {
    Lock lock(mutex_);
    if (max_bytes_ != 0 && (nbytes > max_bytes_ || bytes_ > max_bytes_ - nbytes)) {
      ThrowError("the session may have ", max_bytes_, " bytes of memory, has ", bytes_, ", and asks for ", nbytes, " more");
    }
  }

  // Where `nbytes` bytes of a tensor are, which must be within what its handle stands for; and what keeps them.
  Space Locate(const DLTensor& tensor, uint64_t nbytes, ObjectPtr<Object>* owner = nullptr) {
    if (tensor.data == nullptr && nbytes == 0) return {nullptr, 0, tensor.device};
    Lock lock(mutex_);
    auto it = entries_.find(Number(tensor.data));
    if (it == entries_.end()) ThrowUnknown(tensor.data);
    const Entry& entry = it->second;
    if (entry.type_code != kMemory && entry.type_code != kTVMNDArrayHandle) {
      ThrowTypeError("RPC: the handle ", Number(tensor.data), " is no array's");
    }
    const Space& space = entry.space;
    if (space.device.device_type != tensor.device.device_type || space.device.device_id != tensor.device.device_id) {
      ThrowValueError("RPC: an array is on ", DeviceText(space.device), ", and said to be on ", DeviceText(tensor.device));
    }
    if (tensor.byte_offset > space.size || nbytes > space.size - tensor.byte_offset) {
      ThrowValueError("RPC: ", nbytes, " bytes from byte ", tensor.byte_offset, " of an array that has ", space.size);
    }
    if (owner != nullptr) *owner = entry.object;
    return {space.data + tensor.byte_offset, nbytes, space.device};
  }

  DLTensor Located(const DLTensor& tensor) {
    DLTensor located = tensor;
    located.data = Locate(tensor, DataBytes(tensor)).data;
    located.byte_offset = 0;
    return located;
  }

  // Pointers that are no handles, such as streams: only those that the session has given out come back.
  void* Publish(void* pointer) {
    Lock lock(mutex_);
    if (pointer != nullptr) published_.insert(pointer);
    return pointer;
  }
  void* Known(void* pointer) {
    Lock lock(mutex_);
    if (pointer != nullptr && published_.count(pointer) == 0) ThrowUnknown(pointer);
    return pointer;
  }

  void Resolve(TVMValue* value, int* code, std::vector<ObjectPtr<Object>>* kept) {
    switch (*code) {
      case kTVMPackedFuncHandle:
      case kTVMModuleHandle:
      case kTVMObjectHandle:
        kept->push_back(FindObject(value->v_handle, *code));
        value->v_handle = kept->back().get();
        return;
      case kTVMDLTensorHandle: {
        // an array, which the function may keep
        const DLTensor& tensor = *static_cast<DLTensor*>(value->v_handle);
        ObjectPtr<Object> owner;
        Space space = Locate(tensor, DataBytes(tensor), &owner);
        NDArray array = NDArray::FromMemory(space.data, {tensor.shape, tensor.shape + tensor.ndim}, tensor.dtype, space.device, owner);
        kept->push_back(ObjectPtr<Object>(array.get_mutable()));
        value->v_handle = array.tensor();
        *code = kTVMNDArrayHandle;
        return;
      }
      case kTVMOpaqueHandle: Known(value->v_handle); return;
      default: return;
    }
  }

  void* KeepArray(NDArray array, DLTensor* tensor) {
    if (!array.IsContiguous()) array = array.CopyTo(array->device);
    *tensor = *array.tensor();
    tensor->strides = nullptr;
    Entry entry{kTVMNDArrayHandle, ObjectPtr<Object>(array.get_mutable()), {}};
    entry.space = {static_cast<char*>(tensor->data) + tensor->byte_offset, DataBytes(*tensor), tensor->device};
    tensor->byte_offset = 0;
    tensor->data = Insert(std::move(entry));
    return tensor->data;
  }

  void Return(TVMRetValue result, const TakeReturn& take) {
    const int code = result.type_code();
    TVMValue values[3];
    int codes[3];
    TVMArgsSetter set(values, codes);
    int count = 2;
    DLTensor tensor;
    set(0, code);
    switch (code) {
      case kTVMNDArrayHandle:
        set(2, KeepArray(result, &tensor));
        set(1, &tensor);
        count = 3;
        break;
      case kTVMPackedFuncHandle:
      case kTVMModuleHandle:
      case kTVMObjectHandle: set(1, Keep(code, ObjectPtr<Object>(static_cast<Object*>(result.value().v_handle)))); break;
      case kTVMDLTensorHandle: ThrowTypeError("RPC: a function returned a DLTensor, of which nobody knows how long it lives");
      case kTVMOpaqueHandle: Publish(result.value().v_handle);  // fall through
      default: set(1, static_cast<const TVMArgValue&>(result));
    }
    take(TVMArgs(values, codes, count));
  }

  ForkMutex mutex_;
  std::unordered_map<uint64_t, Entry> entries_;
  std::unordered_set<void*> published_;
  uint64_t next_{1};
  uint64_t bytes_{0};
  const uint64_t max_bytes_;
};

}  // namespace

std::shared_ptr<Session> MakeLocalSession(uint64_t max_bytes) {
  auto session = std::make_shared<LocalSession>(max_bytes);
  Session::Enter(session);
  return session;
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
