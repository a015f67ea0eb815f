// Relax's virtual machine: programs run, are saved and loaded, and damaged ones are refused.
#include <tvm/runtime/registry.h>

#include "arrays.h"
#include "check.h"
#include "relax_vm/executable.h"

using namespace tvm::runtime;
using namespace tvm::runtime::relax_vm;

namespace {

TVM_REGISTER_GLOBAL("test.relax_vm.add_one").set_body_typed([](int64_t x) { return x + 1; });

constexpr Arg Register(Word i) { return {ArgKind::kRegister, i}; }
constexpr Arg Immediate(Word i) { return {ArgKind::kImmediate, i}; }

Instruction Call(Word to, Word function, std::vector<Arg> args) { return {Opcode::kCall, to, function, std::move(args)}; }
Instruction Return(Word result) { return {Opcode::kRet, result, 0, {}}; }

// main(n) = n ? n + 1 : -7 + 1
ObjectPtr<Executable> Program() {
  auto exec = make_object<Executable>();
  Function main{FunctionKind::kVM, "main", 1, 2, {"n"}, {}};
  main.code = {{Opcode::kIf, 0, 3, {}}, Call(1, 1, {Register(0)}), {Opcode::kGoto, 0, 2, {}}, Call(1, 1, {Immediate(-7)}), Return(1)};
  exec->functions = {main, Function{FunctionKind::kPacked, "test.relax_vm.add_one", 0, 0, {}, {}}};
  exec->constants.resize(3);
  exec->constants[0] = Floats({1, 2});
  exec->constants[1] = ObjectRef(ShapeTuple({3, 4}));
  exec->constants[2] = "text";
  exec->Finish();
  return exec;
}

Module MachineOf(const Module& executable) {
  Module machine = executable->GetFunction("vm_load_executable")();
  machine.GetFunction("vm_initialization")(static_cast<int>(kDLCPU), 0, 2);
  return machine;
}

Module AsModule(ObjectPtr<Executable> exec) { return Module(ObjectPtr<ModuleNode>(std::move(exec))); }

}  // namespace

TEST(instructions_of_relax_run) {
  Module machine = MachineOf(AsModule(Program()));
  EXPECT_EQ(int64_t(machine.GetFunction("main")(4)), 5);
  EXPECT_EQ(int64_t(machine.GetFunction("main")(0)), -6);
  EXPECT_RAISES(machine.GetFunction("main")(1, 2), "'main' has 1 parameters (n), got 2 arguments");
}

TEST(inputs_and_outputs_of_relax_stay_in_the_machine) {
  Module machine = MachineOf(AsModule(Program()));
  EXPECT_RAISES(machine.GetFunction("invoke_stateful")("main"), "the inputs of 'main' are not set");
  EXPECT_RAISES(machine.GetFunction("get_output")("main"), "call invoke_stateful first");
  machine.GetFunction("set_input")("main", 1);
  machine.GetFunction("invoke_stateful")("main");
  EXPECT_EQ(int64_t(machine.GetFunction("get_output")("main")), 2);
  EXPECT_EQ(int64_t(machine.GetFunction("get_output_arity")("main")), -1);
}

TEST(executables_of_relax_are_loaded_as_they_were_saved) {
  ObjectPtr<Executable> exec = Program();
  std::string bytes = exec->Save();
  Module loaded = Executable::Load(bytes.data(), bytes.size(), false);
  auto* again = static_cast<Executable*>(loaded.node());
  EXPECT_EQ(again->AsText(), exec->AsText());
  EXPECT_EQ(again->Stats(), exec->Stats());
  EXPECT_EQ(int64_t(MachineOf(loaded).GetFunction("main")(1)), 2);
}

TEST(damaged_executables_of_relax_are_refused) {
  std::string bytes = Program()->Save();
  for (size_t size = 0; size < bytes.size(); ++size) {
    // without the checksum it is one of the classic release
    if (size == bytes.size() - sizeof(uint64_t)) continue;
    EXPECT_RAISES(Executable::Load(bytes.data(), size, false), "ValueError");
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x41);
    EXPECT_RAISES(Executable::Load(damaged.data(), damaged.size(), false), "Error");
  }
}

TEST(code_of_relax_that_leaves_its_tables_is_refused) {
  auto with = [](Instruction instruction) {
    ObjectPtr<Executable> exec = Program();
    exec->functions[0].code[1] = std::move(instruction);
    exec->Finish();
  };
  EXPECT_RAISES(with(Call(2, 1, {})), "there is no register 2, there are 2");
  EXPECT_RAISES(with(Call(1, 2, {})), "there is no function 2, there are 2");
  EXPECT_RAISES(with(Call(1, 1, {{ArgKind::kConstant, 3}})), "there is no constant 3, there are 3");
  EXPECT_RAISES(with({Opcode::kGoto, 0, 4, {}}), "it jumps by 4, out of the code");
}
