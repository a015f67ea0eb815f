// The module that relay.build returns: graph, parameters and, imported, the library; it makes executors.
#include <dmlc/memory_io.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/registry.h>

#include "../library.h"
#include "executor.h"

namespace tvm {
namespace runtime {
namespace {

constexpr const char* kPaddingName = "";
// what stands before the modules of a library
constexpr size_t kLengthBytes = sizeof(uint64_t);

// What lies in a library cannot be written.
NDArray Writable(const NDArray& array) {
  return array.container()->base == nullptr ? array : array.CopyTo(DLDevice{kDLCPU, 0});
}

bool IsLarge(const NDArray& array) { return DataBytes(*array.tensor()) >= 4096; }

class GraphExecutorFactory : public ModuleNode {
 public:
  GraphExecutorFactory(std::string json, NamedArrays params, std::string module_name)
      : json_(std::move(json)), params_(std::move(params)), module_name_(std::move(module_name)) {}

  const char* type_key() const final { return "GraphExecutorFactory"; }
  int GetPropertyMask() const final { return kBinarySerializable; }

  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    if (name == module_name_) {
      return PackedFunc([this, self](TVMArgs args, TVMRetValue* rv) {
        std::vector<DLDevice> devices;
        for (int i = 0; i < args.num_args; ++i) devices.push_back(args[i]);
        *rv = CreateGraphExecutor(json_, Library(), std::move(devices), params_);
      });
    }
    if (name == "debug_create") {  // (name, device, device, ...)
      return PackedFunc([this, self](TVMArgs args, TVMRetValue* rv) {
        std::string wanted = args[0];
        if (wanted != module_name_) ThrowValueError("the library holds the model '", module_name_, "', got '", wanted, "'");
        std::vector<DLDevice> devices;
        for (int i = 1; i < args.num_args; ++i) devices.push_back(args[i]);
        *rv = CreateDebugExecutor(json_, Library(), std::move(devices), params_);
      });
    }
    if (name == "remove_params") {
      return PackedFunc([this, self](TVMArgs, TVMRetValue* rv) {
        auto copy = make_object<GraphExecutorFactory>(json_, NamedArrays(), module_name_);
        for (Module& import : imports()) copy->Import(import);
        *rv = Module(ObjectPtr<ModuleNode>(copy));
      });
    }
    if (name == "list_module_names") return PackedFunc([this, self](TVMArgs, TVMRetValue* rv) { *rv = Array<String>(std::vector<String>{module_name_}); });
    if (name == "get_graph_json") return PackedFunc([this, self](TVMArgs, TVMRetValue* rv) { *rv = json_; });
    if (name == "get_params") {  // calls back with each name and array
      return PackedFunc([this, self](TVMArgs args, TVMRetValue*) {
        PackedFunc add = args[0];
        if (!add.defined()) ThrowTypeError("get_params needs a function to call with each parameter, got None");
        for (const auto& param : params_) add(param.first, Writable(param.second));
      });
    }
    if (name == "get_graph_params") {
      return PackedFunc([this, self](TVMArgs, TVMRetValue* rv) {
        Map<String, NDArray> all;
        for (const auto& param : params_) all.Set(param.first, Writable(param.second));
        *rv = all;
      });
    }
    return PackedFunc();
  }

  // In a library, large arrays begin where they can be used in place: nameless ones, which every reader ignores, fill
  // the gaps before them.
  void SaveToBinary(dmlc::Stream* stream) final {
    auto* library = dynamic_cast<dmlc::MemoryStringStream*>(stream);
    std::vector<std::string> names;
    for (const auto& param : params_) {
      if (library != nullptr && IsLarge(param.second)) names.push_back(kPaddingName);
      names.push_back(param.first);
    }
    stream->Write(json_);
    stream->Write<uint64_t>(names.size());
    stream->Write(names);
    for (const auto& param : params_) {
      if (library != nullptr && IsLarge(param.second)) SavePadding(stream, kLengthBytes + library->Tell(), param.second->ndim);
      param.second.Save(stream);
    }
    stream->Write(module_name_);
  }

  static Module LoadFromBinary(void* stream) {
    ByteReader* reader = ByteReader::Of(stream);
    std::string json = reader->ReadString();
    uint64_t count = reader->Read<uint64_t>();
    std::vector<std::string> names = reader->ReadStrings();
    if (names.size() != count) ThrowValueError(reader->what(), " is corrupt: ", names.size(), " names for ", count, " arrays");
    NamedArrays params;
    for (std::string& name : names) {
      NDArray array = LoadArray(reader);
      if (name != kPaddingName) params.emplace_back(std::move(name), array);
    }
    std::string module_name = reader->ReadString();
    return Module(ObjectPtr<ModuleNode>(make_object<GraphExecutorFactory>(json, params, module_name)));
  }

 private:
  Module Library() {
    if (imports().empty()) ThrowValueError("the factory imports no library");
    return imports()[0];
  }

  std::string json_;
  NamedArrays params_;
  std::string module_name_;
};

}  // namespace

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_GraphExecutorFactory").set_body_typed(GraphExecutorFactory::LoadFromBinary);
// what it was called before
TVM_REGISTER_GLOBAL("runtime.module.loadbinary_GraphRuntimeFactory").set_body_typed(GraphExecutorFactory::LoadFromBinary);

// (graph_json, lib, module_name, name, array, name, array, ...)
TVM_REGISTER_GLOBAL("tvm.graph_executor_factory.create").set_body([](TVMArgs args, TVMRetValue* rv) {
  NamedArrays params;
  for (int i = 3; i + 1 < args.num_args; i += 2) {
    NDArray array = args[i + 1];
    if (!array.defined()) ThrowTypeError("parameter '", args[i].operator std::string(), "' must be an NDArray, got None");
    params.emplace_back(args[i].operator std::string(), array);
  }
  Graph::Parse(args[0]);  // mistakes show here, not at the first run
  auto factory = make_object<GraphExecutorFactory>(args[0].operator std::string(), std::move(params), args[2].operator std::string());
  Module library = args[1];
  if (library.defined()) factory->Import(library);
  *rv = Module(ObjectPtr<ModuleNode>(factory));
});

namespace {

// The devices among the arguments (graph_json, lib, device_type, device_id, device_type, device_id, ...).
std::vector<DLDevice> ReadDevices(TVMArgs args) {
  if (args.num_args < 4) ThrowTypeError("graph_executor.create needs a graph, a library and a device, got ", args.num_args, " arguments");
  std::vector<DLDevice> devices;
  int first = args[2].type_code() == kTVMArgInt ? 2 : 3;
  for (int i = first; i + 1 < args.num_args; i += 2) {
    devices.push_back(DLDevice{static_cast<DLDeviceType>(int(args[i])), int(args[i + 1])});
  }
  return devices;
}

}  // namespace

TVM_REGISTER_GLOBAL("tvm.graph_executor.create").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = CreateGraphExecutor(args[0], args[1], ReadDevices(args), NamedArrays());
});

TVM_REGISTER_GLOBAL("tvm.graph_executor_debug.create").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = CreateDebugExecutor(args[0], args[1], ReadDevices(args), NamedArrays());
});

}  // namespace runtime
}  // namespace tvm
