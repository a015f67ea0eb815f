// The calling thread's last error.
#include <tvm/runtime/error.h>

#include <new>

namespace tvm {
namespace runtime {
namespace {

struct LastError {
  std::string message;
  ObjectPtr<Object> foreign;
};

LastError& Last() {
  static thread_local LastError last;
  return last;
}

}  // namespace

void ThrowLastError() {
  LastError& last = Last();
  ObjectPtr<Object> foreign = std::move(last.foreign);
  last.foreign = nullptr;
  throw Error(last.message, std::move(foreign));
}

int SetLastError(const std::exception& error) {
  LastError& last = Last();
  bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  last.message = no_memory ? "MemoryError: the runtime is out of memory" : error.what();
  auto* ours = dynamic_cast<const Error*>(&error);
  last.foreign = ours ? ours->foreign() : nullptr;
  return -1;
}

int SetUnknownError() { return SetLastError(Error("TVMError: C++ code threw something that is no std::exception")); }

}  // namespace runtime
}  // namespace tvm

using tvm::runtime::Last;
using tvm::runtime::Object;
using tvm::runtime::ObjectPtr;

void TVMAPISetLastError(const char* msg) {
  Last().message = msg ? msg : "";
  Last().foreign = nullptr;
}

const char* TVMGetLastError() { return Last().message.c_str(); }

void TVMAPISetLastForeignError(const char* msg, TVMObjectHandle error) {
  Last().message = msg ? msg : "";
  Last().foreign = ObjectPtr<Object>(static_cast<Object*>(error));
}

void* TVMGetLastPythonError() {
  Object* error = Last().foreign.get();
  bool is_foreign = error != nullptr && error->type_index() == tvm::runtime::kRuntimeForeign;
  return is_foreign ? static_cast<tvm::runtime::ForeignObj*>(error)->foreign : nullptr;
}

void TVMDropLastPythonError() { Last().foreign = nullptr; }

TVMObjectHandle TVMTakeLastForeignError() {
  return Last().foreign.release();
}
