// Constants for code of other compilers: kept beside their modules, and handed to them before their first use.
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/run_lock.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "params.h"

namespace tvm {
namespace runtime {
namespace {

// Imports the modules: `__init_<symbol>` of one of them takes the constants of a symbol, an array in the order in which
// the module asked for them.
class ConstLoaderModule : public ModuleNode {
 public:
  using Names = std::map<std::string, std::vector<std::string>>;

  ConstLoaderModule(std::map<std::string, NDArray> constants, Names names_by_symbol)
      : constants_(std::move(constants)), names_by_symbol_(std::move(names_by_symbol)) {
    for (const auto& [symbol, names] : names_by_symbol_) {
      waiting_.push_back(symbol);
      for (const std::string& name : names) {
        if (!constants_.count(name)) ThrowValueError("the function '", symbol, "' needs the constant '", name, "', which is not there");
      }
    }
  }

  const char* type_key() const final { return "const_loader"; }
  int GetPropertyMask() const final { return kBinarySerializable; }

  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    for (Module& import : imports()) {
      PackedFunc func = import->GetFunction(name, false);
      if (!func.defined()) continue;
      if (names_by_symbol_.count(name)) {
        Initialize(name);
      } else {  // it may call any of them
        for (const auto& entry : names_by_symbol_) Initialize(entry.first);
      }
      return func;
    }
    return PackedFunc();
  }

  void SaveToBinary(dmlc::Stream* stream) final {
    std::vector<std::string> variables, symbols;
    for (const auto& entry : constants_) variables.push_back(entry.first);
    stream->Write(variables);
    stream->Write<uint64_t>(constants_.size());
    for (const auto& entry : constants_) entry.second.Save(stream);
    for (const auto& entry : names_by_symbol_) symbols.push_back(entry.first);
    stream->Write(symbols);
    stream->Write<uint64_t>(symbols.size());
    for (const auto& entry : names_by_symbol_) stream->Write(entry.second);
  }

  static Module LoadFromBinary(void* stream) {
    ByteReader* reader = ByteReader::Of(stream);
    std::vector<std::string> variables = reader->ReadStrings();
    CheckCount(reader, variables.size());
    std::map<std::string, NDArray> constants;
    for (const std::string& name : variables) constants[name] = LoadArray(reader);
    std::vector<std::string> symbols = reader->ReadStrings();
    CheckCount(reader, symbols.size());
    Names names_by_symbol;
    for (const std::string& symbol : symbols) names_by_symbol[symbol] = reader->ReadStrings();
    return Module(ObjectPtr<ModuleNode>(make_object<ConstLoaderModule>(std::move(constants), std::move(names_by_symbol))));
  }

 private:
  static void CheckCount(ByteReader* reader, uint64_t expected) {
    uint64_t found = reader->Read<uint64_t>();
    if (found != expected) ThrowValueError(reader->what(), " is corrupt: ", expected, " names for ", found, " entries");
  }

  void Initialize(const std::string& symbol) {
    std::lock_guard<RunLock> lock(lock_);
    auto found = std::find(waiting_.begin(), waiting_.end(), symbol);
    if (found == waiting_.end()) return;
    PackedFunc initialize;
    for (Module& import : imports()) {
      initialize = import->GetFunction("__init_" + symbol, false);
      if (initialize.defined()) break;
    }
    if (!initialize.defined()) return;  // text that was not compiled yet has no such function
    Array<NDArray> values;
    for (const std::string& name : names_by_symbol_.at(symbol)) values.push_back(constants_.at(name));
    int status = initialize(values);
    if (status != 0) ThrowError("__init_", symbol, " failed with the status ", status);
    waiting_.erase(found);
  }

  std::map<std::string, NDArray> constants_;
  Names names_by_symbol_;
  std::vector<std::string> waiting_;  // symbols that have no constants yet
  RunLock lock_;
};

}  // namespace

// (arrays by name, names by symbol)
TVM_REGISTER_GLOBAL("runtime.ConstLoaderModuleCreate").set_body_typed([](Map<String, NDArray> arrays, Map<String, Array<String>> needs) {
  std::map<std::string, NDArray> constants;
  for (const auto& entry : arrays) constants[entry.first] = entry.second;
  ConstLoaderModule::Names names_by_symbol;
  for (const auto& entry : needs) {
    std::vector<std::string>& names = names_by_symbol[entry.first];
    for (const String& name : entry.second) names.push_back(name);
  }
  return Module(ObjectPtr<ModuleNode>(make_object<ConstLoaderModule>(std::move(constants), std::move(names_by_symbol))));
});

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_const_loader").set_body_typed(ConstLoaderModule::LoadFromBinary);

}  // namespace runtime
}  // namespace tvm
