// The instructions of relax's virtual machine, and the functions of an executable.
//
// The numbers of instructions and the bits of their arguments are those of executables saved by the classic release.
#ifndef TVM_SRC_RELAX_VM_BYTECODE_H_
#define TVM_SRC_RELAX_VM_BYTECODE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {

using Word = int64_t;

enum class Opcode : Word {
  kCall = 1,  // to, function, count, arguments...
  kRet = 2,   // result
  kGoto = 3,  // offset
  kIf = 4,    // condition, offset if it is false
};

enum class ArgKind : int { kRegister = 0, kImmediate = 1, kConstant = 2, kFunction = 3 };

// Registers that are none: a result nobody wants, or None; the machine itself.
constexpr Word kVoidRegister = Word{1} << 54;
constexpr Word kMachineRegister = kVoidRegister + 1;

struct Arg {
  ArgKind kind;
  Word value;

  // The kind is in the upper 8 bits of a word, a signed value in the others.
  static Arg Decode(Word word) {
    return {static_cast<ArgKind>((word >> 56) & 0xFF), static_cast<Word>(static_cast<uint64_t>(word) << 8) >> 8};
  }
  Word Encode() const {
    return static_cast<Word>((static_cast<uint64_t>(kind) << 56) | (static_cast<uint64_t>(value) & ((uint64_t{1} << 56) - 1)));
  }
};

struct Instruction {
  Opcode op;
  Word target;             // the register that a call writes, ret returns and if reads
  Word operand;            // the function of a call, the offset of goto and if
  std::vector<Arg> args;   // of a call

  void AppendTo(std::vector<Word>* words) const;
};

enum class FunctionKind : int {
  kPacked = 0,   // of the library, or a global function
  kVM = 1,       // instructions
  kCompiled = 2  // machine code that works on the registers, __vmtir__<name> in the library
};

struct Function {
  FunctionKind kind;
  std::string name;
  Word num_args{0};
  Word num_registers{0};
  std::vector<std::string> params;
  std::vector<Instruction> code;
};

// What numbers in code may refer to.
struct Limits {
  size_t functions;
  size_t constants;
};

// Instructions in words; raises if the words are no instructions.
std::vector<Instruction> Decode(const Word* words, size_t count, const std::string& function);

// Raises if running the function could leave its registers, its code or the tables.
void Check(const Function& func, const Limits& limits);

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RELAX_VM_BYTECODE_H_
