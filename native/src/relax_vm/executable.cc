// Executables as modules: tables, and how other languages make them.
#include "executable.h"

#include <tvm/runtime/registry.h>

#include "../json.h"
#include "../write_file.h"

namespace tvm {
namespace runtime {
namespace relax_vm {

void Executable::Finish() {
  function_index_.clear();
  for (size_t i = 0; i < functions.size(); ++i) {
    if (!function_index_.emplace(functions[i].name, i).second) ThrowValueError("the executable has two functions '", functions[i].name, "'");
  }
  for (const Function& func : functions) Check(func, Limits{functions.size(), constants.size()});
}

Word Executable::FunctionIndex(const std::string& name) const {
  auto it = function_index_.find(name);
  return it == function_index_.end() ? -1 : it->second;
}

const Function& Executable::FindFunction(const std::string& name) const {
  Word index = FunctionIndex(name);
  if (index >= 0 && functions[index].kind != FunctionKind::kPacked) return functions[index];
  std::string names;
  for (const Function& func : functions) {
    if (func.kind != FunctionKind::kPacked) names += (names.empty() ? "'" : ", '") + func.name + "'";
  }
  ThrowValueError("the executable has no function '", name, "'; it has ", names.empty() ? "none" : names);
}

PackedFunc Executable::GetFunction(const String& name, const ObjectPtr<Object>& self) {
  auto text = [this, self](std::string (Executable::*make)() const) {
    return PackedFunc([this, self, make](TVMArgs, TVMRetValue* rv) { *rv = (this->*make)(); });
  };
  if (name == "as_text") return text(&Executable::AsText);
  if (name == "as_python") return text(&Executable::AsPython);
  if (name == "stats") return text(&Executable::Stats);
  if (name == "save_to_file") return PackedFunc([this, self](TVMArgs args, TVMRetValue*) { SaveToFile(args[0], ""); });
  if (name == "has_function") {
    return PackedFunc([this, self](TVMArgs args, TVMRetValue* rv) {
      Word index = FunctionIndex(args[0]);
      *rv = index >= 0 && functions[index].kind != FunctionKind::kPacked;
    });
  }
  if (name == "vm_load_executable" || name == "vm_profiler_load_executable") {
    auto create = name == "vm_load_executable" ? CreateMachine : CreateProfilingMachine;
    return PackedFunc([self, create](TVMArgs, TVMRetValue* rv) { *rv = create(Module(GetObjectPtr<ModuleNode>(self.get()))); });
  }
  return nullptr;
}

void Executable::SaveToBinary(dmlc::Stream* stream) { stream->Write(Save()); }

void Executable::SaveToFile(const String& path, const String&) { WriteFile(path, Save()); }

// (functions as JSON, int64 array of the code of all functions, constant, constant, ...)
TVM_REGISTER_GLOBAL("relax.CreateExecutable").set_body([](TVMArgs args, TVMRetValue* rv) {
  const std::string place = "relax.CreateExecutable";
  Json description = Json::Parse(args[0], place);
  NDArray code = args[1];
  const Word* at = static_cast<const Word*>(code->data);
  const Word* end = at + DataBytes(*code.tensor()) / sizeof(Word);
  auto exec = make_object<Executable>();
  for (int i = 2; i < args.num_args; ++i) {
    exec->constants.emplace_back();
    // shapes of other languages become native ones, for machines without them
    if (args[i].type_code() == kTVMObjectHandle) exec->constants.back() = ObjectRef(args[i].operator ShapeTuple());
    else exec->constants.back() = args[i];
  }
  for (const Json& item : description.Array(place)) {
    Function func;
    func.kind = static_cast<FunctionKind>(item.At("kind", place).Int(place));
    func.name = item.At("name", place).String(place);
    func.num_registers = item.At("registers", place).Int(place);
    for (const Json& param : item.At("params", place).Array(place)) func.params.push_back(param.String(place));
    func.num_args = static_cast<Word>(func.params.size());
    Word words = item.At("words", place).Int(place);
    if (words < 0 || words > end - at) ThrowValueError(place, ": the code of '", func.name, "' is cut off");
    func.code = Decode(at, static_cast<size_t>(words), func.name);
    at += words;
    exec->functions.push_back(std::move(func));
  }
  exec->Finish();
  *rv = Module(ObjectPtr<ModuleNode>(exec));
});

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
