// Modules: named functions that were compiled or loaded together, and the modules they import.
#ifndef TVM_RUNTIME_MODULE_H_
#define TVM_RUNTIME_MODULE_H_

#include <tvm/runtime/packed_func.h>

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace tvm {
namespace runtime {

class ByteWriter;

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
  Module() = default;
  explicit Module(ObjectPtr<ModuleNode> data);
  ModuleNode* operator->() const { return node(); }
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
  virtual int GetPropertyMask() const { return 0; }
  virtual PackedFunc GetFunction(const std::string& name, const ObjectPtr<Object>& self) = 0;
  virtual void SaveToFile(const std::string& path, const std::string& format);
  virtual void SaveToBinary(ByteWriter* writer);
  virtual std::string GetSource(const std::string& format);
  virtual std::string GetFormat() { return ""; }
  // Whether there is such a function, even one that cannot be called before it is linked.
  virtual bool ImplementsFunction(const std::string& name, bool query_imports = false);

  PackedFunc GetFunction(const std::string& name, bool query_imports);
  void Import(Module other);
  // What compiled code of this module means by `name`: an import's function or a global one.
  PackedFuncObj* GetFuncFromEnv(const std::string& name);
  std::vector<Module>& imports() { return imports_; }

 private:
  std::vector<Module> imports_;
  std::mutex env_mutex_;
  std::unordered_map<std::string, PackedFunc> imported_funcs_;
  std::vector<PackedFunc> global_funcs_;
};

inline Module::Module(ObjectPtr<ModuleNode> data) : ObjectRef(ObjectPtr<Object>(data)) {}
inline ModuleNode* Module::node() const { return static_cast<ModuleNode*>(data_.get()); }

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_MODULE_H_
