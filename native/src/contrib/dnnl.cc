// Functions of oneDNN's library, which is opened when one of them is called for the first time.
#include <dlfcn.h>
#include <tvm/runtime/registry.h>

#include <cstdlib>
#include <mutex>
#include <string>

#include "../fork.h"

namespace tvm {
namespace runtime {
namespace {

constexpr const char* kLibrary = "libtvm_dnnl.so";

std::string OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(OwnFolder), &info) == 0) return "";
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

// Its functions register themselves as `dnnl.<name>`.
void OpenLibrary() {
  static auto* mutex = new ForkMutex();
  static bool is_open = false;
  std::lock_guard<ForkMutex> lock(*mutex);
  if (is_open) return;
  // Its threads would otherwise spin on the cores that ours need between two of its operators. OpenMP reads this when
  // it is loaded.
  constexpr const char* kWaiting = "OMP_WAIT_POLICY";
  bool is_chosen = std::getenv(kWaiting) != nullptr;
  if (!is_chosen) setenv(kWaiting, "PASSIVE", 0);
  void* library = dlopen((OwnFolder() + kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!is_chosen) unsetenv(kWaiting);
  if (library == nullptr) {
    ThrowError("oneDNN cannot be used: ", dlerror(), " (", kLibrary, " lies beside libtvm_runtime.so if the runtime was built ",
               "where oneDNN's headers were, Debian's libdnnl-dev; to run, it needs libdnnl.so, Debian's libdnnl2)");
  }
  is_open = true;
}

void Forward(const char* name, const char* implementation) {
  Registry::Register(name).set_body([implementation](TVMArgs args, TVMRetValue* rv) {
    OpenLibrary();
    PackedFunc function = Registry::Find(implementation);
    if (!function.defined()) ThrowError(kLibrary, " is of another version: it has no function '", implementation, "'");
    function.CallPacked(args, rv);
  });
}

const bool is_registered = [] {
  Forward("runtime.DNNLJSONRuntimeCreate", "dnnl.DNNLJSONRuntimeCreate");
  Forward("runtime.module.loadbinary_dnnl_json", "dnnl.loadbinary_dnnl_json");
  Forward("tvm.contrib.dnnl.matmul", "dnnl.matmul");
  Forward("tvm.contrib.dnnl.conv2d", "dnnl.conv2d");
  return true;
}();

}  // namespace
}  // namespace runtime
}  // namespace tvm
