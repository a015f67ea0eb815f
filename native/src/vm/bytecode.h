// The virtual machine's instructions: a code, and fields whose meaning the code says.
//
// The codes and the order of the fields are those of executables saved by the classic release.
#ifndef TVM_SRC_VM_BYTECODE_H_
#define TVM_SRC_VM_BYTECODE_H_

#include <tvm/runtime/error.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace tvm {
namespace runtime {
namespace vm {

enum Opcode : int64_t {
  kMove = 0,            // from, to
  kRet = 1,             // result
  kInvoke = 2,          // function, count, to, arguments...
  kInvokeClosure = 3,   // closure, count, to, arguments...
  kInvokePacked = 4,    // kernel, count, outputs, arguments...
  kAllocTensor = 5,     // storage, offset, dtype (3), ndim, to, shape...
  kAllocTensorReg = 6,  // storage, offset, shape, dtype (3), to
  kAllocADT = 7,        // tag, count, to, fields...
  kAllocClosure = 8,    // function, count, to, captured...
  kGetField = 9,        // object, index, to
  kIf = 10,             // test, target, offset if equal, offset if not
  kLoadConst = 11,      // constant, to
  kGoto = 12,           // offset
  kGetTag = 13,         // object, to
  kLoadConsti = 14,     // number, to
  kFatal = 15,
  kAllocStorage = 16,   // bytes, alignment, dtype (3), device, to, shape...
  kShapeOf = 17,        // tensor, to
  kReshapeTensor = 18,  // tensor, shape, to
  kDeviceCopy = 19,     // from, device from, device to, to
  kKillRegister = 20,   // register
  kSetField = 21,       // object, index, value: references are objects of one field
  kNumOpcodes = 22,
};

struct Instruction {
  int64_t op;
  std::vector<int64_t> fields;
  bool is_tail{false};  // a call whose result is the function's own

  int64_t operator[](size_t i) const { return fields[i]; }
};

struct Function {
  std::string name;
  std::vector<std::string> params;
  std::vector<int64_t> param_devices;
  int64_t num_registers{0};
  std::vector<Instruction> code;
};

// What numbers in code may refer to.
struct Limits {
  size_t functions;
  size_t constants;
  size_t kernels;
  size_t devices;
};

// Raises if running the function could leave its registers, its code or the tables; marks calls in tail position.
void Prepare(Function* func, const std::vector<Function>& functions, const Limits& limits);

// Which allocations of a function are those of its results, tuples taken apart: the number of a result by that of the
// instruction. What is computed elsewhere, or handed on, is not among them.
std::unordered_map<size_t, size_t> ResultAllocations(const Function& func);

std::string OpcodeName(int64_t op);
// One line for an instruction: "invoke $4 VMFunc[1]($0, $2)".
std::string InstructionText(const Instruction& instruction, const std::vector<std::string>& kernels,
                            const std::vector<Function>& functions);

}  // namespace vm
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_VM_BYTECODE_H_
