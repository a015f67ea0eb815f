// Runs a model that was compiled to one function, ahead of time.
#ifndef TVM_SRC_AOT_EXECUTOR_H_
#define TVM_SRC_AOT_EXECUTOR_H_

#include <tvm/runtime/container/map.h>
#include <tvm/runtime/metadata_types.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/run_lock.h>

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "../params.h"
#include "../shared_use.h"

namespace tvm {
namespace runtime {

class AotExecutor : public ModuleNode {
 public:
  AotExecutor(Module library, std::vector<DLDevice> devices);

  const char* type_key() const final { return "AotExecutor"; }
  int GetPropertyMask() const final { return kRunnable; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final;

  // Names that are no inputs are ignored.
  void SetParams(const NamedArrays& params);
  void Run();

 private:
  // One tensor that the model's function takes.
  struct Slot {
    std::string name;
    std::vector<int64_t> shape;
    DLDataType dtype;
    NDArray array;
    bool given{false};  // of an input: whether a value was set, or its memory handed out
    bool is_param{false};
  };

  void AddTensor(const TVMTensorInfo& info);
  void AddConstantPool(const TVMMetadata& metadata);
  void Bind(size_t slot, const NDArray& array);
  void CopyInto(size_t slot, const DLTensor* value, const std::string& what);
  void SetZeroCopy(size_t slot, const TVMArgValue& value, const std::string& what);
  void CheckTensor(const DLTensor& value, size_t slot, const std::string& what) const;

  int InputIndex(const std::string& name) const;  // -1 if there is none
  size_t InputSlot(const TVMArgValue& key) const;
  size_t OutputSlot(const TVMArgValue& key) const;
  std::string TextOf(size_t slot) const;
  std::string InputInfoText(bool with_params) const;
  std::string OutputInfoText() const;
  std::string UnsetInputs() const;
  std::string InfoText(size_t first, size_t last, bool with_params = true) const;
  void ReportUnset() const;
  void BeginRun();
  // (key, value, key, value, ...): sets the inputs and runs, with no other thread's call between.
  void RunWithInputs(TVMArgs args);
  // (device_type, device_id, key, value, key, value, ...): copies inputs from and outputs to the device too.
  void RunFromInputs(TVMArgs args);

  Module library_;
  DLDevice device_;
  PackedFunc main_;
  size_t num_inputs_{0};
  size_t num_outputs_{0};
  std::vector<Slot> slots_;  // inputs, outputs, the pool of constants, pools of workspace
  std::vector<DLTensor> tensors_;
  std::vector<TVMValue> values_;
  std::vector<int> type_codes_;
  std::unordered_map<std::string, int> input_index_;
  std::vector<NDArray> output_copies_;  // of RunFromInputs
  bool is_unset_reported_{false};
  SharedUse use_;  // slots as above
  RunLock lock_;
};

Module CreateAotExecutor(Module library, std::vector<DLDevice> devices, const NamedArrays& params);

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_AOT_EXECUTOR_H_
