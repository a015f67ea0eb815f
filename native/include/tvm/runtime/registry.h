// Global functions, by name: found from C++, from compiled code and from Python.
//
//     TVM_REGISTER_GLOBAL("my.add").set_body_typed([](int64_t a, int64_t b) { return a + b; });
//     TVM_REGISTER_GLOBAL("my.log").set_body([](TVMArgs args, TVMRetValue* rv) { *rv = args.size(); });
//
// A library with such lines needs no more than to be loaded:
//
//     g++ -std=c++17 -shared -fPIC mine.cc -o mine.so $(for d in include folders: -I$d) -L<lib> -ltvm_runtime
//     python: ctypes.CDLL("mine.so", ctypes.RTLD_GLOBAL); tvm.get_global_func("my.add")(1, 2)
//
// where tvm._ffi.libinfo.find_include_path() tells the folders and find_lib_path() the library. A name
// that is taken is left as it is, with a line on stderr: an exception while a library is being loaded
// would end the process.
#ifndef TVM_RUNTIME_REGISTRY_H_
#define TVM_RUNTIME_REGISTRY_H_

#include <tvm/runtime/packed_func.h>

#include <string>
#include <vector>

namespace tvm {
namespace runtime {

class TVM_DLL Registry {
 public:
  // Raises if the name is taken and `override` is false.
  static void Set(const std::string& name, PackedFunc func, bool override);
  // The function, or an undefined one.
  static PackedFunc Find(const std::string& name);
  // The same as a pointer, null if there is none; valid until the name is set or removed.
  static const PackedFunc* Get(const std::string& name);
  static bool Remove(const std::string& name);
  static std::vector<std::string> ListNames();

  // Registration in two steps: Registry::Register("my.add").set_body(...).
  static Registry Register(std::string name, bool override = false) {
    return Registry(std::move(name), override ? OnTaken::kReplace : OnTaken::kThrow);
  }
  // What TVM_REGISTER_GLOBAL does.
  static Registry AtLoad(std::string name) { return Registry(std::move(name), OnTaken::kKeep); }

  Registry& set_body(PackedFunc func);
  template <class F, class = std::enable_if_t<std::is_invocable<F, TVMArgs, TVMRetValue*>::value>>
  Registry& set_body(F body) {
    return set_body(PackedFunc(std::move(body)));
  }
  template <class F>
  Registry& set_body_typed(F body) {
    return set_body(TypedPackedFunc(std::move(body), name_).packed());
  }
  // A method of a reference class, called on the first argument.
  template <class Ref, class R, class... A>
  Registry& set_body_method(R (Ref::*method)(A...)) {
    return set_body_typed([method](Ref self, A... args) -> R { return (self.*method)(args...); });
  }
  template <class Ref, class R, class... A>
  Registry& set_body_method(R (Ref::*method)(A...) const) {
    return set_body_typed([method](Ref self, A... args) -> R { return (self.*method)(args...); });
  }
  // The same for a method of the object that `Ref` refers to.
  template <class Ref, class Node, class R, class... A, class = std::enable_if_t<std::is_base_of<ObjectRef, Ref>::value>>
  Registry& set_body_method(R (Node::*method)(A...)) {
    return set_body_typed(
        [method](Ref self, A... args) -> R { return (static_cast<Node*>(self.get_mutable())->*method)(args...); });
  }
  template <class Ref, class Node, class R, class... A, class = std::enable_if_t<std::is_base_of<ObjectRef, Ref>::value>>
  Registry& set_body_method(R (Node::*method)(A...) const) {
    return set_body_typed(
        [method](Ref self, A... args) -> R { return (static_cast<const Node*>(self.get())->*method)(args...); });
  }

 private:
  enum class OnTaken { kThrow, kReplace, kKeep };
  Registry(std::string name, OnTaken on_taken) : name_(std::move(name)), on_taken_(on_taken) {}

  std::string name_;
  OnTaken on_taken_;
};

// For long loops: lets a signal that came meanwhile (Ctrl-C) end the call with its exception.
TVM_DLL void EnvCheckSignals();

#define TVM_CONCAT_(a, b) a##b
#define TVM_CONCAT(a, b) TVM_CONCAT_(a, b)
#define TVM_REGISTER_GLOBAL(name)                                                               \
  static __attribute__((unused))::tvm::runtime::Registry TVM_CONCAT(tvm_registered_, __COUNTER__) = \
      ::tvm::runtime::Registry::AtLoad(name)

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_REGISTRY_H_
