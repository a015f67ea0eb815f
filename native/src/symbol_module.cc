// Modules made of addresses: code that was compiled into this process.
#include <tvm/runtime/registry.h>

#include <fstream>
#include <unordered_map>

#include "library.h"

namespace tvm {
namespace runtime {
namespace {

class SymbolLibrary : public Library {
 public:
  SymbolLibrary(std::unordered_map<std::string, void*> symbols, ObjectRef keepalive)
      : symbols_(std::move(symbols)), keepalive_(std::move(keepalive)) {}
  void* GetSymbol(const char* name) override {
    auto it = symbols_.find(name);
    return it == symbols_.end() ? nullptr : it->second;
  }

 private:
  std::unordered_map<std::string, void*> symbols_;
  ObjectRef keepalive_;
};

class SymbolModule : public ModuleNode {
 public:
  SymbolModule(std::string type_key, ObjectPtr<Library> library, PackedFunc get_source, std::string object_code)
      : type_key_(std::move(type_key)),
        library_(std::move(library)),
        get_source_(std::move(get_source)),
        object_code_(std::move(object_code)) {}

  const char* type_key() const final { return type_key_.c_str(); }
  int GetPropertyMask() const final { return kRunnable | kDSOExportable; }
  std::string GetFormat() final { return "o"; }
  PackedFunc GetFunction(const std::string& name, const ObjectPtr<Object>& self) final {
    if (name == "__tvm_object_code__") {
      return PackedFunc([this, self](TVMArgs, TVMRetValue* rv) {
        *rv = TVMByteArray{object_code_.data(), object_code_.size()};
      });
    }
    return FindInLibrary(library_, name, self);
  }
  std::string GetSource(const std::string& format) final { return get_source_(format); }
  void SaveToFile(const std::string& path, const std::string& format) final {
    std::string content = format == "o" || format == "obj" || format.empty() ? object_code_ : GetSource(format);
    std::ofstream file(path, std::ios::binary);
    file << content;
    if (!file) ThrowError("cannot write ", path);
  }

 private:
  std::string type_key_;
  ObjectPtr<Library> library_;
  PackedFunc get_source_;
  std::string object_code_;
};

}  // namespace

// (type_key, object_code, get_source, keepalive, name, address, name, address, ...)
TVM_REGISTER_GLOBAL("runtime.ModuleFromSymbols").set_body([](TVMArgs args, TVMRetValue* rv) {
  std::unordered_map<std::string, void*> symbols;
  for (int i = 4; i + 1 < args.num_args; i += 2) {
    symbols[args[i]] = reinterpret_cast<void*>(static_cast<int64_t>(args[i + 1]));
  }
  ObjectPtr<Library> library(make_object<SymbolLibrary>(std::move(symbols), ObjectRef(args[3])));
  auto node = make_object<SymbolModule>(args[0], library, args[2], args[1]);
  FillContext(library.get(), node.get());
  *rv = Module(ObjectPtr<ModuleNode>(node));
});

}  // namespace runtime
}  // namespace tvm
