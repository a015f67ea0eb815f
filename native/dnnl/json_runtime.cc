// Modules of type `dnnl_json`: graphs that oneDNN runs.
#include <tvm/runtime/contrib/json/json_runtime.h>

#include <map>
#include <memory>

#include "operators.h"

namespace tvm {
namespace dnnl_runtime {
namespace {

using namespace runtime;
using namespace runtime::json;

class DNNLJSONRuntime : public JSONRuntimeBase {
 public:
  using JSONRuntimeBase::JSONRuntimeBase;

  const char* type_key() const final { return "dnnl_json"; }

  void Init(const Array<NDArray>& consts) final {
    SetupConstants(consts);
    CountUses();
    for (uint32_t node = 0; node < nodes_.size(); ++node) AddNode(node);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!IsComputed(i)) continue;
      const Value& value = values_.at(EntryID(outputs_[i]));
      program_.Copy(value, program_.Argument(value.dims(), OutputNumber(i), value.type()));
    }
    values_.clear();
  }

  void Run() final {
    for (uint32_t entry : input_var_eid_) program_.Bind(static_cast<int>(entry), DataOf(data_entry_[entry]));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (IsComputed(i)) program_.Bind(OutputNumber(i), DataOf(data_entry_[EntryID(outputs_[i])]));
    }
    program_.Run();
  }

 private:
  static void* DataOf(const DLTensor* tensor) { return static_cast<char*>(tensor->data) + tensor->byte_offset; }
  // behind those of the inputs, which are entries
  int OutputNumber(size_t i) const { return static_cast<int>(NumEntries() + i); }

  void CountUses() {
    for (const JSONGraphNode& node : nodes_) {
      for (const JSONGraphNodeEntry& input : node.GetInputs()) ++uses_[EntryID(input)];
    }
    for (const JSONGraphNodeEntry& output : outputs_) ++uses_[EntryID(output)];
  }

  void AddNode(uint32_t number) {
    const JSONGraphNode& node = nodes_[number];
    for (const std::vector<int64_t>& shape : node.GetOpShape()) {
      for (int64_t extent : shape) {
        if (extent < 1) ThrowValueError("oneDNN takes tensors that are not empty, got an extent of ", extent);
      }
    }
    uint32_t entry = EntryID(number, 0);
    if (node.GetOpType() == "kernel") {
      std::vector<Value> inputs;
      std::vector<bool> is_last_use;
      for (const JSONGraphNodeEntry& input : node.GetInputs()) {
        inputs.push_back(values_.at(EntryID(input)));
        is_last_use.push_back(uses_[EntryID(input)] == 1);
      }
      Value value = AddOperation({&program_, &node, std::move(inputs), std::move(is_last_use)});
      if (value.dims() != node.GetOpShape()[0]) ThrowValueError("the result of '", node.GetOpName(), "' has another shape than the graph says");
      if (value.type() != TypeOf(node.GetOpDataType()[0])) ThrowTypeError("the result of '", node.GetOpName(), "' has another type than the graph says");
      values_[entry] = std::move(value);
      for (const JSONGraphNodeEntry& input : node.GetInputs()) --uses_[EntryID(input)];
      return;
    }
    for (uint32_t i = 0; i < node.GetNumOutput(); ++i, ++entry) {
      Dims dims = node.GetOpShape()[i];
      Type type = TypeOf(node.GetOpDataType()[i]);
      if (dims.empty()) dims = {1};
      bool is_constant = node.GetOpType() == "const";
      values_[entry] = is_constant ? program_.Constant(dims, DataOf(data_entry_[entry]), type) : program_.Argument(dims, static_cast<int>(entry), type);
    }
  }

  Program program_;
  std::map<uint32_t, Value> values_;  // by entry
  std::map<uint32_t, int> uses_;      // that are still to come
};

Module Create(String symbol, String graph, Array<String> constants) {
  return Module(make_object<DNNLJSONRuntime>(symbol, graph, constants));
}

TVM_REGISTER_GLOBAL("dnnl.DNNLJSONRuntimeCreate").set_body_typed(Create);
TVM_REGISTER_GLOBAL("dnnl.loadbinary_dnnl_json").set_body_typed(JSONRuntimeBase::LoadFromBinary<DNNLJSONRuntime>);

}  // namespace
}  // namespace dnnl_runtime
}  // namespace tvm
