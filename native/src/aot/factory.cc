// The module that relay.build returns for the AOT executor; it makes executors of the library that it imports.
#include <tvm/runtime/registry.h>

#include "executor.h"

namespace tvm {
namespace runtime {
namespace {

std::vector<DLDevice> DevicesFrom(TVMArgs args, int first) {
  std::vector<DLDevice> devices;
  for (int i = first; i < args.num_args; ++i) devices.push_back(args[i]);
  return devices;
}

class AotExecutorFactory : public ModuleNode {
 public:
  AotExecutorFactory(NamedArrays params, std::string module_name)
      : params_(std::move(params)), module_name_(std::move(module_name)) {}

  const char* type_key() const final { return "AotExecutorFactory"; }
  int GetPropertyMask() const final { return kBinarySerializable; }

  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    if (module_name_ == std::string(name)) {
      return PackedFunc([this, self](TVMArgs args, TVMRetValue* rv) {
        *rv = CreateAotExecutor(Library(), DevicesFrom(args, 0), params_);
      });
    }
    if (name == "remove_params") {
      return PackedFunc([this, self](TVMArgs, TVMRetValue* rv) {
        auto copy = make_object<AotExecutorFactory>(NamedArrays(), module_name_);
        for (Module& import : imports()) copy->Import(import);
        *rv = Module(ObjectPtr<ModuleNode>(copy));
      });
    }
    if (name == "list_module_names") return PackedFunc([this, self](TVMArgs, TVMRetValue* rv) { *rv = Array<String>(std::vector<String>{module_name_}); });
    return PackedFunc();
  }

  void SaveToBinary(dmlc::Stream* stream) final {
    std::vector<std::string> names;
    for (const auto& param : params_) names.push_back(param.first);
    stream->Write<uint64_t>(names.size());
    stream->Write(names);
    for (const auto& param : params_) param.second.Save(stream);
    stream->Write(module_name_);
  }

  static Module LoadFromBinary(void* stream) {
    ByteReader* reader = ByteReader::Of(stream);
    uint64_t count = reader->Read<uint64_t>();
    std::vector<std::string> names = reader->ReadStrings();
    if (names.size() != count) ThrowValueError(reader->what(), " is corrupt: ", names.size(), " names for ", count, " arrays");
    NamedArrays params;
    for (std::string& name : names) params.emplace_back(std::move(name), LoadArray(reader));
    return Module(ObjectPtr<ModuleNode>(make_object<AotExecutorFactory>(std::move(params), reader->ReadString())));
  }

 private:
  Module Library() {
    if (imports().empty()) ThrowValueError("the factory imports no library");
    return imports()[0];
  }

  NamedArrays params_;
  std::string module_name_;
};

// Stands between a factory and its library in files; the description of the model is in the library.
class MetadataModule : public ModuleNode {
 public:
  const char* type_key() const final { return "metadata_module"; }
  int GetPropertyMask() const final { return kBinarySerializable; }
  PackedFunc GetFunction(const String&, const ObjectPtr<Object>&) final { return PackedFunc(); }
  void SaveToBinary(dmlc::Stream*) final {}
};

Module CreateMetadataModule() { return Module(ObjectPtr<ModuleNode>(make_object<MetadataModule>())); }

}  // namespace

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_AotExecutorFactory").set_body_typed(AotExecutorFactory::LoadFromBinary);

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_metadata_module").set_body_typed([](void*) { return CreateMetadataModule(); });

// (lib, module_name, name, array, name, array, ...)
TVM_REGISTER_GLOBAL("tvm.aot_executor_factory.create").set_body([](TVMArgs args, TVMRetValue* rv) {
  NamedArrays params;
  for (int i = 2; i + 1 < args.num_args; i += 2) params.emplace_back(args[i].operator std::string(), args[i + 1].operator NDArray());
  auto factory = make_object<AotExecutorFactory>(std::move(params), args[1].operator std::string());
  Module library = args[0];
  if (library.defined()) {
    Module metadata = CreateMetadataModule();
    metadata.Import(library);
    factory->Import(metadata);
  }
  *rv = Module(ObjectPtr<ModuleNode>(factory));
});

// (lib, device, device, ...)
TVM_REGISTER_GLOBAL("tvm.aot_executor.create").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = CreateAotExecutor(args[0], DevicesFrom(args, 1), NamedArrays());
});

}  // namespace runtime
}  // namespace tvm
