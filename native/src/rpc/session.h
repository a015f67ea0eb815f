// What one process can ask of another: the interface that a session has on both sides.
#ifndef TVM_SRC_RPC_SESSION_H_
#define TVM_SRC_RPC_SESSION_H_

#include <tvm/runtime/device_api.h>
#include <tvm/runtime/packed_func.h>

#include <functional>
#include <memory>
#include <string>

namespace tvm {
namespace runtime {
namespace rpc {

// Handles are numbers that the session has given out; devices are those of its own machine.
class Session {
 public:
  // Takes the result of a call: its type code, its value, and for an array its handle.
  using TakeReturn = std::function<void(TVMArgs)>;
  virtual ~Session() = default;

  // A handle of the global function, null if there is none.
  virtual void* GetFunction(const std::string& name) = 0;
  virtual void CallFunc(void* func, TVMArgs args, const TakeReturn& take) = 0;
  virtual void FreeHandle(void* handle, int type_code) = 0;

  virtual void CopyToRemote(const void* from, DLTensor* to, uint64_t nbytes) = 0;
  virtual void CopyFromRemote(DLTensor* from, void* to, uint64_t nbytes) = 0;
  virtual void CopyAmongRemote(DLTensor* from, DLTensor* to, TVMStreamHandle stream) = 0;
  // Where the bytes of an array are if this process can reach them, else null.
  virtual char* FindHostData(const DLTensor& tensor, uint64_t nbytes) { return nullptr; }

  virtual void SetDevice(Device dev) = 0;
  virtual void GetAttr(Device dev, DeviceAttrKind kind, TVMRetValue* rv) = 0;
  virtual void* AllocData(Device dev, uint64_t nbytes, uint64_t alignment, DLDataType type_hint) = 0;
  virtual void* AllocDataWithScope(const DLTensor& like, const Optional<String>& mem_scope) = 0;
  virtual void FreeData(Device dev, void* data) = 0;
  virtual void StreamSync(Device dev, TVMStreamHandle stream) = 0;
  virtual TVMStreamHandle CreateStream(Device dev) = 0;
  virtual void FreeStream(Device dev, TVMStreamHandle stream) = 0;
  virtual void SetStream(Device dev, TVMStreamHandle stream) = 0;
  virtual TVMStreamHandle GetCurrentStream(Device dev) = 0;

  // The session's number in this process, of which its devices' types tell.
  int table_index() const { return table_index_; }
  static void Enter(const std::shared_ptr<Session>& session);
  // Raises if it has ended.
  static std::shared_ptr<Session> At(int table_index);

 private:
  int table_index_{0};
};

// What the data of a remote array points to.
struct RemoteSpace {
  void* data;
  std::shared_ptr<Session> session;
};

// What functions see on this machine; `max_bytes` limits the memory of arrays, 0 does not.
std::shared_ptr<Session> MakeLocalSession(uint64_t max_bytes);

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RPC_SESSION_H_
