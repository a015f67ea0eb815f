// The nodes of a graph that a compiler has handed over as JSON.
//
//     {"nodes": [{"op": "input", "name": "x", "attrs": {"shape": [[[1, 8]]], "dtype": [["float32"]]}},
//                {"op": "const", "name": "f_const_0", ...},
//                {"op": "kernel", "name": "nn.dense", "inputs": [[0, 0, 0], [1, 0, 0]],
//                 "attrs": {"num_inputs": "2", "num_outputs": "1", "units": [["4"]], ...}}],
//      "arg_nodes": [0, 1], "heads": [[2, 0, 0]], "node_row_ptr": [0, 1, 2, 3]}
#ifndef TVM_RUNTIME_CONTRIB_JSON_JSON_NODE_H_
#define TVM_RUNTIME_CONTRIB_JSON_JSON_NODE_H_

#include <tvm/runtime/data_type.h>
#include <tvm/runtime/error.h>

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tvm {
namespace runtime {
namespace json {

// One result of a node.
struct JSONGraphNodeEntry {
  JSONGraphNodeEntry() = default;
  JSONGraphNodeEntry(uint32_t id, uint32_t index, uint32_t version = 0) : id_(id), index_(index), version_(version) {}

  uint32_t id_{0};
  uint32_t index_{0};
  uint32_t version_{0};
};

class JSONGraphNode {
 public:
  using Values = std::vector<std::string>;

  JSONGraphNode() = default;
  // `op_type` is "input", "const" or "kernel".
  JSONGraphNode(std::string name, std::string op_type, std::vector<JSONGraphNodeEntry> inputs = {}, uint32_t num_output = 1)
      : num_output_(num_output), name_(std::move(name)), op_type_(std::move(op_type)), inputs_(std::move(inputs)) {}

  const std::string& GetOpType() const { return op_type_; }
  // Of a kernel, the operator or the composite function.
  const std::string& GetOpName() const { return name_; }
  const std::vector<JSONGraphNodeEntry>& GetInputs() const { return inputs_; }
  uint32_t GetNumOutput() const { return num_output_; }
  void SetNumOutput(uint32_t count) { num_output_ = count; }
  // Of each result.
  const std::vector<std::vector<int64_t>>& GetOpShape() const { return shapes_; }
  const std::vector<DLDataType>& GetOpDataType() const { return dtypes_; }
  void SetOpTypes(std::vector<std::vector<int64_t>> shapes, std::vector<DLDataType> dtypes) {
    shapes_ = std::move(shapes);
    dtypes_ = std::move(dtypes);
  }

  bool HasAttr(const std::string& key) const { return attrs_.count(key) != 0; }
  void SetAttr(const std::string& key, Values values) { attrs_[key] = std::move(values); }
  // T: std::vector<std::string>, std::string, an integer or floating-point type, or a vector of these.
  template <class T>
  T GetAttr(const std::string& key) const {
    auto found = attrs_.find(key);
    if (found == attrs_.end()) ThrowValueError("the node '", name_, "' has no attribute '", key, "'");
    try {
      return As(found->second, static_cast<T*>(nullptr));
    } catch (const std::logic_error&) {
      ThrowValueError("the attribute '", key, "' of the node '", name_, "' is no number");
    }
  }

 private:
  template <class T>
  static std::vector<T> As(const Values& values, std::vector<T>*) {
    std::vector<T> result;
    for (const std::string& value : values) result.push_back(As(Values{value}, static_cast<T*>(nullptr)));
    return result;
  }
  template <class T>
  static T As(const Values& values, T*) {
    if constexpr (std::is_same<T, std::string>::value) {
      return values.at(0);
    } else if constexpr (std::is_floating_point<T>::value) {
      return static_cast<T>(std::stod(values.at(0)));
    } else {
      return static_cast<T>(std::stoll(values.at(0)));
    }
  }

  uint32_t num_output_{1};
  std::string name_;
  std::string op_type_;
  std::vector<JSONGraphNodeEntry> inputs_;
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<DLDataType> dtypes_;
  std::map<std::string, Values> attrs_;
};

}  // namespace json
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_CONTRIB_JSON_JSON_NODE_H_
