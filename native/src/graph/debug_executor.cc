// The graph executor for debugging: every tensor is kept, nodes run one by one and are timed.
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/registry.h>

#include <chrono>

#include "executor.h"

namespace tvm {
namespace runtime {
namespace {

using Clock = std::chrono::steady_clock;

class GraphExecutorDebug : public GraphExecutor {
 public:
  GraphExecutorDebug(const std::string& json, Module library, std::vector<DLDevice> devices)
      : GraphExecutor(json, std::move(library), std::move(devices), false), call_of_(graph_.nodes.size(), -1) {
    int next = 0;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].is_op && !graph_.nodes[n].is_nop()) call_of_[n] = next++;
    }
  }

  const char* type_key() const final { return "GraphExecutorDebug"; }

  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    if (name == "execute_node") {
      return PackedFunc([this, self](TVMArgs args, TVMRetValue*) { ExecuteNode(args[0]); });
    }
    if (name == "get_node_output") {
      return PackedFunc([this, self](TVMArgs args, TVMRetValue* rv) {
        *rv = NodeOutput(args[0], args.num_args > 1 ? int(args[1]) : 0);
      });
    }
    if (name == "debug_get_output") {
      return PackedFunc([this, self](TVMArgs args, TVMRetValue* rv) {
        int node = args[0].is_str() ? NodeNamed(args[0]) : int(args[0]);
        CheckNode(node);
        for (int i = 0; i <= node; ++i) ExecuteNode(i);
        NDArray output = NodeOutput(node, 0);
        if (args.num_args > 1) output.CopyTo(args[1].operator DLTensor*()); else *rv = output;
      });
    }
    if (name == "get_node_function") {  // runs the node, with no arguments
      return PackedFunc([this, self](TVMArgs args, TVMRetValue* rv) {
        int node = args[0];
        CheckNode(node);
        *rv = PackedFunc([this, self, node](TVMArgs, TVMRetValue*) { ExecuteNode(node); });
      });
    }
    if (name == "run_timed") {
      return PackedFunc([this, self](TVMArgs, TVMRetValue* rv) {
        std::vector<double> seconds = RunTimed();
        *rv = TVMByteArray{reinterpret_cast<const char*>(seconds.data()), seconds.size() * sizeof(double)};
      });
    }
    return GraphExecutor::GetFunction(name, self);
  }

 private:
  void CheckNode(int node) const {
    int count = static_cast<int>(graph_.nodes.size());
    if (node < 0 || node >= count) ThrowValueError("the graph has ", count, " nodes, got index ", node);
  }

  int NodeNamed(const std::string& name) const {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].name == name) return static_cast<int>(n);
    }
    ThrowValueError("the graph has no node '", name, "'");
  }

  void ExecuteNode(int node) {
    CheckNode(node);
    if (!all_inputs_set_) FillUnsetInputs();
    if (call_of_[node] >= 0) Call(&calls_[call_of_[node]]);
  }

  NDArray NodeOutput(int node, int index) {
    CheckNode(node);
    int count = static_cast<int>(graph_.nodes[node].num_outputs);
    if (index < 0 || index >= count) ThrowValueError("the node has ", count, " outputs, got index ", index);
    if (!all_inputs_set_) FillUnsetInputs();
    return arrays_[graph_.row_ptr[node] + index];
  }

  // Seconds of each node, then of the whole.
  std::vector<double> RunTimed() {
    if (!all_inputs_set_) FillUnsetInputs();
    std::vector<double> seconds(graph_.nodes.size() + 1);
    auto begin = Clock::now();
    auto start = begin;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (call_of_[n] < 0) continue;
      Call(&calls_[call_of_[n]]);
      DLDevice device = DeviceOf(graph_.row_ptr[n]);
      DeviceAPI::Get(device)->StreamSync(device, nullptr);
      auto end = Clock::now();
      seconds[n] = std::chrono::duration<double>(end - start).count();
      start = end;
    }
    seconds.back() = std::chrono::duration<double>(Clock::now() - begin).count();
    return seconds;
  }

  std::vector<int> call_of_;  // by node; -1 for inputs and other shapes of a tensor
};

}  // namespace

Module CreateDebugExecutor(const std::string& json, Module library, std::vector<DLDevice> devices, const NamedArrays& params) {
  auto executor = make_object<GraphExecutorDebug>(json, std::move(library), std::move(devices));
  executor->ShareParams(params);
  return Module(ObjectPtr<ModuleNode>(executor));
}

}  // namespace runtime
}  // namespace tvm
