// Global functions, by name.
//
//     TVM_REGISTER_GLOBAL("my.add").set_body_typed([](int64_t a, int64_t b) { return a + b; });
#ifndef TVM_RUNTIME_REGISTRY_H_
#define TVM_RUNTIME_REGISTRY_H_

#include <tvm/runtime/packed_func.h>

#include <string>
#include <vector>

namespace tvm {
namespace runtime {

class TVM_DLL Registry {
 public:
  static void Set(const std::string& name, PackedFunc func, bool override);
  // The function, or an undefined one.
  static PackedFunc Find(const std::string& name);
  static bool Remove(const std::string& name);
  static std::vector<std::string> ListNames();

  // The two steps of TVM_REGISTER_GLOBAL.
  explicit Registry(std::string name) : name_(std::move(name)) {}
  template <class F>
  Registry& set_body(F body) {
    Set(name_, PackedFunc(std::move(body)), false);
    return *this;
  }
  template <class F>
  Registry& set_body_typed(F body) {
    Set(name_, TypedPackedFunc(std::move(body), name_), false);
    return *this;
  }

 private:
  std::string name_;
};

#define TVM_CONCAT_(a, b) a##b
#define TVM_CONCAT(a, b) TVM_CONCAT_(a, b)
#define TVM_REGISTER_GLOBAL(name)                                                               \
  static __attribute__((unused))::tvm::runtime::Registry TVM_CONCAT(tvm_registered_, __COUNTER__) = \
      ::tvm::runtime::Registry(name)

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_REGISTRY_H_
