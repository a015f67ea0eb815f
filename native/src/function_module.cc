// Modules whose functions are added one by one, by __add_function(name, func).
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <string>
#include <unordered_map>
#include <utility>

namespace tvm {
namespace runtime {
namespace {

class FunctionModule : public ModuleNode {
 public:
  FunctionModule(std::string type_key, int properties) : type_key_(std::move(type_key)), properties_(properties) {}

  const char* type_key() const final { return type_key_.c_str(); }
  int GetPropertyMask() const final { return properties_; }

  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    if (name == "__add_function") {
      return TypedPackedFunc<void(String, PackedFunc)>(
                 [this, self](String name, PackedFunc func) { functions_[name] = func; })
          .packed();
    }
    auto it = functions_.find(name);
    return it == functions_.end() ? PackedFunc() : it->second;
  }

 private:
  std::string type_key_;
  int properties_;
  std::unordered_map<std::string, PackedFunc> functions_;
};

Module MakeFunctionModule(std::string type_key, int properties) {
  return Module(ObjectPtr<ModuleNode>(make_object<FunctionModule>(std::move(type_key), properties)));
}

}  // namespace

TVM_REGISTER_GLOBAL("runtime.FunctionModule").set_body_typed([](std::string type_key, int properties) {
  return MakeFunctionModule(type_key, properties);
});

TVM_REGISTER_GLOBAL("testing.FrontendTestModule").set_body_typed([] { return MakeFunctionModule("frontend_test", 0); });

}  // namespace runtime
}  // namespace tvm
