// Checks of instructions, and their text.
#include "bytecode.h"

#include <tvm/runtime/data_type.h>

namespace tvm {
namespace runtime {
namespace vm {
namespace {

// What each field of an instruction is, in order; a last '*' repeats the one before it as often as the count says.
//   r register read, w register written, f function, c constant, k kernel, d device, g goto offset, n count, i any number
struct Layout {
  const char* name;
  const char* fields;
};

constexpr Layout kLayouts[kNumOpcodes] = {
    {"move", "rw"},
    {"ret", "r"},
    {"invoke", "fnwr*"},
    {"invoke_closure", "rnwr*"},
    {"invoke_packed", "knir*"},
    {"alloc_tensor", "rriiinwi*"},
    {"alloc_tensor_reg", "rrriiiw"},
    {"alloc_data", "inwr*"},
    {"alloc_closure", "fnwr*"},
    {"get_field", "riw"},
    {"if", "rrgg"},
    {"load_const", "cw"},
    {"goto", "g"},
    {"get_tag", "rw"},
    {"load_consti", "iw"},
    {"fatal", ""},
    {"alloc_storage", "riiiidw?"},
    {"shape_of", "rw"},
    {"reshape_tensor", "rrw"},
    {"device_copy", "rddw"},
    {"kill_register", "r"},
    {"set_field", "rir"},
};

class Checker {
 public:
  Checker(const Function& func, const std::vector<Function>& functions, const Limits& limits)
      : func_(func), functions_(functions), limits_(limits) {}

  void Run() {
    if (func_.num_registers < 0 || func_.num_registers > (int64_t{1} << 31)) Fail("it has ", func_.num_registers, " registers");
    if (func_.params.size() > static_cast<size_t>(func_.num_registers)) Fail("it has fewer registers than parameters");
    if (func_.code.empty()) Fail("it has no code");
    for (pc_ = 0; pc_ < func_.code.size(); ++pc_) Check(func_.code[pc_]);
    int64_t last = func_.code.back().op;
    if (last != kRet && last != kGoto && last != kFatal && last != kIf) Fail("its code has no end");
  }

 private:
  template <class... Parts>
  [[noreturn]] void Fail(const Parts&... parts) const {
    ThrowValueError("the executable is corrupt: function '", func_.name, "', instruction ", pc_, ": ", parts...);
  }

  void Check(const Instruction& instruction) const {
    if (instruction.op < 0 || instruction.op >= kNumOpcodes) Fail("unknown code ", instruction.op);
    size_t at = 0;
    int64_t count = 0;
    for (const char* kind = kLayouts[instruction.op].fields; *kind != 0; ++kind) {
      if (*kind == '?') return;  // an optional shape follows
      bool is_repeated = kind[1] == '*';
      for (int64_t i = 0; i < (is_repeated ? count : 1); ++i) {
        if (at >= instruction.fields.size()) Fail(OpcodeName(instruction.op), " lacks fields");
        int64_t value = instruction.fields[at++];
        if (*kind == 'n') count = value;
        CheckField(*kind, value, instruction.fields.size());
      }
      if (is_repeated) ++kind;
    }
    if (at != instruction.fields.size()) Fail(OpcodeName(instruction.op), " has ", instruction.fields.size(), " fields, expected ", at);
    if (instruction.op == kInvoke || instruction.op == kAllocClosure) CheckArity(instruction);
    if (instruction.op == kInvokePacked && (instruction[2] < 0 || instruction[2] > instruction[1])) Fail("more outputs than arguments");
  }

  void CheckField(char kind, int64_t value, size_t num_fields) const {
    switch (kind) {
      case 'r':
      case 'w': return InRange(value, func_.num_registers, "register");
      case 'f': return InRange(value, limits_.functions, "function");
      case 'c': return InRange(value, limits_.constants, "constant");
      case 'k': return InRange(value, limits_.kernels, "kernel");
      case 'd': return InRange(value, limits_.devices, "device");
      case 'n': return InRange(value, num_fields, "count");
      case 'g': return InRange(static_cast<int64_t>(pc_) + value, func_.code.size(), "target");
      default: return;
    }
  }

  void InRange(int64_t value, size_t end, const char* what) const {
    if (value < 0 || static_cast<size_t>(value) >= end) Fail(what, " ", value, " is not in [0, ", end, ")");
  }

  void CheckArity(const Instruction& call) const {
    const Function& callee = functions_[call[0]];
    size_t given = static_cast<size_t>(call[1]);
    bool fits = call.op == kInvoke ? given == callee.params.size() : given <= callee.params.size();
    if (!fits) Fail("'", callee.name, "' has ", callee.params.size(), " parameters, got ", given);
  }

  const Function& func_;
  const std::vector<Function>& functions_;
  const Limits& limits_;
  size_t pc_{0};
};

// Whether the register is returned by what follows, with nothing else happening on the way.
bool IsReturned(const std::vector<Instruction>& code, size_t pc, int64_t reg) {
  for (size_t steps = 0; pc < code.size() && steps < code.size(); ++steps) {
    const Instruction& next = code[pc];
    if (next.op == kRet) return next[0] == reg;
    if (next.op == kGoto) {
      pc += next[0];
      continue;
    }
    bool is_copy = next.op == kMove && next[0] == reg;
    bool is_kill = next.op == kKillRegister && next[0] != reg;
    if (!is_copy && !is_kill) return false;
    if (is_copy) reg = next[1];
    ++pc;
  }
  return false;
}

std::string Reg(int64_t index) { return "$" + std::to_string(index); }

std::string Regs(const std::vector<int64_t>& fields, size_t first, size_t last) {
  std::string text;
  for (size_t i = first; i < last; ++i) text += (i > first ? ", " : "") + Reg(fields[i]);
  return text;
}

std::string TypeText(const Instruction& instruction, size_t at) {
  DLDataType dtype{static_cast<uint8_t>(instruction[at]), static_cast<uint8_t>(instruction[at + 1]),
                   static_cast<uint16_t>(instruction[at + 2])};
  return DLDataType2String(dtype);
}

}  // namespace

void Prepare(Function* func, const std::vector<Function>& functions, const Limits& limits) {
  Checker(*func, functions, limits).Run();
  for (size_t pc = 0; pc < func->code.size(); ++pc) {
    Instruction& call = func->code[pc];
    if (call.op == kInvoke || call.op == kInvokeClosure) call.is_tail = IsReturned(func->code, pc + 1, call[2]);
  }
}

std::string OpcodeName(int64_t op) { return op >= 0 && op < kNumOpcodes ? kLayouts[op].name : "unknown"; }

std::string InstructionText(const Instruction& instruction, const std::vector<std::string>& kernels,
                            const std::vector<Function>& functions) {
  const std::vector<int64_t>& f = instruction.fields;
  std::string name = OpcodeName(instruction.op);
  switch (instruction.op) {
    case kMove: return name + " " + Reg(f[1]) + " " + Reg(f[0]);
    case kInvoke: return Cat(name, " ", Reg(f[2]), " ", functions[f[0]].name, "(", Regs(f, 3, f.size()), ")");
    case kInvokeClosure: return Cat(name, " ", Reg(f[2]), " ", Reg(f[0]), "(", Regs(f, 3, f.size()), ")");
    case kInvokePacked: {
      size_t inputs = f.size() - f[2];
      return Cat(name, " PackedFunc[", f[0], "] (in: ", Regs(f, 3, inputs), ", out: ", Regs(f, inputs, f.size()), ") // ",
                 kernels[f[0]]);
    }
    case kAllocTensor: {
      std::string shape;
      for (size_t i = 7; i < f.size(); ++i) shape += (i > 7 ? ", " : "") + std::to_string(f[i]);
      return Cat(name, " ", Reg(f[6]), " ", Reg(f[0]), " ", Reg(f[1]), " [", shape, "] ", TypeText(instruction, 2));
    }
    case kAllocTensorReg: return Cat(name, " ", Reg(f[6]), " ", Reg(f[0]), " ", Reg(f[1]), " ", Reg(f[2]), " ", TypeText(instruction, 3));
    case kAllocADT: return Cat(name, " ", Reg(f[2]), " tag(", f[0], ") [", Regs(f, 3, f.size()), "]");
    case kAllocClosure: return Cat(name, " ", Reg(f[2]), " ", functions[f[0]].name, "(", Regs(f, 3, f.size()), ")");
    case kGetField: return Cat(name, " ", Reg(f[2]), " ", Reg(f[0]), "[", f[1], "]");
    case kIf: return Cat(name, " ", Reg(f[0]), " ", Reg(f[1]), " ", f[2], " ", f[3]);
    case kLoadConst: return Cat(name, " ", Reg(f[1]), " Const[", f[0], "]");
    case kLoadConsti: return Cat(name, " ", Reg(f[1]), " ", f[0]);
    case kGoto: return Cat(name, " ", f[0]);
    case kGetTag: return Cat(name, " ", Reg(f[1]), " ", Reg(f[0]));
    case kAllocStorage: return Cat(name, " ", Reg(f[6]), " ", Reg(f[0]), " ", f[1], " ", TypeText(instruction, 2), " ", f[5]);
    case kShapeOf: return Cat(name, " ", Reg(f[1]), " ", Reg(f[0]));
    case kReshapeTensor: return Cat(name, " ", Reg(f[2]), " ", Reg(f[0]), " ", Reg(f[1]));
    case kDeviceCopy: return Cat(name, " ", Reg(f[3]), " ", Reg(f[0]), " ", f[1], " -> ", f[2]);
    case kSetField: return Cat(name, " ", Reg(f[0]), "[", f[1], "] ", Reg(f[2]));
    default: return f.empty() ? name : name + " " + Reg(f[0]);
  }
}

}  // namespace vm
}  // namespace runtime
}  // namespace tvm
