// Measured times of functions.
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/profiling.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <vector>

#include "arguments.h"
#include "interrupt.h"
#include "rpc/module.h"

namespace tvm {
namespace runtime {
namespace {

using Clock = std::chrono::steady_clock;

struct TimingOptions {
  DLDevice device;
  int number;
  int repeat;
  int min_repeat_ms;
  int limit_zero_time_iterations;
  int cooldown_interval_ms;
  int repeats_to_cooldown;
  int64_t cache_flush_bytes;
  PackedFunc preprocess;
};

class Evaluator {
 public:
  Evaluator(PackedFunc func, TimingOptions options) : func_(std::move(func)), options_(std::move(options)) {
    if (!func_.defined()) ThrowTypeError("time_evaluator needs a function, got None");
    if (options_.number < 1) ThrowValueError("time_evaluator needs number >= 1, got ", options_.number);
    if (options_.repeat < 1) ThrowValueError("time_evaluator needs repeat >= 1, got ", options_.repeat);
    flushed_.resize(std::max<int64_t>(options_.cache_flush_bytes, 0));
  }

  void operator()(TVMArgs args, TVMRetValue* rv) {
    TVMRetValue ignored;
    auto start = Clock::now();
    func_.CallPacked(args, &ignored);  // warm caches and thread pools
    Synchronize();
    calls_between_polls_ = std::max<int64_t>(kPollInterval / std::max(Clock::now() - start, Clock::duration(1)), 1);
    std::vector<double> seconds;
    for (int i = 0; i < options_.repeat; ++i) {
      if (options_.preprocess.defined()) options_.preprocess.CallPacked(args, &ignored);
      seconds.push_back(OneRepeat(args));
      bool rest = options_.cooldown_interval_ms > 0 && options_.repeats_to_cooldown > 0 &&
                  (i + 1) % options_.repeats_to_cooldown == 0;
      if (rest) SleepUnlessInterrupted(options_.cooldown_interval_ms);
    }
    *rv = TVMByteArray{reinterpret_cast<const char*>(seconds.data()), seconds.size() * sizeof(double)};
  }

 private:
  // Seconds a call; `number` grows until a repeat takes min_repeat_ms, and stays so for the next ones.
  double OneRepeat(const TVMArgs& args) {
    double elapsed_ms = 0;
    int zero_times = 0;
    for (;;) {
      FlushCache();
      auto start = Clock::now();
      CallRepeatedly(args);
      Synchronize();
      elapsed_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      if (elapsed_ms == 0) ++zero_times;
      if (elapsed_ms >= options_.min_repeat_ms || zero_times > options_.limit_zero_time_iterations) break;
      double growth = elapsed_ms > 0 ? std::max(options_.min_repeat_ms / elapsed_ms + 1, 1.618) : 2.0;
      options_.number = static_cast<int>(std::min(options_.number * growth, 1e9));
    }
    return elapsed_ms / 1000 / options_.number;
  }

  void CallRepeatedly(const TVMArgs& args) {
    TVMRetValue ignored;
    for (int64_t left = options_.number; left > 0; left -= calls_between_polls_) {
      PollSignals();
      for (int64_t i = std::min(left, calls_between_polls_); i > 0; --i) func_.CallPacked(args, &ignored);
    }
  }

  void FlushCache() {
    for (char& byte : flushed_) byte = static_cast<char>(byte + 1);
    if (!flushed_.empty()) asm volatile("" : : "r"(flushed_.data()) : "memory");
  }

  void Synchronize() { DeviceAPI::Get(options_.device)->StreamSync(options_.device, nullptr); }

  static constexpr Clock::duration kPollInterval = std::chrono::milliseconds(20);

  PackedFunc func_;
  TimingOptions options_;
  int64_t calls_between_polls_{1};
  std::vector<char> flushed_;
};

void FlushArguments(TVMArgs args, int first) {
#if defined(__x86_64__)
  for (int i = first; i < args.num_args; ++i) {
    const DLTensor& tensor = TensorIn(args[i]);
    char* begin = static_cast<char*>(tensor.data) + tensor.byte_offset;
    size_t nbytes = DataBytes(tensor);
    for (size_t at = 0; at < nbytes; at += 64) __builtin_ia32_clflush(begin + at);
  }
#endif
}

// number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown and, if given,
// cache_flush_bytes and the name of the preprocessing function
TimingOptions ReadOptions(DLDevice device, TVMArgs args, int first) {
  TimingOptions options{};
  options.device = device;
  options.number = args[first];
  options.repeat = args[first + 1];
  options.min_repeat_ms = args[first + 2];
  options.limit_zero_time_iterations = args[first + 3];
  options.cooldown_interval_ms = args[first + 4];
  options.repeats_to_cooldown = args[first + 5];
  if (args.num_args <= first + 6) return options;
  options.cache_flush_bytes = args[first + 6];
  std::string preprocess = args[first + 7];
  if (preprocess.empty()) return options;
  options.preprocess = Registry::Find(preprocess);
  if (!options.preprocess.defined()) ThrowValueError("time_evaluator: f_preproc '", preprocess, "' is not registered");
  return options;
}

}  // namespace

PackedFunc profiling::WrapTimeEvaluator(PackedFunc func, Device dev, int number, int repeat, int min_repeat_ms,
                                        int limit_zero_time_iterations, int cooldown_interval_ms, int repeats_to_cooldown,
                                        int cache_flush_bytes, PackedFunc f_preproc) {
  TimingOptions options{dev, number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms,
                        repeats_to_cooldown, cache_flush_bytes, std::move(f_preproc)};
  return PackedFunc(Evaluator(std::move(func), std::move(options)));
}

// (module or None, name, device_type, device_id, options...)
TVM_REGISTER_GLOBAL("runtime.RPCTimeEvaluator").set_body([](TVMArgs args, TVMRetValue* rv) {
  Module module = args[0];
  std::string name = args[1];
  if (rpc::IsRemote(module)) {
    *rv = rpc::RemoteTimeEvaluator(module, args);
    return;
  }
  if (module.defined() && name.empty()) name = symbol::tvm_module_main;
  PackedFunc func = module.defined() ? module.GetFunction(name, true) : Registry::Find(name);
  if (!func.defined()) ThrowValueError("time_evaluator: there is no function '", name, "'");
  DLDevice device{static_cast<DLDeviceType>(int(args[2])), int(args[3])};
  *rv = PackedFunc(Evaluator(func, ReadOptions(device, args, 4)));
});

// (function, device, options...)
TVM_REGISTER_GLOBAL("runtime.TimeFunction").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = PackedFunc(Evaluator(args[0], ReadOptions(args[1], args, 2)));
});

TVM_REGISTER_GLOBAL("cache_flush_cpu_non_first_arg").set_body([](TVMArgs args, TVMRetValue*) { FlushArguments(args, 1); });

}  // namespace runtime
}  // namespace tvm
