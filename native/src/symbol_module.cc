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
  bool Names(const std::string& name) const { return symbols_.count(name) != 0; }

 private:
  std::unordered_map<std::string, void*> symbols_;
  ObjectRef keepalive_;
};

class SymbolModule : public ModuleNode {
 public:
  using Facts = std::unordered_map<std::string, TVMRetValue>;

  SymbolModule(std::string type_key, ObjectPtr<SymbolLibrary> library, PackedFunc get_source, std::string object_code,
               std::string foreign, Facts facts)
      : type_key_(std::move(type_key)),
        library_(std::move(library)),
        get_source_(std::move(get_source)),
        object_code_(std::move(object_code)),
        foreign_(std::move(foreign)),
        facts_(std::move(facts)) {}

  const char* type_key() const final { return type_key_.c_str(); }
  int GetPropertyMask() const final { return (foreign_.empty() ? kRunnable : 0) | kDSOExportable; }
  String GetFormat() final { return "o"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    if (name == "__tvm_object_code__") {
      return PackedFunc([this, self](TVMArgs, TVMRetValue* rv) {
        *rv = TVMByteArray{object_code_.data(), object_code_.size()};
      });
    }
    auto fact = facts_.find(name);
    if (fact != facts_.end()) return PackedFunc([self, value = &fact->second](TVMArgs, TVMRetValue* rv) { *rv = *value; });
    if (!foreign_.empty() && library_->Names(name)) {
      return PackedFunc([this, self, name](TVMArgs, TVMRetValue*) {
        ThrowError("the function '", name, "' cannot be called: ", foreign_);
      });
    }
    return FindInLibrary(library_, name, self);
  }
  String GetSource(const String& format) final { return get_source_(format); }
  void SaveToFile(const String& path, const String& format) final {
    std::string content = format == "o" || format == "obj" || format.empty() ? object_code_ : std::string(GetSource(format));
    std::ofstream file(path, std::ios::binary);
    file << content;
    if (!file) ThrowError("cannot write ", path);
  }

 private:
  std::string type_key_;
  ObjectPtr<SymbolLibrary> library_;
  PackedFunc get_source_;
  std::string object_code_;
  std::string foreign_;  // why the code cannot run here, if it cannot
  Facts facts_;  // what functions without arguments answer
};

}  // namespace

// (type_key, object_code, get_source, keepalive, foreign, number of facts, name, fact, name, fact, ..., name, address, ...)
TVM_REGISTER_GLOBAL("runtime.ModuleFromSymbols").set_body([](TVMArgs args, TVMRetValue* rv) {
  constexpr int kFirst = 6;
  int end_of_facts = kFirst + 2 * args[5].operator int();
  SymbolModule::Facts facts;
  for (int i = kFirst; i < end_of_facts; i += 2) facts[args[i]] = args[i + 1];
  std::unordered_map<std::string, void*> symbols;
  for (int i = end_of_facts; i + 1 < args.num_args; i += 2) {
    symbols[args[i]] = reinterpret_cast<void*>(static_cast<int64_t>(args[i + 1]));
  }
  auto library = make_object<SymbolLibrary>(std::move(symbols), ObjectRef(args[3]));
  auto node = make_object<SymbolModule>(args[0], library, args[2], args[1], args[4], std::move(facts));
  FillContext(library.get(), node.get());
  *rv = Module(ObjectPtr<ModuleNode>(node));
});

}  // namespace runtime
}  // namespace tvm
