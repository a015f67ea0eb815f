// Finds the instructions that allocate the results of a function.
#include "bytecode.h"

namespace tvm {
namespace runtime {
namespace vm {
namespace {

// The register that an instruction writes, -1 if it writes none.
int64_t Written(const Instruction& instruction) {
  switch (instruction.op) {
    case kRet:
    case kInvokePacked:
    case kIf:
    case kGoto:
    case kFatal:
    case kKillRegister:
    case kSetField: return -1;
    case kInvoke:
    case kInvokeClosure:
    case kAllocADT:
    case kAllocClosure: return instruction[2];
    case kAllocTensor:
    case kAllocStorage: return instruction[6];
    default: return instruction.fields.back();
  }
}

class Finder {
 public:
  explicit Finder(const Function& func) : func_(func), writers_(func.num_registers) {
    for (size_t pc = 0; pc < func.code.size(); ++pc) {
      int64_t to = Written(func.code[pc]);
      if (to >= 0) writers_[to].push_back(pc);
    }
  }

  std::unordered_map<size_t, size_t> Run() {
    for (const Instruction& instruction : func_.code) {
      if (instruction.op != kRet) continue;
      next_ = 0;
      Results(instruction[0]);
    }
    return found_;
  }

 private:
  // Whether the value is known to be so many results; what comes behind one of unknown size has no number.
  bool Results(int64_t value) {
    const std::vector<size_t>& writers = writers_[value];
    if (writers.size() == 1 && func_.code[writers[0]].op == kAllocADT) {
      const Instruction& tuple = func_.code[writers[0]];
      for (size_t i = 3; i < tuple.fields.size(); ++i) {
        if (!Results(tuple[i])) return false;
      }
      return true;
    }
    std::vector<size_t> allocations;
    if (!IsTensor(value, 0, &allocations)) return false;
    for (size_t pc : allocations) found_.emplace(pc, next_);
    ++next_;
    return true;
  }

  bool IsTensor(int64_t value, int depth, std::vector<size_t>* allocations) const {
    // parameters have no writer; moves of branches within branches end
    if (writers_[value].empty() || depth > kMaxDepth) return false;
    for (size_t pc : writers_[value]) {
      const Instruction& writer = func_.code[pc];
      switch (writer.op) {
        case kAllocTensor:
        case kAllocTensorReg: allocations->push_back(pc); break;
        case kMove:
          if (!IsTensor(writer[0], depth + 1, allocations)) return false;
          break;
        case kReshapeTensor:
        case kDeviceCopy:
        case kShapeOf: break;
        default: return false;
      }
    }
    return true;
  }

  static constexpr int kMaxDepth = 64;
  const Function& func_;
  std::vector<std::vector<size_t>> writers_;  // by register
  std::unordered_map<size_t, size_t> found_;
  size_t next_{0};
};

}  // namespace

std::unordered_map<size_t, size_t> ResultAllocations(const Function& func) { return Finder(func).Run(); }

}  // namespace vm
}  // namespace runtime
}  // namespace tvm
