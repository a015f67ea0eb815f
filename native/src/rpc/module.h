// Modules, functions, arrays and objects of another process, seen as those of this one.
#ifndef TVM_SRC_RPC_MODULE_H_
#define TVM_SRC_RPC_MODULE_H_

#include <tvm/runtime/module.h>

#include <memory>

#include "session.h"

namespace tvm {
namespace runtime {
namespace rpc {

constexpr const char* kModuleTypeKey = "rpc";

// The global functions of a session.
Module SessionModule(std::shared_ptr<Session> session);
// The session of a module of either kind; raises if it is none.
std::shared_ptr<Session> SessionOf(const Module& module);
bool IsRemote(const Module& module);
// `runtime.RPCTimeEvaluator` of a remote module: the same function there.
TVMRetValue RemoteTimeEvaluator(const Module& module, TVMArgs args);

// An object that another process has.
class RPCObjectRefObj : public Object {
 public:
  RPCObjectRefObj(void* handle, std::shared_ptr<Session> session) : handle(handle), session(std::move(session)) {}
  ~RPCObjectRefObj();
  void* const handle;
  const std::shared_ptr<Session> session;
  static constexpr const char* _type_key = "runtime.RPCObjectRef";
  TVM_DECLARE_FINAL_OBJECT_INFO(RPCObjectRefObj, Object);
};

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RPC_MODULE_H_
