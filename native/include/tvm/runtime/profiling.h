// Where the time of a run goes: timers, reports by call, and what else is measured around calls.
//
//     Profiler profiler({device}, {}, {{"Executor", String("mine")}});
//     profiler.Start();
//     profiler.StartCall("layer", device);
//     ...
//     profiler.StopCall();
//     profiler.Stop();
//     std::cout << profiler.Report()->AsTable();
#ifndef TVM_RUNTIME_PROFILING_H_
#define TVM_RUNTIME_PROFILING_H_

#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/module.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tvm {
namespace runtime {

// Measures a stretch of a device's work. Kinds of devices bring their own as `profiling.timer.<name>`, a function of the
// device.
class TVM_DLL TimerNode : public Object {
 public:
  virtual ~TimerNode() = default;
  virtual void Start() = 0;
  virtual void Stop() = 0;
  // Waits for the stretch to end, if need be.
  virtual int64_t SyncAndGetElapsedNanos() = 0;
  static constexpr const char* _type_key = "TimerNode";
  TVM_DECLARE_BASE_OBJECT_INFO(TimerNode, Object);
};

class Timer : public ObjectRef {
 public:
  // A running timer.
  TVM_DLL static Timer Start(Device dev);
  TVM_DEFINE_MUTABLE_OBJECT_REF_METHODS(Timer, ObjectRef, TimerNode);
};

// A timer of the host's clock that waits for the device before and after.
TVM_DLL Timer DefaultTimer(Device dev);

namespace profiling {

// The metric that lists the nodes of the imported model that a kernel computes.
constexpr const char* kModelNodes = "Model Nodes";

struct DeviceWrapperNode : public Object {
  Device device;
  explicit DeviceWrapperNode(Device device) : device(device) {}
  static constexpr const char* _type_key = "runtime.profiling.DeviceWrapper";
  TVM_DECLARE_BASE_OBJECT_INFO(DeviceWrapperNode, Object);
};

class DeviceWrapper : public ObjectRef {
 public:
  explicit DeviceWrapper(Device dev) : DeviceWrapper(ObjectPtr<Object>(make_object<DeviceWrapperNode>(dev))) {}
  TVM_DEFINE_OBJECT_REF_METHODS(DeviceWrapper, ObjectRef, DeviceWrapperNode);
};

// The kinds of metrics; a String is one too.
#define TVM_PROFILING_METRIC_(Name, key, Type, field)                                 \
  class Name##Node : public Object {                                                  \
   public:                                                                            \
    Type field{0};                                                                    \
    Name##Node() = default;                                                           \
    explicit Name##Node(Type value) : field(value) {}                                 \
    template <class Visitor>                                                          \
    void VisitAttrs(Visitor* v) {                                                     \
      v->Visit(#field, &field);                                                       \
    }                                                                                 \
    static constexpr const char* _type_key = "runtime.profiling." key;                \
    TVM_DECLARE_FINAL_OBJECT_INFO(Name##Node, Object);                                \
  }
TVM_PROFILING_METRIC_(Duration, "Duration", double, microseconds);
TVM_PROFILING_METRIC_(Percent, "Percent", double, percent);
TVM_PROFILING_METRIC_(Count, "Count", int64_t, value);
TVM_PROFILING_METRIC_(Ratio, "Ratio", double, ratio);

class TVM_DLL ReportNode : public Object {
 public:
  Array<Map<String, ObjectRef>> calls;
  Map<String, Map<String, ObjectRef>> device_metrics;  // over the whole run
  Map<String, ObjectRef> configuration;                // what the run depends on

  String AsCSV() const;
  // With `sort`, calls that took longest come first; `aggregate` joins the calls of one operator with the same arguments;
  // `compute_col_sums` adds the sum of all calls and the totals of devices. Unless it may be `wide`, hashes are left out and
  // long texts cut where lines would have more than 120 columns.
  String AsTable(bool sort = true, bool aggregate = true, bool compute_col_sums = true, bool wide = false) const;
  // What Report::FromJSON reads.
  String AsJSON() const;

  template <class Visitor>
  void VisitAttrs(Visitor* v) {
    v->Visit("calls", &calls);
    v->Visit("device_metrics", &device_metrics);
    v->Visit("configuration", &configuration);
  }
  static constexpr const char* _type_key = "runtime.profiling.Report";
  TVM_DECLARE_FINAL_OBJECT_INFO(ReportNode, Object);
};

class Report : public ObjectRef {
 public:
  TVM_DLL explicit Report(Array<Map<String, ObjectRef>> calls, Map<String, Map<String, ObjectRef>> device_metrics,
                          Map<String, ObjectRef> configuration);
  TVM_DLL static Report FromJSON(String json);
  TVM_DEFINE_OBJECT_REF_METHODS(Report, ObjectRef, ReportNode);
};

// Measures something around each call.
class TVM_DLL MetricCollectorNode : public Object {
 public:
  virtual ~MetricCollectorNode() = default;
  // Called once, with the devices of the run.
  virtual void Init(Array<DeviceWrapper> devs) = 0;
  // Called before a call; the result is given to Stop, null means nothing to stop.
  virtual ObjectRef Start(Device dev) = 0;
  // Called after it: the metrics by name.
  virtual Map<String, ObjectRef> Stop(ObjectRef started) = 0;
  static constexpr const char* _type_key = "runtime.profiling.MetricCollector";
  TVM_DECLARE_BASE_OBJECT_INFO(MetricCollectorNode, Object);
};

class MetricCollector : public ObjectRef {
 public:
  TVM_DEFINE_MUTABLE_OBJECT_REF_METHODS(MetricCollector, ObjectRef, MetricCollectorNode);
};

struct CallFrame {
  Device dev;
  String name;
  Timer timer;
  std::unordered_map<std::string, ObjectRef> extra_metrics;
  std::vector<std::pair<MetricCollector, ObjectRef>> extra_collectors;
};

// Collects the calls of a run. Calls may nest.
class TVM_DLL Profiler {
 public:
  explicit Profiler(std::vector<Device> devs, std::vector<MetricCollector> metric_collectors,
                    std::unordered_map<String, ObjectRef> configuration = {});
  void Start();
  void Stop();
  void StartCall(String name, Device dev, std::unordered_map<std::string, ObjectRef> extra_metrics = {});
  void StopCall(std::unordered_map<std::string, ObjectRef> extra_metrics = {});
  // A call between Start and Stop that somebody else has measured.
  void RecordCall(String name, Device dev, int64_t nanoseconds, std::unordered_map<std::string, ObjectRef> extra_metrics = {});
  // Of all that came between Start and Stop.
  profiling::Report Report();
  bool IsRunning() const { return is_running_; }

 private:
  std::vector<Device> devs_;
  std::vector<MetricCollector> collectors_;
  Map<String, ObjectRef> configuration_;
  std::vector<Timer> totals_;
  std::vector<CallFrame> calls_;
  std::vector<size_t> in_flight_;
  bool is_running_{false};
};

// "float32[2, 3], int8[4]"
TVM_DLL String ShapeString(const std::vector<NDArray>& arrays);
TVM_DLL String ShapeString(const std::vector<int64_t>& shape, DLDataType dtype);

// A function of the arguments of the module's function that returns the metrics of one call, after calls to warm up.
TVM_DLL PackedFunc ProfileFunction(Module mod, std::string func_name, int device_type, int device_id, int warmup_iters,
                                   Array<MetricCollector> collectors);

// A function of `func`'s arguments that returns the seconds of a call, in each repeat, as bytes of double.
TVM_DLL PackedFunc WrapTimeEvaluator(PackedFunc func, Device dev, int number, int repeat, int min_repeat_ms,
                                     int limit_zero_time_iterations, int cooldown_interval_ms, int repeats_to_cooldown,
                                     int cache_flush_bytes = 0, PackedFunc f_preproc = nullptr);

}  // namespace profiling
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_PROFILING_H_
