// Executables as modules: tables, texts, constants that are bound late.
#include "executable.h"

#include <dmlc/memory_io.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "../json.h"
#include "../write_file.h"

namespace tvm {
namespace runtime {
namespace vm {
namespace {

std::string TensorText(const DLTensor& tensor) { return Cat("shape ", ShapeText(tensor.shape, tensor.ndim), ", ", DLDataType2String(tensor.dtype)); }

std::vector<std::string> Strings(const Json& value, const std::string& place) {
  std::vector<std::string> texts;
  for (const Json& item : value.Array(place)) texts.push_back(item.String(place));
  return texts;
}

std::vector<int64_t> Numbers(const Json& value, const std::string& place) {
  std::vector<int64_t> numbers;
  for (const Json& item : value.Array(place)) numbers.push_back(item.Int(place));
  return numbers;
}

}  // namespace

void Executable::Finish() {
  Limits limits{functions.size(), constants.size(), kernels.size(), devices.size()};
  function_index_.clear();
  for (size_t i = 0; i < functions.size(); ++i) {
    if (!function_index_.emplace(functions[i].name, i).second) ThrowValueError("the executable has two functions '", functions[i].name, "'");
  }
  for (Function& func : functions) Prepare(&func, functions, limits);
}

std::string Executable::SourcesOf(const Function* func, size_t pc, int64_t kernel) const {
  auto attrs = kernel_attrs.find(kernel);
  if (attrs == kernel_attrs.end()) return "";
  auto found = attrs->second.find(Cat("sources ", func - functions.data(), " ", pc));
  return found == attrs->second.end() ? "" : found->second;
}

int64_t Executable::FunctionIndex(const std::string& name) const {
  auto it = function_index_.find(name);
  return it == function_index_.end() ? -1 : it->second;
}

const Function& Executable::FindFunction(const std::string& name) const {
  int64_t index = FunctionIndex(name);
  if (index >= 0) return functions[index];
  std::string names;
  for (const Function& func : functions) names += (names.empty() ? "'" : ", '") + func.name + "'";
  ThrowValueError("the executable has no function '", name, "'; it has ", names.empty() ? "none" : names);
}

PackedFunc Executable::GetFunction(const String& name, const ObjectPtr<Object>& self) {
  auto text = [this, self](std::string (Executable::*make)() const) {
    return PackedFunc([this, self, make](TVMArgs, TVMRetValue* rv) { *rv = (this->*make)(); });
  };
  if (name == "get_bytecode") return text(&Executable::BytecodeText);
  if (name == "get_constants") return text(&Executable::ConstantsText);
  if (name == "get_virtual_devices") return text(&Executable::DevicesText);
  if (name == "get_primitives") return text(&Executable::KernelsText);
  if (name == "get_stats") return text(&Executable::Stats);
  if (name == "get_lib") return PackedFunc([this, self](TVMArgs, TVMRetValue* rv) { *rv = Library(); });
  if (name == "save") {
    return PackedFunc([this, self](TVMArgs, TVMRetValue* rv) {
      std::string bytes = Save();
      *rv = TVMByteArray{bytes.data(), bytes.size()};
    });
  }
  if (name == "get_num_functions") return PackedFunc([this, self](TVMArgs, TVMRetValue* rv) { *rv = static_cast<int64_t>(functions.size()); });
  if (name == "get_function_name") {
    return PackedFunc([this, self](TVMArgs args, TVMRetValue* rv) { *rv = functions.at(int64_t(args[0])).name; });
  }
  if (name == "get_num_primitives") return PackedFunc([this, self](TVMArgs, TVMRetValue* rv) { *rv = static_cast<int64_t>(kernels.size()); });
  if (name == "get_primitive_name") {
    return PackedFunc([this, self](TVMArgs args, TVMRetValue* rv) { *rv = kernels.at(int64_t(args[0])); });
  }
  if (name == "get_function_arity") {
    return PackedFunc([this, self](TVMArgs args, TVMRetValue* rv) { *rv = static_cast<int64_t>(FindFunction(args[0]).params.size()); });
  }
  if (name == "get_function_param_name") {
    return PackedFunc([this, self](TVMArgs args, TVMRetValue* rv) {
      const Function& func = FindFunction(args[0]);
      int64_t i = args[1];
      if (i < 0 || i >= static_cast<int64_t>(func.params.size())) {
        ThrowValueError("'", func.name, "' has ", func.params.size(), " parameters, got index ", i);
      }
      *rv = func.params[i];
    });
  }
  if (name == "get_function_signature") {  // (function): JSON, empty if it is not known
    return PackedFunc([this, self](TVMArgs args, TVMRetValue* rv) {
      auto found = signatures.find(FindFunction(args[0]).name);
      *rv = found == signatures.end() ? std::string() : found->second;
    });
  }
  if (name == "vm_load_executable") return PackedFunc([self](TVMArgs, TVMRetValue* rv) { *rv = CreateMachine(Module(GetObjectPtr<ModuleNode>(self.get()))); });
  if (name == "vm_profiler_load_executable") {
    return PackedFunc([self](TVMArgs, TVMRetValue* rv) { *rv = CreateDebugMachine(Module(GetObjectPtr<ModuleNode>(self.get()))); });
  }
  if (name == "move_late_bound_consts") {
    return PackedFunc([this, self](TVMArgs args, TVMRetValue*) { MoveLateBound(args[0], static_cast<size_t>(int64_t(args[1]))); });
  }
  if (name == "get_late_bound_consts") {  // (byte limit, callback): calls back with each name and array
    return PackedFunc([this, self](TVMArgs args, TVMRetValue*) {
      PackedFunc add = args[1];
      for (auto& item : LateBound(static_cast<size_t>(int64_t(args[0])))) add(item.first, item.second);
    });
  }
  if (name == "load_late_bound_consts") {
    return PackedFunc([this, self](TVMArgs args, TVMRetValue*) {
      std::string path = args[0];
      std::ifstream file(path, std::ios::binary);
      if (!file) ThrowValueError("cannot read constants: there is no readable file ", path);
      std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      ByteReader reader(bytes.data(), bytes.size(), path);
      BindLate(LoadParams(&reader));
    });
  }
  if (name == "load_late_bound_consts_from_map") {  // (name, array, name, array, ...)
    return PackedFunc([this, self](TVMArgs args, TVMRetValue*) {
      NamedArrays values;
      for (int i = 0; i + 1 < args.num_args; i += 2) values.emplace_back(args[i].operator std::string(), args[i + 1].operator NDArray());
      BindLate(values);
    });
  }
  return nullptr;
}

std::string Executable::BytecodeText() const {
  std::ostringstream os;
  for (size_t i = 0; i < functions.size(); ++i) {
    const Function& func = functions[i];
    os << "VM Function[" << i << "]: " << func.name << "(";
    for (size_t p = 0; p < func.params.size(); ++p) os << (p ? ", " : "") << func.params[p];
    os << ")\n# reg file size = " << func.num_registers << "\n# instruction count = " << func.code.size() << "\n";
    os << "opcode, fields # inst(text):\n";
    for (size_t pc = 0; pc < func.code.size(); ++pc) {
      os << " " << pc << ": " << func.code[pc].op;
      for (int64_t field : func.code[pc].fields) os << " " << field;
      os << "  # " << InstructionText(func.code[pc], kernels, functions) << "\n";
    }
    os << "\n";
  }
  return os.str();
}

std::string Executable::ConstantsText() const {
  std::ostringstream os;
  for (size_t i = 0; i < constants.size(); ++i) {
    os << "VM Const[" << i << "]: ";
    if (constants[i].defined()) os << TensorText(*constants[i].tensor());
    else os << "late bound, '" << late_bound_names.at(i) << "'";
    os << ", device index " << constant_devices[i] << "\n";
  }
  return os.str();
}

std::string Executable::DevicesText() const {
  std::ostringstream os;
  for (size_t i = 0; i < devices.size(); ++i) {
    os << "VM VirtualDevice[" << i << "]: device type " << devices[i].first.device_type << ", id " << devices[i].first.device_id;
    if (!devices[i].second.empty()) os << " and mem_scope " << devices[i].second;
    os << (static_cast<int64_t>(i) == host_device ? " (using as host)\n" : "\n");
  }
  return os.str();
}

std::string Executable::KernelsText() const {
  std::ostringstream os;
  for (size_t i = 0; i < kernels.size(); ++i) os << "VM PackedFunc[" << i << "]: " << kernels[i] << "\n";
  return os.str();
}

std::string Executable::Stats() const {
  std::ostringstream os;
  os << "Relay VM executable statistics:\n  Constant shapes (# " << constants.size() << "): [";
  for (size_t i = 0; i < constants.size(); ++i) {
    if (i) os << ", ";
    if (!constants[i].defined()) os << "late bound";
    else if (constants[i]->ndim == 0) os << "scalar";
    else os << ShapeText(constants[i]->shape, constants[i]->ndim);
  }
  os << "]\n  Globals (#" << functions.size() << "): [";
  for (size_t i = 0; i < functions.size(); ++i) os << (i ? ", " : "") << "(\"" << functions[i].name << "\", " << i << ")";
  os << "]\n  Primitive ops (#" << kernels.size() << "): [";
  for (size_t i = 0; i < kernels.size(); ++i) os << (i ? ", " : "") << kernels[i];
  os << "]\n";
  return os.str();
}

NamedArrays Executable::LateBound(size_t byte_limit) const {
  NamedArrays large;
  for (size_t i = 0; i < constants.size(); ++i) {
    if (constants[i].defined() && DataBytes(*constants[i].tensor()) >= byte_limit) large.emplace_back(Cat("const_", i), constants[i]);
  }
  return large;
}

void Executable::MoveLateBound(const std::string& path, size_t byte_limit) {
  NamedArrays large = LateBound(byte_limit);
  std::string bytes;
  dmlc::MemoryStringStream stream(&bytes);
  SaveParams(&stream, large);
  WriteFile(path, bytes);
  for (auto& item : large) {
    size_t index = std::stoull(item.first.substr(6));
    late_bound_names[index] = item.first;
    constants[index] = NDArray();
  }
}

void Executable::BindLate(const NamedArrays& values) {
  std::unordered_map<std::string, NDArray> by_name(values.begin(), values.end());
  for (const auto& late : late_bound_names) {
    auto it = by_name.find(late.second);
    if (it == by_name.end() || !it->second.defined()) ThrowValueError("the constant '", late.second, "' has no value among those given");
    constants[late.first] = it->second;
  }
  late_bound_names.clear();
}

namespace {

Function ReadFunction(const Json& value, const int64_t** code, const int64_t* end) {
  const std::string place = "functions";
  Function func;
  func.name = value.At("name", place).String(place);
  func.params = Strings(value.At("params", place), place);
  func.param_devices = Numbers(value.At("param_devices", place), place);
  if (func.param_devices.size() != func.params.size()) ThrowValueError("vm.CreateExecutable: '", func.name, "' needs a device for each parameter");
  func.num_registers = value.At("registers", place).Int(place);
  int64_t count = value.At("count", place).Int(place);
  for (int64_t i = 0; i < count; ++i) {
    if (end - *code < 2 || (*code)[1] < 0 || (*code)[1] > end - *code - 2) ThrowValueError("vm.CreateExecutable: the code of '", func.name, "' is cut off");
    Instruction instruction{(*code)[0], std::vector<int64_t>(*code + 2, *code + 2 + (*code)[1])};
    *code += 2 + instruction.fields.size();
    func.code.push_back(std::move(instruction));
  }
  return func;
}

}  // namespace

// (library, description as JSON, int64 array of the code of all functions, constant, constant, ...)
TVM_REGISTER_GLOBAL("vm.CreateExecutable").set_body([](TVMArgs args, TVMRetValue* rv) {
  Json description = Json::Parse(args[1], "the executable's description");
  const std::string place = "the executable's description";
  auto exec = make_object<Executable>();
  for (const Json& item : description.At("devices", place).Array(place)) {
    std::vector<int64_t> numbers = Numbers(item, place);
    if (numbers.size() != 2) ThrowValueError(place, ": a device is a kind and a number");
    exec->devices.emplace_back(DLDevice{static_cast<DLDeviceType>(numbers[0]), static_cast<int>(numbers[1])}, "");
  }
  exec->host_device = description.At("host_device", place).Int(place);
  exec->kernels = Strings(description.At("kernels", place), place);
  exec->constant_devices = Numbers(description.At("constant_devices", place), place);
  size_t index = 0;
  for (const Json& item : description.At("kernel_attrs", place).Array(place)) {
    for (const auto& member : item.Object(place)) exec->kernel_attrs[index][member.first] = member.second.String(place);
    ++index;
  }
  for (int i = 3; i < args.num_args; ++i) exec->constants.push_back(args[i]);
  if (exec->constants.size() != exec->constant_devices.size()) ThrowValueError(place, ": a device is needed for each constant");
  NDArray code = args[2];
  const int64_t* at = static_cast<const int64_t*>(code->data);
  const int64_t* end = at + DataBytes(*code.tensor()) / sizeof(int64_t);
  for (const Json& item : description.At("functions", place).Array(place)) {
    exec->functions.push_back(ReadFunction(item, &at, end));
    exec->signatures[exec->functions.back().name] = item.At("signature", place).String(place);
  }
  exec->Finish();
  Module library = args[0];
  if (library.defined()) exec->Import(library);
  *rv = Module(ObjectPtr<ModuleNode>(exec));
});

}  // namespace vm
}  // namespace runtime
}  // namespace tvm
