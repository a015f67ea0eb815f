// Functions that the surrounding language lends to the runtime, and its exceptions as errors.
#include <tvm/runtime/registry.h>

#include <atomic>
#include <cctype>

namespace tvm {
namespace runtime {
namespace {

struct EnvironmentFunction {
  const char* name;
  std::atomic<void*> address{nullptr};

  template <class F>
  F* Get() const {
    return reinterpret_cast<F*>(address.load());
  }
};

EnvironmentFunction check_signals{"PyErr_CheckSignals"};
EnvironmentFunction take_reference{"Py_IncRef"};
EnvironmentFunction drop_reference{"Py_DecRef"};

EnvironmentFunction& FindFunction(const std::string& name) {
  for (EnvironmentFunction* function : {&check_signals, &take_reference, &drop_reference}) {
    if (name == function->name) return *function;
  }
  ThrowValueError("no function of the environment is called '", name, "'");
}

// "text (file.cc:12)" -> "file.cc:12"
std::string PlaceIn(const std::string& message) {
  size_t open = message.rfind(" (");
  size_t colon = message.rfind(':');
  if (message.empty() || message.back() != ')' || open == std::string::npos || colon == std::string::npos || colon < open) return "";
  for (size_t i = colon + 1; i + 1 < message.size(); ++i) {
    if (!std::isdigit(static_cast<unsigned char>(message[i]))) return "";
  }
  return message.substr(open + 2, message.size() - open - 3);
}

}  // namespace

void EnvCheckSignals() {
  auto* check = check_signals.Get<int()>();
  if (check != nullptr && check() != 0) ThrowLastError();
}

}  // namespace runtime
}  // namespace tvm

using namespace tvm::runtime;

int TVMBackendRegisterEnvCAPI(const char* name, void* ptr) {
  TVM_API_BEGIN();
  FindFunction(name).address = ptr;
  TVM_API_END();
}

void TVMAPISetLastPythonError(void* py_object) {
  auto* take = take_reference.Get<void(void*)>();
  auto* drop = drop_reference.Get<void(void*)>();
  if (take == nullptr || drop == nullptr) {
    TVMAPISetLastError("TVMError: a Python exception in a process where Python has not loaded this runtime");
    return;
  }
  take(py_object);
  ObjectPtr<Object> error(make_object<ForeignObj>(py_object, drop));
  TVMAPISetLastForeignError((ForeignTypeName(error.get()) + ": a Python exception").c_str(), error.get());
}

const char* TVMGetLastBacktrace() {
  static thread_local std::string place;
  place = PlaceIn(TVMGetLastError());
  return place.empty() ? nullptr : place.c_str();
}

void TVMThrowLastError() { ThrowLastError(); }
