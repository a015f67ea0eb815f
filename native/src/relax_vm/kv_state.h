// What the state of sequences has in common, whether it holds keys and values or a recurrent network's state.
#ifndef TVM_SRC_RELAX_VM_KV_STATE_H_
#define TVM_SRC_RELAX_VM_KV_STATE_H_

#include <tvm/runtime/container/shape_tuple.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>

#include <string>
#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {

class KVState : public Object {
 public:
  virtual ~KVState() = default;
  virtual void Clear() = 0;
  virtual void AddSequence(int64_t sequence) = 0;
  virtual void RemoveSequence(int64_t sequence) = 0;
  // Below 0, `position` is the end of the parent.
  virtual void ForkSequence(int64_t parent, int64_t child, int64_t position) = 0;
  virtual void PopN(int64_t sequence, int64_t count) = 0;
  // `parents`, if it is not empty, has the parent of each token in trees of tokens, -1 for a root.
  virtual void BeginForward(const ShapeTuple& sequences, const ShapeTuple& lengths, const ShapeTuple& parents) = 0;
  virtual void EndForward() = 0;

  static constexpr const char* _type_key = "relax.vm.KVState";
  TVM_DECLARE_BASE_OBJECT_INFO(KVState, Object);
};

// The state in an argument of a packed function; raises if it is of another class.
template <class State>
State* StateIn(const TVMArgValue& value, const char* what) {
  auto* state = value.type_code() == kTVMObjectHandle ? value.operator ObjectRef().as<State>() : nullptr;
  if (state == nullptr) ThrowTypeError("expected ", what, ", got ", ArgTypeCode2Str(value.type_code()));
  return state;
}

// A vector on the host of int32.
inline NDArray HostVector(const std::vector<int32_t>& values) {
  NDArray array = NDArray::Empty({static_cast<int64_t>(values.size())}, DLDataType{kDLInt, 32, 1}, DLDevice{kDLCPU, 0});
  if (!values.empty()) array.CopyFromBytes(values.data(), values.size() * sizeof(int32_t));
  return array;
}

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RELAX_VM_KV_STATE_H_
