// The graph executor for debugging: every tensor is kept, nodes run one by one and are timed.
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/profiling.h>
#include <tvm/runtime/registry.h>

#include <chrono>

#include "../arguments.h"
#include "../interrupt.h"
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
      return Exclusive(self, [this](TVMArgs args, TVMRetValue*) { ExecuteNode(args[0]); });
    }
    if (name == "get_node_output") {
      return Exclusive(self, [this](TVMArgs args, TVMRetValue* rv) {
        *rv = NodeOutput(args[0], args.num_args > 1 ? int(args[1]) : 0);
      });
    }
    if (name == "debug_get_output") {
      return Exclusive(self, [this](TVMArgs args, TVMRetValue* rv) {
        int node = args[0].is_str() ? NodeNamed(args[0]) : int(args[0]);
        CheckNode(node);
        for (int i = 0; i <= node; ++i) ExecuteNode(i);
        NDArray output = NodeOutput(node, 0);
        if (args.num_args > 1) output.CopyTo(&TensorIn(args[1])); else *rv = output;
      });
    }
    if (name == "run_individual") {  // how many nodes, then the seconds of each node's repeats
      return Exclusive(self, [this](TVMArgs args, TVMRetValue* rv) {
        CheckTimingOptions("run_individual", args, 0);
        const int64_t count = static_cast<int64_t>(graph_.nodes.size());
        std::string bytes(reinterpret_cast<const char*>(&count), sizeof(count));
        for (int n = 0; n < count; ++n) bytes += TimeNode(n, args, 0);
        *rv = TVMByteArray{bytes.data(), bytes.size()};
      });
    }
    if (name == "run_individual_node") {
      return Exclusive(self, [this](TVMArgs args, TVMRetValue* rv) {
        CheckTimingOptions("run_individual_node", args, 1);
        std::string seconds = TimeNode(args[0], args, 1);
        *rv = TVMByteArray{seconds.data(), seconds.size()};
      });
    }
    if (name == "profile") {
      return Exclusive(self, [this](TVMArgs args, TVMRetValue* rv) {
        Array<profiling::MetricCollector> collectors;
        if (args.size() > 0) collectors = args[0].AsObjectRef<Array<profiling::MetricCollector>>();
        *rv = Profile({collectors.begin(), collectors.end()});
      });
    }
    if (name == "profile_rpc") {  // the report as JSON, which crosses any border
      return Exclusive(self, [this](TVMArgs, TVMRetValue* rv) { *rv = Profile({})->AsJSON(); });
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
    if (!all_inputs_set_) {
      ReportUnset();
      FillUnsetInputs();
    }
    PollSignals();
    if (call_of_[node] >= 0) Call(&calls_[call_of_[node]]);
  }

  NDArray NodeOutput(int node, int index) {
    CheckNode(node);
    int count = static_cast<int>(graph_.nodes[node].num_outputs);
    if (index < 0 || index >= count) ThrowValueError("the node has ", count, " outputs, got index ", index);
    if (!all_inputs_set_) FillUnsetInputs();
    return arrays_[graph_.row_ptr[node] + index];
  }

  // number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown
  static void CheckTimingOptions(const char* function, const TVMArgs& args, int first) {
    if (args.size() < first + 6) ThrowTypeError(function, " takes ", first + 6, " arguments, got ", args.size());
    if (int(args[first]) < 1) ThrowValueError(function, " needs number >= 1, got ", int(args[first]));
    if (int(args[first + 1]) < 1) ThrowValueError(function, " needs repeat >= 1, got ", int(args[first + 1]));
  }

  // Seconds of a call of the node, in each repeat, as bytes of double.
  std::string TimeNode(int node, const TVMArgs& args, int first) {
    CheckNode(node);
    const int repeat = args[first + 1];
    if (call_of_[node] < 0) return std::string(repeat * sizeof(double), '\0');
    PackedFunc run([this, node](TVMArgs, TVMRetValue*) { ExecuteNode(node); });
    return profiling::WrapTimeEvaluator(run, DeviceOf(graph_.row_ptr[node]), args[first], repeat, args[first + 2],
                                        args[first + 3], args[first + 4], args[first + 5])();
  }

  using Metrics = std::unordered_map<std::string, ObjectRef>;

  Metrics Describe(const GraphNode& node, uint32_t first_output) const {
    std::vector<NDArray> arguments;
    for (const auto& input : node.inputs) arguments.push_back(arrays_[graph_.entry_id(input)]);
    for (uint32_t k = 0; k < node.num_outputs; ++k) arguments.push_back(arrays_[first_output + k]);
    Metrics metrics{{"Argument Shapes", profiling::ShapeString(arguments)}};
    if (!node.hash.empty()) metrics["Hash"] = String(node.hash);
    if (!node.sources.empty()) metrics[profiling::kModelNodes] = String(node.sources);
    return metrics;
  }

  void RunWithCollectors(profiling::Profiler* profiler, std::vector<Metrics>* descriptions) {
    profiler->Start();
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (call_of_[n] < 0) continue;
      PollSignals();
      profiler->StartCall(graph_.nodes[n].func_name, DeviceOf(graph_.row_ptr[n]), std::move((*descriptions)[n]));
      Call(&calls_[call_of_[n]]);
      profiler->StopCall();
    }
    profiler->Stop();
  }

  // The clock is read once a node: between the end of one and the beginning of the next nothing is lost.
  void RunTimed(profiling::Profiler* profiler, std::vector<Metrics>* descriptions) {
    std::vector<int64_t> nanoseconds(graph_.nodes.size());
    profiler->Start();
    Clock::time_point last = Clock::now();
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (call_of_[n] < 0) continue;
      PollSignals();
      Call(&calls_[call_of_[n]]);
      DLDevice device = DeviceOf(graph_.row_ptr[n]);
      DeviceAPI::Get(device)->StreamSync(device, nullptr);
      Clock::time_point now = Clock::now();
      nanoseconds[n] = std::chrono::duration_cast<std::chrono::nanoseconds>(now - last).count();
      last = now;
    }
    profiler->Stop();
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (call_of_[n] < 0) continue;
      profiler->RecordCall(graph_.nodes[n].func_name, DeviceOf(graph_.row_ptr[n]), nanoseconds[n], std::move((*descriptions)[n]));
    }
  }

  // The second of two runs.
  profiling::Report Profile(std::vector<profiling::MetricCollector> collectors) {
    Run();
    std::vector<Metrics> descriptions(graph_.nodes.size());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) descriptions[n] = Describe(graph_.nodes[n], graph_.row_ptr[n]);
    const bool has_collectors = !collectors.empty();
    profiling::Profiler profiler(devices_, std::move(collectors), {{"Executor", String("Graph")}});
    if (has_collectors) {
      RunWithCollectors(&profiler, &descriptions);
    } else {
      RunTimed(&profiler, &descriptions);
    }
    return profiler.Report();
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
