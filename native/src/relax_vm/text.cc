// Executables as text: for readers, and as the program that builds them.
#include <functional>
#include <iomanip>
#include <sstream>

#include "executable.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

std::string RegisterText(Word index) {
  if (index == kVoidRegister) return "%void";
  if (index == kMachineRegister) return "%vm";
  return Cat("%", index);
}

std::string Joined(const std::vector<Arg>& args, const std::function<std::string(const Arg&)>& text) {
  std::string joined;
  for (const Arg& arg : args) joined += (joined.empty() ? "" : ", ") + text(arg);
  return joined;
}

std::string ConstantText(const TVMRetValue& value) {
  switch (value.type_code()) {
    case kTVMNDArrayHandle: {
      NDArray array = value;
      return Cat(DLDataType2String(array->dtype), ShapeText(array->shape, array->ndim));
    }
    case kTVMStr: return Cat("\"", value.operator std::string(), "\"");
    case kTVMDataType: return DLDataType2String(value);
    case kTVMArgFloat: return Cat(double(value));
    case kTVMArgInt:
    case kTVMArgBool: return Cat(int64_t(value));
    default: return Cat("shape", value.operator ShapeTuple());
  }
}

std::string PythonText(const TVMRetValue& value) {
  switch (value.type_code()) {
    case kTVMArgInt:
    case kTVMArgFloat:
    case kTVMStr: return ConstantText(value);
    case kTVMArgBool: return int64_t(value) ? "True" : "False";
    case kTVMDataType: return Cat("tvm.DataType(\"", DLDataType2String(value), "\")");
    default: break;
  }
  return value.type_code() == kTVMNDArrayHandle ? "" : Cat("tvm.runtime.ShapeTuple(", value.operator ShapeTuple(), ")");
}

class PythonWriter {
 public:
  explicit PythonWriter(const Executable& exec) : exec_(exec) {}

  std::string Run() {
    os_ << "ib = relax.ExecBuilder()\n";
    for (const Function& func : exec_.functions) {
      if (func.kind == FunctionKind::kVM) One(func);
    }
    return os_.str();
  }

 private:
  void One(const Function& func) {
    os_ << "with ib.function(\"" << func.name << "\", num_inputs=" << func.num_args << "):\n";
    for (const Instruction& instruction : func.code) {
      os_ << "    ib.";
      switch (instruction.op) {
        case Opcode::kCall:
          os_ << "emit_call(\"" << exec_.functions[instruction.operand].name << "\", args=["
              << Joined(instruction.args, [this](const Arg& arg) { return ArgText(arg); }) << "]";
          if (instruction.target != kVoidRegister) os_ << ", dst=ib.r(" << instruction.target << ")";
          os_ << ")\n";
          break;
        case Opcode::kRet: os_ << "emit_ret(" << Register(instruction.target) << ")\n"; break;
        case Opcode::kGoto: os_ << "emit_goto(" << instruction.operand << ")\n"; break;
        case Opcode::kIf: os_ << "emit_if(ib.r(" << instruction.target << "), " << instruction.operand << ")\n"; break;
      }
    }
  }

  static std::string Register(Word index) {
    if (index == kVoidRegister) return "ib.void_arg()";
    return index == kMachineRegister ? "ib.vm_state()" : Cat("ib.r(", index, ")");
  }

  std::string ArgText(const Arg& arg) const {
    switch (arg.kind) {
      case ArgKind::kRegister: return Register(arg.value);
      case ArgKind::kImmediate: return Cat("ib.imm(", arg.value, ")");
      case ArgKind::kFunction: return Cat("ib.f(\"", exec_.functions[arg.value].name, "\")");
      default: break;
    }
    // values of arrays are not text
    std::string text = PythonText(exec_.constants[arg.value]);
    return text.empty() ? Cat("ib.c(", arg.value, ")") : Cat("ib.convert_constant(", text, ")");
  }

  const Executable& exec_;
  std::ostringstream os_;
};

}  // namespace

std::string Executable::AsText() const {
  std::ostringstream os;
  auto arg_text = [this](const Arg& arg) {
    switch (arg.kind) {
      case ArgKind::kRegister: return RegisterText(arg.value);
      case ArgKind::kImmediate: return Cat("i", arg.value);
      case ArgKind::kConstant: return Cat("c[", arg.value, "]");
      default: return Cat("f[", functions[arg.value].name, "]");
    }
  };
  for (const Function& func : functions) {
    os << "@" << func.name;
    if (func.kind == FunctionKind::kPacked) {
      os << " packed_func;\n\n";
      continue;
    }
    if (func.kind == FunctionKind::kCompiled) {
      os << " num_inputs=" << func.num_args << " vm_tir_func;\n\n";
      continue;
    }
    os << ":\n" << std::left;
    for (const Instruction& instruction : func.code) {
      switch (instruction.op) {
        case Opcode::kCall:
          os << "  " << std::setw(6) << "call" << std::setw(16) << functions[instruction.operand].name
             << " in: " << std::setw(12) << Joined(instruction.args, arg_text) << " dst: " << RegisterText(instruction.target) << "\n";
          break;
        case Opcode::kRet: os << "  " << std::setw(6) << "ret" << RegisterText(instruction.target) << "\n"; break;
        case Opcode::kGoto: os << "  " << std::setw(6) << "goto" << instruction.operand << "\n"; break;
        case Opcode::kIf:
          os << "  " << std::setw(6) << "if" << RegisterText(instruction.target) << " " << instruction.operand << "\n";
          break;
      }
    }
    os << "\n";
  }
  return os.str();
}

std::string Executable::AsPython() const { return PythonWriter(*this).Run(); }

std::string Executable::Stats() const {
  std::ostringstream os;
  os << "Relax VM executable statistics:\n  Constant pool (# " << constants.size() << "): [";
  for (size_t i = 0; i < constants.size(); ++i) os << (i ? ", " : "") << ConstantText(constants[i]);
  std::string own, packed;
  size_t own_count = 0, packed_count = 0;
  for (const Function& func : functions) {
    bool is_packed = func.kind == FunctionKind::kPacked;
    std::string& names = is_packed ? packed : own;
    ++(is_packed ? packed_count : own_count);
    names += (names.empty() ? "" : ", ") + func.name;
  }
  os << "]\n  Globals (#" << own_count << "): [" << own << "]\n  Packed functions (#" << packed_count << "): [" << packed << "]\n";
  return os.str();
}

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
