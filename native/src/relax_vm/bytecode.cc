// Instructions to words and back, and what makes them safe to run.
#include "bytecode.h"

#include <tvm/runtime/error.h>

namespace tvm {
namespace runtime {
namespace relax_vm {

void Instruction::AppendTo(std::vector<Word>* words) const {
  words->push_back(static_cast<Word>(op));
  switch (op) {
    case Opcode::kCall:
      words->insert(words->end(), {target, operand, static_cast<Word>(args.size())});
      for (const Arg& arg : args) words->push_back(arg.Encode());
      break;
    case Opcode::kRet: words->push_back(target); break;
    case Opcode::kGoto: words->push_back(operand); break;
    case Opcode::kIf: words->insert(words->end(), {target, operand}); break;
  }
}

std::vector<Instruction> Decode(const Word* words, size_t count, const std::string& function) {
  std::vector<Instruction> code;
  size_t at = 0;
  auto next = [&]() -> Word {
    if (at >= count) ThrowValueError("the code of '", function, "' is cut off within instruction ", code.size());
    return words[at++];
  };
  while (at < count) {
    Instruction instruction{static_cast<Opcode>(next()), 0, 0, {}};
    switch (instruction.op) {
      case Opcode::kCall: {
        instruction.target = next();
        instruction.operand = next();
        Word args = next();
        if (args < 0 || static_cast<size_t>(args) > count - at) {
          ThrowValueError("the code of '", function, "' is cut off: instruction ", code.size(), " announces ", args, " arguments");
        }
        for (Word i = 0; i < args; ++i) instruction.args.push_back(Arg::Decode(next()));
        break;
      }
      case Opcode::kRet: instruction.target = next(); break;
      case Opcode::kGoto: instruction.operand = next(); break;
      case Opcode::kIf:
        instruction.target = next();
        instruction.operand = next();
        break;
      default:
        ThrowValueError("instruction ", code.size(), " of '", function, "' has the unknown code ", static_cast<Word>(instruction.op));
    }
    code.push_back(std::move(instruction));
  }
  return code;
}

namespace {

class Checker {
 public:
  Checker(const Function& func, const Limits& limits) : func_(func), limits_(limits) {}

  void Run() {
    if (func_.num_registers < func_.num_args || func_.num_args < 0) {
      ThrowValueError("'", func_.name, "' has ", func_.num_registers, " registers for ", func_.num_args, " parameters");
    }
    if (func_.num_registers > kMostRegisters) ThrowValueError("'", func_.name, "' wants ", func_.num_registers, " registers");
    for (at_ = 0; at_ < func_.code.size(); ++at_) One(func_.code[at_]);
    if (func_.code.empty()) Fail("it has no instructions");
    const Instruction& last = func_.code.back();
    if (last.op != Opcode::kRet && last.op != Opcode::kGoto) Fail("its code ends without ret");
  }

 private:
  static constexpr Word kMostRegisters = Word{1} << 28;

  template <class... Parts>
  [[noreturn]] void Fail(const Parts&... parts) const {
    ThrowValueError("instruction ", at_, " of '", func_.name, "': ", parts...);
  }

  void One(const Instruction& instruction) {
    switch (instruction.op) {
      case Opcode::kCall:
        if (instruction.target != kVoidRegister) Register(instruction.target);
        Below(instruction.operand, limits_.functions, "function");
        for (const Arg& arg : instruction.args) Argument(arg);
        break;
      case Opcode::kRet:
        if (instruction.target != kVoidRegister) Register(instruction.target);
        break;
      case Opcode::kGoto: Offset(instruction.operand); break;
      case Opcode::kIf:
        Register(instruction.target);
        Offset(instruction.operand);
        // the next one is run if the condition holds
        Offset(1);
        break;
    }
  }

  void Argument(const Arg& arg) {
    switch (arg.kind) {
      case ArgKind::kRegister:
        if (arg.value != kVoidRegister && arg.value != kMachineRegister) Register(arg.value);
        break;
      case ArgKind::kImmediate: break;
      case ArgKind::kConstant: Below(arg.value, limits_.constants, "constant"); break;
      case ArgKind::kFunction: Below(arg.value, limits_.functions, "function"); break;
      default: Fail("an argument of the unknown kind ", static_cast<int>(arg.kind));
    }
  }

  void Register(Word index) { Below(index, static_cast<size_t>(func_.num_registers), "register"); }

  void Below(Word index, size_t count, const char* what) {
    if (index < 0 || static_cast<size_t>(index) >= count) Fail("there is no ", what, " ", index, ", there are ", count);
  }

  void Offset(Word offset) {
    Word to = static_cast<Word>(at_) + offset;
    if (offset == 0 || to < 0 || to >= static_cast<Word>(func_.code.size())) Fail("it jumps by ", offset, ", out of the code");
  }

  const Function& func_;
  const Limits& limits_;
  size_t at_{0};
};

}  // namespace

void Check(const Function& func, const Limits& limits) {
  if (func.kind == FunctionKind::kVM) Checker(func, limits).Run();
}

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
