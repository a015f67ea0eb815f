// From nodes of a graph to oneDNN primitives.
#ifndef TVM_DNNL_OPERATORS_H_
#define TVM_DNNL_OPERATORS_H_

#include <tvm/runtime/contrib/json/json_node.h>

#include <functional>
#include <string>
#include <vector>

#include "program.h"

namespace tvm {
namespace dnnl_runtime {

// float32, bfloat16, int8, uint8 or int32; others are rejected.
Type TypeOf(DLDataType type);

// A node with its inputs, on the way to becoming steps of a program.
struct Operation {
  Program* program;
  const runtime::json::JSONGraphNode* node;
  std::vector<Value> inputs;
  std::vector<bool> is_last_use;  // of each input

  Dims Numbers(const char* key) const { return node->GetAttr<std::vector<int64_t>>(key); }
  Dims Positive(const char* key) const;  // raises if one is not
  std::string Text(const char* key) const { return node->GetAttr<std::string>(key); }
  Dims ResultDims() const { return node->GetOpShape()[0]; }
  Type ResultType() const { return TypeOf(node->GetOpDataType()[0]); }
};

// Adds the operation's steps; its result. The node's attribute `root` names the operator; `post_ops` what is done with its
// result before it is stored: "bias:2" and "sum:3" add an input, "sum:3:0.5" that times a factor, others are activations.
Value AddOperation(const Operation& operation);

}  // namespace dnnl_runtime
}  // namespace tvm
#endif  // TVM_DNNL_OPERATORS_H_
