// Runs graphs of dense layers, sums, products and nn.relu in the simplest way.
#include <tvm/runtime/contrib/json/json_runtime.h>

#include <algorithm>
#include <map>
#include <vector>

namespace example {

using namespace tvm::runtime;
using namespace tvm::runtime::json;

class ExampleRuntime : public JSONRuntimeBase {
 public:
  using JSONRuntimeBase::JSONRuntimeBase;

  const char* type_key() const final { return "example_json"; }

  void Init(const Array<NDArray>& consts) final {
    SetupConstants(consts);
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].GetOpType() != "kernel") continue;
      int64_t count = 1;
      for (int64_t extent : nodes_[i].GetOpShape()[0]) count *= extent;
      values_[i].resize(count);
    }
  }

  void Run() final {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].GetOpType() == "kernel") Compute(nodes_[i], &values_.at(i));
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!IsComputed(i)) continue;
      const std::vector<float>& value = values_.at(outputs_[i].id_);
      std::copy(value.begin(), value.end(), DataOf(*data_entry_[EntryID(outputs_[i])]));
    }
  }

 private:
  static float* DataOf(const DLTensor& tensor) { return reinterpret_cast<float*>(static_cast<char*>(tensor.data) + tensor.byte_offset); }

  const float* Input(const JSONGraphNode& node, int i) const {
    const JSONGraphNodeEntry& entry = node.GetInputs()[i];
    auto computed = values_.find(entry.id_);
    return computed != values_.end() ? computed->second.data() : DataOf(*data_entry_[EntryID(entry)]);
  }

  void Compute(const JSONGraphNode& node, std::vector<float>* out) const {
    const std::string& name = node.GetOpName();
    const float* a = Input(node, 0);
    if (name == "nn.relu") {
      for (size_t i = 0; i < out->size(); ++i) (*out)[i] = std::max(a[i], 0.0f);
      return;
    }
    const float* b = Input(node, 1);
    if (name == "nn.dense") {
      size_t units = node.GetOpShape()[0].back();
      size_t depth = nodes_[node.GetInputs()[0].id_].GetOpShape()[0].back();
      for (size_t i = 0; i < out->size(); ++i) {
        float sum = 0;
        for (size_t k = 0; k < depth; ++k) sum += a[i / units * depth + k] * b[i % units * depth + k];
        (*out)[i] = sum;
      }
    } else if (name == "add") {
      for (size_t i = 0; i < out->size(); ++i) (*out)[i] = a[i] + b[i];
    } else if (name == "multiply") {
      for (size_t i = 0; i < out->size(); ++i) (*out)[i] = a[i] * b[i];
    } else {
      ThrowValueError("example_json has no operator '", name, "'");
    }
  }

  std::map<uint32_t, std::vector<float>> values_;  // by node
};

TVM_REGISTER_GLOBAL("runtime.ExampleJSONRuntimeCreate")
    .set_body_typed([](String symbol, String graph, Array<String> constants) {
      return Module(make_object<ExampleRuntime>(symbol, graph, constants));
    });

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_example_json").set_body_typed(JSONRuntimeBase::LoadFromBinary<ExampleRuntime>);

}  // namespace example
