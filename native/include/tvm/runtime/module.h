// Modules: named functions that were compiled or loaded together, and the modules they import.
#ifndef TVM_RUNTIME_MODULE_H_
#define TVM_RUNTIME_MODULE_H_

#include <dmlc/io.h>
#include <tvm/runtime/container/string.h>
#include <tvm/runtime/dso_export.h>
#include <tvm/runtime/packed_func.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace tvm {
namespace runtime {

enum ModulePropertyMask : int {
  kBinarySerializable = 0b001,
  kRunnable = 0b010,
  kDSOExportable = 0b100,
};

// Names that compiled libraries and the runtime agree on.
namespace symbol {
constexpr const char* tvm_module_ctx = "__tvm_module_ctx";
constexpr const char* tvm_dev_mblob = "__tvm_dev_mblob";
constexpr const char* tvm_module_main = "__tvm_main__";
constexpr const char* tvm_param_prefix = "__tvm_param__";
}  // namespace symbol

class Module : public ObjectRef {
 public:
  using ContainerType = ModuleNode;
  Module() = default;
  Module(std::nullptr_t) {}
  explicit Module(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {}
  ModuleNode* operator->() const {
    if (!defined()) ThrowNullReference("Module");
    return node();
  }
  ModuleNode* node() const;
  // The function, or an undefined one.
  TVM_DLL PackedFunc GetFunction(const std::string& name, bool query_imports = false) const;
  TVM_DLL void Import(Module other) const;
  TVM_DLL static Module LoadFromFile(const std::string& path, const std::string& format = "");
};

class TVM_DLL ModuleNode : public Object {
 public:
  static constexpr uint32_t kTypeIndex = kRuntimeModule;
  virtual ~ModuleNode() = default;

  virtual const char* type_key() const = 0;
  // The bits of ModulePropertyMask.
  virtual int GetPropertyMask() const { return 0; }
  // The function `name`, or an undefined one; `sptr_to_self` is this module, for functions that keep it alive.
  virtual PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& sptr_to_self) = 0;
  virtual void SaveToFile(const String& file_name, const String& format);
  // What `runtime.module.loadbinary_<type_key>`, a global function of the stream as void*, makes the module of again.
  virtual void SaveToBinary(dmlc::Stream* stream);
  virtual String GetSource(const String& format = "");
  virtual String GetFormat() { return ""; }
  // Whether there is such a function, even one that cannot be called before it is linked.
  virtual bool ImplementsFunction(const String& name, bool query_imports = false);

  bool IsRunnable() const { return (GetPropertyMask() & kRunnable) != 0; }
  bool IsBinarySerializable() const { return (GetPropertyMask() & kBinarySerializable) != 0; }
  bool IsDSOExportable() const { return (GetPropertyMask() & kDSOExportable) != 0; }

  PackedFunc GetFunction(const String& name, bool query_imports = false);
  void Import(Module other);
  void ClearImports() { imports_.clear(); }
  // What compiled code of this module means by `name`: an import's function or a global one.
  PackedFuncObj* GetFuncFromEnv(const String& name);
  std::vector<Module>& imports() { return imports_; }
  const std::vector<Module>& imports() const { return imports_; }

 private:
  std::vector<Module> imports_;
  std::unordered_map<std::string, PackedFunc> imported_funcs_;
  std::vector<PackedFunc> global_funcs_;
};

// The stream that a function `runtime.module.loadbinary_<type_key>` was given; raises if a caller made it up.
TVM_DLL dmlc::Stream* LoaderStream(void* argument);

inline ModuleNode* Module::node() const { return static_cast<ModuleNode*>(data_.get()); }

// A table of functions, for the body of a subclass:
//
//     TVM_MODULE_VTABLE_BEGIN("my.Module");
//     TVM_MODULE_VTABLE_ENTRY("run", &MyModule::Run);
//     TVM_MODULE_VTABLE_END();
#define TVM_MODULE_VTABLE_BEGIN(TypeKey)                                                            \
  const char* type_key() const final { return TypeKey; }                                            \
  ::tvm::runtime::PackedFunc GetFunction(const ::tvm::runtime::String& tvm_name_,                   \
                                         const ::tvm::runtime::ObjectPtr<::tvm::runtime::Object>& tvm_self_) override {
#define TVM_MODULE_VTABLE_ENTRY(Name, Method) \
  if (tvm_name_ == Name) return ::tvm::runtime::detail::BindMethod(this, Method, tvm_self_, Name)
#define TVM_MODULE_VTABLE_END() \
  return nullptr;               \
  }
#define TVM_MODULE_VTABLE_END_WITH_DEFAULT(Method) \
  return (this->*(Method))(tvm_name_);             \
  }

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_MODULE_H_
