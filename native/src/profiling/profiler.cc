// Timers, collectors, and the profiler that makes reports of them.
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/profiling.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/threading_backend.h>

#include <algorithm>
#include <chrono>
#include <map>

namespace tvm {
namespace runtime {
namespace {

using Clock = std::chrono::steady_clock;

class DefaultTimerNode final : public TimerNode {
 public:
  explicit DefaultTimerNode(Device dev) : dev_(dev) {}
  void Start() final {
    Synchronize();
    start_ = Clock::now();
  }
  void Stop() final {
    Synchronize();
    elapsed_ = Clock::now() - start_;
  }
  int64_t SyncAndGetElapsedNanos() final { return std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed_).count(); }
  static constexpr const char* _type_key = "DefaultTimerNode";
  TVM_DECLARE_FINAL_OBJECT_INFO(DefaultTimerNode, TimerNode);

 private:
  void Synchronize() { DeviceAPI::Get(dev_)->StreamSync(dev_, nullptr); }
  Device dev_;
  Clock::time_point start_;
  Clock::duration elapsed_{};
};

class CPUTimerNode final : public TimerNode {
 public:
  void Start() final { start_ = Clock::now(); }
  void Stop() final { elapsed_ = Clock::now() - start_; }
  int64_t SyncAndGetElapsedNanos() final { return std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed_).count(); }
  static constexpr const char* _type_key = "CPUTimerNode";
  TVM_DECLARE_FINAL_OBJECT_INFO(CPUTimerNode, TimerNode);

 private:
  Clock::time_point start_;
  Clock::duration elapsed_{};
};

// The result of another clock.
class MeasuredTimerNode final : public TimerNode {
 public:
  explicit MeasuredTimerNode(int64_t nanoseconds) : nanoseconds_(nanoseconds) {}
  void Start() final {}
  void Stop() final {}
  int64_t SyncAndGetElapsedNanos() final { return nanoseconds_; }

 private:
  int64_t nanoseconds_;
};

TVM_REGISTER_OBJECT_TYPE(TimerNode);
TVM_REGISTER_OBJECT_TYPE(DefaultTimerNode);
TVM_REGISTER_OBJECT_TYPE(CPUTimerNode);

Timer NewCPUTimer() { return Timer(ObjectPtr<Object>(make_object<CPUTimerNode>())); }

Timer NewTimer(Device dev) {
  if (dev.device_type == kDLCPU) return NewCPUTimer();
  PackedFunc make = Registry::Find(std::string("profiling.timer.") + DeviceName(dev.device_type));
  return make.defined() ? make(dev).AsObjectRef<Timer>() : DefaultTimer(dev);
}

TVM_REGISTER_GLOBAL("profiling.timer.cpu").set_body_typed([](Device) { return NewCPUTimer(); });
TVM_REGISTER_GLOBAL("profiling.start_timer").set_body_typed(Timer::Start);

}  // namespace

Timer DefaultTimer(Device dev) { return Timer(ObjectPtr<Object>(make_object<DefaultTimerNode>(dev))); }

Timer Timer::Start(Device dev) {
  Timer timer = NewTimer(dev);
  timer->Start();
  return timer;
}

namespace profiling {
namespace {

TVM_REGISTER_OBJECT_TYPE(MetricCollectorNode);
TVM_REGISTER_OBJECT_TYPE(DeviceWrapperNode);

// A collector of another language.
class ForeignCollectorNode final : public MetricCollectorNode {
 public:
  ForeignCollectorNode(PackedFunc init, PackedFunc start, PackedFunc stop)
      : init_(std::move(init)), start_(std::move(start)), stop_(std::move(stop)) {}
  void Init(Array<DeviceWrapper> devs) final { init_(devs); }
  ObjectRef Start(Device dev) final { return start_(dev); }
  Map<String, ObjectRef> Stop(ObjectRef started) final { return stop_(started).AsObjectRef<Map<String, ObjectRef>>(); }

 private:
  PackedFunc init_;
  PackedFunc start_;
  PackedFunc stop_;
};

// (init, start, stop)
TVM_REGISTER_GLOBAL("runtime.profiling.ForeignCollector").set_body_typed([](PackedFunc init, PackedFunc start, PackedFunc stop) {
  return MetricCollector(ObjectPtr<Object>(make_object<ForeignCollectorNode>(init, start, stop)));
});

TVM_REGISTER_GLOBAL("runtime.profiling.DeviceWrapper").set_body_typed([](Device dev) { return DeviceWrapper(dev); });
TVM_REGISTER_GLOBAL("runtime.profiling.DeviceOf").set_body_typed([](DeviceWrapper wrapper) { return wrapper->device; });

template <class Node, class T>
ObjectRef Metric(T value) {
  return ObjectRef(ObjectPtr<Object>(make_object<Node>(value)));
}

String DeviceLabel(Device dev) { return Cat(DeviceName(dev.device_type), dev.device_id); }

using Started = std::vector<std::pair<MetricCollector, ObjectRef>>;

Started StartAll(const std::vector<MetricCollector>& collectors, Device dev) {
  Started started;
  for (const MetricCollector& collector : collectors) {
    ObjectRef state = collector->Start(dev);
    if (state.defined()) started.emplace_back(collector, state);
  }
  return started;
}

// What was started last stops first.
template <class Take>
void StopAll(const Started& started, Take take) {
  for (auto it = started.rbegin(); it != started.rend(); ++it) {
    Map<String, ObjectRef> metrics = it->first->Stop(it->second);
    for (const auto& metric : metrics) take(metric.first, metric.second);
  }
}

void InitAll(const std::vector<MetricCollector>& collectors, const std::vector<Device>& devs) {
  Array<DeviceWrapper> wrappers;
  for (Device dev : devs) wrappers.push_back(DeviceWrapper(dev));
  for (const MetricCollector& collector : collectors) collector->Init(wrappers);
}

Map<String, ObjectRef> MetricsOf(const CallFrame& call, double total) {
  const double elapsed = static_cast<double>(call.timer->SyncAndGetElapsedNanos()) / 1e3;
  Map<String, ObjectRef> metrics;
  metrics.Set("Name", call.name);
  metrics.Set("Duration (us)", Metric<DurationNode>(elapsed));
  metrics.Set("Percent", Metric<PercentNode>(total > 0 ? 100 * elapsed / total : 0.0));
  metrics.Set("Device", DeviceLabel(call.dev));
  metrics.Set("Count", Metric<CountNode>(int64_t{1}));
  const std::map<std::string, ObjectRef> extras(call.extra_metrics.begin(), call.extra_metrics.end());
  for (const auto& extra : extras) metrics.Set(extra.first, extra.second);
  return metrics;
}

}  // namespace

Profiler::Profiler(std::vector<Device> devs, std::vector<MetricCollector> metric_collectors,
                   std::unordered_map<String, ObjectRef> configuration)
    : devs_(std::move(devs)), collectors_(std::move(metric_collectors)), configuration_(configuration) {
  InitAll(collectors_, devs_);
  configuration_.Set("Number of threads", Metric<CountNode>(int64_t{threading::NumThreads()}));
}

void Profiler::Start() {
  is_running_ = true;
  for (Device dev : devs_) totals_.push_back(Timer::Start(dev));
}

void Profiler::Stop() {
  is_running_ = false;
  for (Timer& total : totals_) total->Stop();
}

void Profiler::StartCall(String name, Device dev, std::unordered_map<std::string, ObjectRef> extra_metrics) {
  in_flight_.push_back(calls_.size());
  calls_.push_back(CallFrame{dev, std::move(name), NewTimer(dev), std::move(extra_metrics), StartAll(collectors_, dev)});
  calls_.back().timer->Start();
}

void Profiler::StopCall(std::unordered_map<std::string, ObjectRef> extra_metrics) {
  if (in_flight_.empty()) ThrowValueError("Profiler::StopCall needs a call that was started");
  CallFrame& call = calls_[in_flight_.back()];
  call.timer->Stop();
  in_flight_.pop_back();
  for (auto& extra : extra_metrics) call.extra_metrics[extra.first] = std::move(extra.second);
  StopAll(call.extra_collectors, [&](const String& name, ObjectRef value) { call.extra_metrics[name] = std::move(value); });
}

void Profiler::RecordCall(String name, Device dev, int64_t nanoseconds, std::unordered_map<std::string, ObjectRef> extra_metrics) {
  Timer timer(ObjectPtr<Object>(make_object<MeasuredTimerNode>(nanoseconds)));
  calls_.push_back(CallFrame{dev, std::move(name), timer, std::move(extra_metrics), {}});
}

Report Profiler::Report() {
  double longest = 0;
  Map<String, Map<String, ObjectRef>> devices;
  for (Timer& total : totals_) longest = std::max(longest, static_cast<double>(total->SyncAndGetElapsedNanos()) / 1e3);
  for (size_t i = 0; i < totals_.size(); ++i) {
    Map<String, ObjectRef> metrics;
    metrics.Set("Duration (us)", Metric<DurationNode>(static_cast<double>(totals_[i]->SyncAndGetElapsedNanos()) / 1e3));
    metrics.Set("Percent", Metric<PercentNode>(100.0));
    metrics.Set("Count", Metric<CountNode>(int64_t{1}));
    devices.Set(DeviceLabel(devs_[i]), metrics);
  }
  Array<Map<String, ObjectRef>> calls;
  for (const CallFrame& call : calls_) calls.push_back(MetricsOf(call, longest));
  return profiling::Report(calls, devices, configuration_);
}

String ShapeString(const std::vector<int64_t>& shape, DLDataType dtype) {
  std::string text = DLDataType2String(dtype) + "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

String ShapeString(const std::vector<NDArray>& arrays) {
  std::string text;
  for (const NDArray& array : arrays) text += (text.empty() ? "" : ", ") + std::string(ShapeString(array.extents(), array->dtype));
  return text;
}

PackedFunc ProfileFunction(Module mod, std::string func_name, int device_type, int device_id, int warmup_iters,
                           Array<MetricCollector> collectors) {
  const Device dev{static_cast<DLDeviceType>(device_type), device_id};
  PackedFunc func = mod.GetFunction(func_name, true);
  if (!func.defined()) ThrowValueError("profile_function: the module has no function '", func_name, "'");
  std::vector<MetricCollector> list(collectors.begin(), collectors.end());
  return PackedFunc([=](TVMArgs args, TVMRetValue* rv) {
    TVMRetValue ignored;
    for (int i = 0; i < warmup_iters; ++i) func.CallPacked(args, &ignored);
    InitAll(list, {dev});
    Started started = StartAll(list, dev);
    func.CallPacked(args, &ignored);
    Map<String, ObjectRef> metrics;
    StopAll(started, [&](const String& name, const ObjectRef& value) { metrics.Set(name, value); });
    *rv = metrics;
  });
}

// (module, function, device_type, device_id, warmup_iters, collectors)
TVM_REGISTER_GLOBAL("runtime.profiling.ProfileFunction").set_body_typed(ProfileFunction);

}  // namespace profiling
}  // namespace runtime
}  // namespace tvm
