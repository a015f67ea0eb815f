// Functions that programs call on the state of sequences.
#include "kv_state.h"

#include <tvm/runtime/registry.h>

namespace tvm {
namespace runtime {
namespace relax_vm {

TVM_REGISTER_OBJECT_TYPE(KVState);

namespace {

KVState* AnyState(const TVMArgValue& value) { return StateIn<KVState>(value, "a state of sequences, such as a paged cache"); }

}  // namespace

TVM_REGISTER_GLOBAL("vm.builtin.kv_state_clear").set_body([](TVMArgs args, TVMRetValue*) { AnyState(args[0])->Clear(); });
TVM_REGISTER_GLOBAL("vm.builtin.kv_state_add_sequence").set_body([](TVMArgs args, TVMRetValue*) {
  AnyState(args[0])->AddSequence(args[1]);
});
TVM_REGISTER_GLOBAL("vm.builtin.kv_state_remove_sequence").set_body([](TVMArgs args, TVMRetValue*) {
  AnyState(args[0])->RemoveSequence(args[1]);
});
// (state, parent, child, position)
TVM_REGISTER_GLOBAL("vm.builtin.kv_state_fork_sequence").set_body([](TVMArgs args, TVMRetValue*) {
  int64_t position = args.size() > 3 ? int64_t(args[3]) : -1;
  AnyState(args[0])->ForkSequence(args[1], args[2], position);
});
TVM_REGISTER_GLOBAL("vm.builtin.kv_state_popn").set_body([](TVMArgs args, TVMRetValue*) { AnyState(args[0])->PopN(args[1], args[2]); });
// (state, sequences, lengths, parents of tokens)
TVM_REGISTER_GLOBAL("vm.builtin.kv_state_begin_forward").set_body([](TVMArgs args, TVMRetValue*) {
  ShapeTuple sequences = args[1], lengths = args[2];
  if (sequences.size() != lengths.size()) {
    ThrowValueError("begin_forward needs a length for each sequence, got ", sequences.size(), " sequences and ", lengths.size(), " lengths");
  }
  bool has_parents = args.size() > 3 && args[3].type_code() != kTVMNullptr;
  AnyState(args[0])->BeginForward(sequences, lengths, has_parents ? args[3].operator ShapeTuple() : ShapeTuple());
});
TVM_REGISTER_GLOBAL("vm.builtin.kv_state_end_forward").set_body([](TVMArgs args, TVMRetValue*) { AnyState(args[0])->EndForward(); });

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
