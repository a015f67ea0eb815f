// Timers, reports and collectors; the profile of a model, when one is given: graph JSON, library.
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/profiling.h>
#include <tvm/runtime/registry.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

using namespace tvm::runtime;
using namespace tvm::runtime::profiling;

const tvm::Device kCpu{kDLCPU, 0};

void Sleep(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

void MeasureTime() {
  Timer timer = Timer::Start(kCpu), waiting = DefaultTimer(kCpu);
  waiting->Start();
  Sleep(3);
  timer->Stop();
  waiting->Stop();
  ICHECK(timer->SyncAndGetElapsedNanos() >= 3000000 && waiting->SyncAndGetElapsedNanos() >= 3000000);
  ICHECK_EQ(timer->GetTypeKey(), "CPUTimerNode");
  Timer started = (*Registry::Get("profiling.start_timer"))(kCpu).AsObjectRef<Timer>();
  Sleep(1);
  started->Stop();
  ICHECK(started->SyncAndGetElapsedNanos() >= 1000000);
  PackedFunc seconds = WrapTimeEvaluator(PackedFunc([](TVMArgs, TVMRetValue*) { Sleep(1); }), kCpu, 1, 2, 0, 100, 0, 1);
  std::string bytes = seconds();
  double times[2];
  ICHECK_EQ(bytes.size(), sizeof(times));
  std::memcpy(times, bytes.data(), sizeof(times));
  ICHECK(times[0] >= 0.001 && times[1] >= 0.001);
}

// Counts the calls.
class CounterNode final : public MetricCollectorNode {
 public:
  void Init(Array<DeviceWrapper> devs) final { devices = devs.size(); }
  ObjectRef Start(tvm::Device dev) final { return DeviceWrapper(dev); }
  Map<String, ObjectRef> Stop(ObjectRef started) final {
    ICHECK_EQ(tvm::runtime::Downcast<DeviceWrapper>(started)->device.device_type, kDLCPU);
    return {{"Number", ObjectRef(make_object<CountNode>(++calls))}, {"Speed", ObjectRef(make_object<RatioNode>(2.5))}};
  }
  size_t devices{0};
  int64_t calls{0};
};

void ProfileCalls() {
  auto counter = make_object<CounterNode>();
  Profiler profiler({kCpu}, {MetricCollector(counter)}, {{"Executor", String("mine")}});
  ICHECK(!profiler.IsRunning() && counter->devices == 1);
  profiler.Start();
  for (int i = 0; i < 2; ++i) {
    profiler.StartCall("outer", kCpu, {{"Argument Shapes", ShapeString({2, 3}, DLDataType{kDLFloat, 32, 1})}});
    profiler.StartCall("inner, quoted", kCpu);
    Sleep(1);
    profiler.StopCall({{"Extra", String("x")}});
    profiler.StopCall();
  }
  ICHECK(profiler.IsRunning());
  profiler.Stop();
  Report report = profiler.Report();
  ICHECK_EQ(report->calls.size(), 4);
  ICHECK_EQ(tvm::runtime::Downcast<String>(report->calls[0]["Name"]), "outer");
  ICHECK(report->calls[1]["Duration (us)"].as<DurationNode>()->microseconds >= 1000);
  ICHECK(report->device_metrics["cpu0"]["Percent"].as<PercentNode>()->percent == 100);
  ICHECK_EQ(report->configuration["Executor"].as<StringObj>()->text(), "mine");
  std::string table = report->AsTable(), csv = report->AsCSV();
  ICHECK(table.find("float32[2, 3]") != std::string::npos && table.find("Number of threads: ") != std::string::npos);
  ICHECK(table.find("2.50") != std::string::npos) << table;
  ICHECK_EQ(std::count(table.begin(), table.end(), '\n'), 2 + 2 + 1 + 2 + 3 + 2);
  ICHECK(csv.find("\"inner, quoted\",") != std::string::npos && std::count(csv.begin(), csv.end(), '\n') == 5);
  Report again = Report::FromJSON(report->AsJSON());
  ICHECK_EQ(again->AsJSON(), report->AsJSON());
  ICHECK_EQ(again->AsTable(false, false, false), report->AsTable(false, false, false));
}

void ProfileModel(const std::string& graph, const std::string& library) {
  std::ifstream file(graph);
  std::string json{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  Module lib = Module::LoadFromFile(library);
  Module executor = (*Registry::Get("tvm.graph_executor_debug.create"))(json, lib, int{kDLCPU}, 0);
  Report report = executor.GetFunction("profile")(Array<MetricCollector>{MetricCollector(make_object<CounterNode>())}).AsObjectRef<Report>();
  std::printf("%zu calls\n", report->calls.size());
  Report::FromJSON(executor.GetFunction("profile_rpc")().operator std::string());
}

int main(int argc, char** argv) {
  MeasureTime();
  ProfileCalls();
  if (argc > 2) ProfileModel(argv[1], argv[2]);
  std::puts("all is well");
}
