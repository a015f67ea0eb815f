// A compiled model's graph: which function computes which tensors, and where they are stored.
#ifndef TVM_SRC_GRAPH_GRAPH_H_
#define TVM_SRC_GRAPH_GRAPH_H_

#include <tvm/runtime/data_type.h>

#include <string>
#include <vector>

namespace tvm {
namespace runtime {

// One output of one node.
struct GraphEntry {
  uint32_t node;
  uint32_t index;
};

struct GraphNode {
  bool is_op{false};  // otherwise an input or a parameter
  std::string name;
  std::string func_name;
  std::string hash;      // of the function, for reports; empty if the graph does not say
  std::string sources;   // the nodes of the imported model that it computes, for reports
  bool flatten_data{false};
  uint32_t num_outputs{1};
  std::vector<GraphEntry> inputs;

  // Nothing to compute: the output is the input under another shape.
  bool is_nop() const { return func_name == "__nop"; }
  bool is_copy() const { return func_name == "__copy"; }
};

struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<uint32_t> arg_nodes;   // inputs, in order
  std::vector<GraphEntry> heads;     // outputs, in order
  std::vector<std::string> output_names;  // one a head; empty: outputs have the names of their nodes
  std::vector<uint32_t> row_ptr;     // node -> its first entry's number
  // for each entry
  std::vector<DLDataType> dtypes;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<int64_t> storage_ids;
  std::vector<int> device_types;     // empty: all on the first device

  uint32_t num_entries() const { return row_ptr.back(); }
  uint32_t entry_id(GraphEntry entry) const { return row_ptr[entry.node] + entry.index; }

  // Reads and checks everything that the executor relies on.
  static Graph Parse(const std::string& json);
};

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_GRAPH_GRAPH_H_
