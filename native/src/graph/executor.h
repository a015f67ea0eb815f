// Runs a graph of compiled functions.
#ifndef TVM_SRC_GRAPH_EXECUTOR_H_
#define TVM_SRC_GRAPH_EXECUTOR_H_

#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/run_lock.h>

#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "../params.h"
#include "../shared_use.h"
#include "graph.h"

namespace tvm {
namespace runtime {

class GraphExecutor : public ModuleNode {
 public:
  // With `reuse_storage`, tensors that are not needed at the same time share memory, as the graph says.
  GraphExecutor(const std::string& json, Module library, std::vector<DLDevice> devices, bool reuse_storage = true);

  const char* type_key() const override { return "GraphExecutor"; }
  int GetPropertyMask() const final { return kRunnable; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) override;

  int InputIndex(const std::string& name) const;  // -1 if there is none
  const std::string& OutputName(size_t index) const;
  // Uses the arrays themselves; names that are no inputs are ignored.
  void ShareParams(const NamedArrays& params);
  void ShareParams(const GraphExecutor& other, const NamedArrays& params);
  // Like ShareParams, for arrays that nobody else holds; the names that are no inputs, as JSON.
  std::string OwnParams(const NamedArrays& params);

  void SetInput(int index, const DLTensor* value);
  void SetInputZeroCopy(int index, const NDArray& keep, const DLTensor* value);
  void SetOutputZeroCopy(int index, const NDArray& keep, const DLTensor* value);
  NDArray GetInput(int index);
  NDArray GetOutput(int index);
  void CopyInput(int index, DLTensor* to);
  void CopyOutput(int index, DLTensor* to);
  void Run();
  // (key, value, key, value, ...): sets the inputs and runs, with no other thread's call between.
  void RunWithInputs(TVMArgs args);
  // (device_type, device_id, key, value, key, value, ...): copies inputs from and outputs to the device too.
  void RunFromInputs(TVMArgs args);
  // {"shape": {name: extents}, "dtype": {name: dtype}}, and the same as text, which crosses any border.
  // Parameters are inputs that few ask for.
  Map<std::string, ObjectRef> InputInfo() const;
  std::string InputInfoText(bool with_params) const;
  std::string OutputInfoText() const;
  std::string UnsetInputs() const;

 protected:
  // What an input's tensor is.
  enum class InputState { kUnset, kOwned, kShared };

  struct OpCall {
    PackedFunc func;
    TVMBackendPackedCFunc direct{nullptr};
    std::vector<DLTensor> tensors;
    std::vector<int64_t> flat_extents;
    std::vector<TVMValue> values;
    std::vector<int> type_codes;
  };

  // A method that holds the executor while it runs.
  template <class F>
  PackedFunc Exclusive(const ObjectPtr<Object>& self, F body) {
    return PackedFunc([this, self, body](TVMArgs args, TVMRetValue* rv) {
      std::lock_guard<RunLock> lock(lock_);
      body(args, rv);
    });
  }

  void FindAliases();
  void PlanStorage();
  void ClearOutputs();
  void PrepareCalls();
  void Call(OpCall* call);
  OpCall PrepareCall(const GraphNode& node, uint32_t node_id);
  PackedFunc FindFunction(const GraphNode& node) const;
  DLDevice DeviceOf(uint32_t entry) const;

  // Lets the entry, and all entries that are the same memory under another shape, live in `array`.
  void Bind(uint32_t entry, const NDArray& array);
  void EnsureOwned(int index, bool keep_values);
  // Zeros take the place of inputs that were never set, which is said before a run.
  void FillUnsetInputs();
  void ReportUnset() const;
  void BeginRun();
  // Whether somebody else holds an array of what operators write.
  bool IsHandedOut() const;

  uint32_t InputEntry(int index) const;
  uint32_t OutputEntry(int index) const;
  int ParseIndex(const TVMArgValue& key) const;
  int OutputIndex(const std::string& name) const;  // -1 if there is none
  int ParseOutputIndex(const TVMArgValue& key) const;
  std::string InputText(int index) const;
  std::string InfoText(const std::vector<std::pair<std::string, uint32_t>>& tensors) const;  // names and entries
  void CheckTensor(const DLTensor& value, uint32_t entry, const std::string& what) const;
  void CheckZeroCopy(const DLTensor& value, uint32_t entry, const std::string& what) const;

  Graph graph_;
  Module library_;
  std::vector<DLDevice> devices_;
  std::vector<NDArray> arrays_;                     // of each entry
  std::vector<std::vector<DLTensor*>> uses_;        // arguments of calls, by entry
  std::vector<std::vector<uint32_t>> aliases_;      // entries that reshape this one
  std::vector<InputState> input_states_;
  std::vector<NDArray> owned_inputs_;               // kept for the next copy
  std::vector<NDArray> output_copies_;              // of RunFromInputs
  std::vector<bool> is_param_;                      // inputs that were set as parameters
  std::unordered_map<std::string, int> input_index_;
  std::vector<OpCall> calls_;
  std::vector<bool> is_given_;                      // entries in the memory of an array that set_output_zero_copy got
  bool all_inputs_set_{false};
  SharedUse use_;                                   // slots: inputs, then outputs
  RunLock lock_;
};

// One that keeps every tensor and runs nodes one by one.
Module CreateDebugExecutor(const std::string& json, Module library, std::vector<DLDevice> devices, const NamedArrays& params);

Module CreateGraphExecutor(const std::string& json, Module library, std::vector<DLDevice> devices, const NamedArrays& params);

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_GRAPH_EXECUTOR_H_
