// Modules of C text, which run once a library was made of them.
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "bytes.h"

namespace tvm {
namespace runtime {
namespace {

class CSourceModule : public ModuleNode {
 public:
  CSourceModule(std::string code, std::string format, std::vector<std::string> functions,
                std::vector<std::string> constants)
      : code_(std::move(code)),
        format_(std::move(format)),
        functions_(std::move(functions)),
        constants_(std::move(constants)) {}

  const char* type_key() const final { return "c"; }
  int GetPropertyMask() const final { return kBinarySerializable | kDSOExportable; }
  String GetFormat() final { return format_; }
  String GetSource(const String&) final { return code_; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    if (name == "get_symbol") {
      return PackedFunc([this, self](TVMArgs, TVMRetValue* rv) { *rv = functions_.empty() ? "" : functions_[0]; });
    }
    if (name == "get_func_names") return All(functions_, self);
    if (name == "get_const_vars") return All(constants_, self);
    if (!Names(name)) return PackedFunc();
    return PackedFunc([name](TVMArgs, TVMRetValue*) {
      ThrowError("the function '", std::string(name),
                 "' is C text, which cannot run before it is compiled: export_library and load_module do that");
    });
  }
  void SaveToBinary(dmlc::Stream* stream) final {
    stream->Write(code_);
    stream->Write(format_);
    stream->Write(functions_);
    stream->Write(constants_);
  }
  static Module LoadFromBinary(void* stream) {
    ByteReader* reader = ByteReader::Of(stream);
    std::string code = reader->ReadString();
    std::string format = reader->ReadString();
    std::vector<std::string> functions = reader->ReadStrings();
    return Module(ObjectPtr<ModuleNode>(make_object<CSourceModule>(code, format, functions, reader->ReadStrings())));
  }
  void SaveToFile(const String& path, const String& format) final {
    if (!(format == "" || format == "c" || format == "cc" || format == "cpp" || format == format_)) {
      ThrowValueError("a C source module is saved as '", format_, "', got format '", std::string(format), "'");
    }
    std::ofstream file(path, std::ios::binary);
    file << code_;
    if (!file) ThrowError("cannot write ", std::string(path));
  }

 private:
  bool Names(const std::string& name) const {
    return std::find(functions_.begin(), functions_.end(), name) != functions_.end();
  }
  static PackedFunc All(const std::vector<std::string>& names, const ObjectPtr<Object>& self) {
    return PackedFunc([&names, self](TVMArgs, TVMRetValue* rv) { *rv = Array<String>(names.begin(), names.end()); });
  }

  std::string code_;
  std::string format_;
  std::vector<std::string> functions_;
  std::vector<std::string> constants_;
};

// Text for readers alone.
class SourceModule : public ModuleNode {
 public:
  SourceModule(std::string code, std::string format) : code_(std::move(code)), format_(std::move(format)) {}
  const char* type_key() const final { return "source"; }
  String GetFormat() final { return format_; }
  String GetSource(const String&) final { return code_; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>&) final {
    ThrowError("a source module holds ", format_, " text and no function '", std::string(name), "'");
  }

 private:
  std::string code_;
  std::string format_;
};

}  // namespace

// (code, format)
TVM_REGISTER_GLOBAL("runtime.SourceModuleCreate").set_body_typed([](std::string code, std::string format) {
  return Module(ObjectPtr<ModuleNode>(make_object<SourceModule>(std::move(code), std::move(format))));
});

// (code, format, number of functions, function, function, ..., constant, constant, ...)
TVM_REGISTER_GLOBAL("runtime.ModuleFromCSource").set_body([](TVMArgs args, TVMRetValue* rv) {
  constexpr int kFirst = 3;
  int end = kFirst + args[2].operator int();
  std::vector<std::string> functions, constants;
  for (int i = kFirst; i < args.num_args; ++i) (i < end ? functions : constants).push_back(args[i]);
  *rv = Module(ObjectPtr<ModuleNode>(
      make_object<CSourceModule>(args[0], args[1], std::move(functions), std::move(constants))));
});

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_c").set_body_typed(CSourceModule::LoadFromBinary);

}  // namespace runtime
}  // namespace tvm
