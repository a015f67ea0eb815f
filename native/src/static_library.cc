// Modules over object files, which become code when a library is linked.
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "bytes.h"

namespace tvm {
namespace runtime {
namespace {

class StaticLibraryModule : public ModuleNode {
 public:
  StaticLibraryModule(std::string object_code, std::vector<std::string> names)
      : object_code_(std::move(object_code)), names_(std::move(names)) {}

  const char* type_key() const final { return "static_library"; }
  int GetPropertyMask() const final { return kBinarySerializable | kDSOExportable; }
  String GetFormat() final { return "o"; }
  bool ImplementsFunction(const String& name, bool query_imports) final {
    return std::find(names_.begin(), names_.end(), name) != names_.end() ||
           ModuleNode::ImplementsFunction(name, query_imports);
  }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    if (name == "get_func_names") {
      return PackedFunc([this, self](TVMArgs, TVMRetValue* rv) {
        std::string all;
        for (const std::string& each : names_) all += (all.empty() ? "" : "\n") + each;
        *rv = all;
      });
    }
    return PackedFunc();
  }
  void SaveToBinary(dmlc::Stream* stream) final {
    stream->Write(object_code_);
    stream->Write(names_);
  }
  static Module LoadFromBinary(void* stream) {
    ByteReader* reader = ByteReader::Of(stream);
    std::string object_code = reader->ReadString();
    return Module(ObjectPtr<ModuleNode>(make_object<StaticLibraryModule>(object_code, reader->ReadStrings())));
  }
  void SaveToFile(const String& path, const String&) final {
    std::ofstream file(path, std::ios::binary);
    file << object_code_;
    if (!file) ThrowError("cannot write ", path);
  }

 private:
  std::string object_code_;
  std::vector<std::string> names_;
};

}  // namespace

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_static_library").set_body_typed(StaticLibraryModule::LoadFromBinary);

// (object_code, name, name, ...)
TVM_REGISTER_GLOBAL("runtime.ModuleFromObject").set_body([](TVMArgs args, TVMRetValue* rv) {
  std::vector<std::string> names;
  for (int i = 1; i < args.num_args; ++i) names.push_back(args[i]);
  *rv = Module(ObjectPtr<ModuleNode>(make_object<StaticLibraryModule>(args[0], std::move(names))));
});

}  // namespace runtime
}  // namespace tvm
