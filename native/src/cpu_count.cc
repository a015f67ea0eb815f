// How many threads this process may keep busy, and on which processors.
#include "cpu_count.h"

#include <sched.h>
#include <tvm/runtime/error.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <numeric>
#include <thread>

#include "fork.h"

namespace tvm {
namespace runtime {
using threading::ThreadGroup;
using AffinityMode = ThreadGroup::AffinityMode;

namespace {

#if defined(__linux__)
CpuSet AffinityOfThisThread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CpuSet cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// The error, or 0.
int Bind(pthread_t thread, const CpuSet& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) CPU_SET(cpu, &set);
  return pthread_setaffinity_np(thread, sizeof(set), &set);
}
#else  // macOS binds no threads
CpuSet AffinityOfThisThread() {
  CpuSet cpus(std::max(std::thread::hardware_concurrency(), 1u));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

int Bind(pthread_t, const CpuSet& cpus) { return cpus.size() == AffinityOfThisThread().size() ? 0 : ENOTSUP; }
#endif

// What the calling thread may run on, once SetAffinity has begun to change that.
struct OriginalAffinity {
  ForkMutex mutex;
  CpuSet cpus;
  static OriginalAffinity& Global() {
    static auto* original = new OriginalAffinity();
    return *original;
  }
};

// In kHz; 0 if unknown.
double HighestFrequency(int cpu) {
  double frequency = 0;
  std::ifstream("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/cpuinfo_max_freq") >> frequency;
  return frequency;
}

// The quota of one version-2 group, or 0 if it has none.
double QuotaV2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  return std::strtod(quota.c_str(), nullptr) / period;
}

double QuotaV1(const std::string& folder) {
  double quota = 0;
  double period = 0;
  std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
  std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  return quota > 0 && period > 0 ? quota / period : 0;
}

std::atomic<int> max_concurrency{0};

int FromEnvironment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::max(std::atoi(text), 0);
}

}  // namespace

double CgroupQuota(const std::string& membership, const std::string& root) {
  double smallest = 0;
  auto take = [&](double quota) {
    if (quota > 0 && (smallest == 0 || quota < smallest)) smallest = quota;
  };
  std::ifstream groups(membership);
  std::string line;
  while (std::getline(groups, line)) {
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    for (;;) {
      if (controllers.empty()) take(QuotaV2(root + path));
      if (controllers.find("cpu") != std::string::npos) take(QuotaV1(root + "/cpu" + path));
      if (path.empty() || path == "/") break;
      path = path.substr(0, path.rfind('/'));
    }
  }
  return smallest;
}

int UsableCpus() {
  int count = std::max(static_cast<int>(AllowedCpus().size()), 1);
  double quota = CgroupQuota("/proc/self/cgroup", "/sys/fs/cgroup");
  if (quota > 0) count = std::min(count, std::max(static_cast<int>(std::ceil(quota)), 1));
  return count;
}

int UsableThreads() {
  if (int wanted = max_concurrency) return wanted;
  for (const char* name : {"TVM_NUM_THREADS", "OMP_NUM_THREADS"}) {
    if (int wanted = FromEnvironment(name)) return std::min(wanted, kMaxThreads);
  }
  return std::min(UsableCpus(), kMaxThreads);
}

CpuSet AllowedCpus() {
  OriginalAffinity& original = OriginalAffinity::Global();
  std::lock_guard<ForkMutex> lock(original.mutex);
  return original.cpus.empty() ? AffinityOfThisThread() : original.cpus;
}

CpuSet CpusOfKind(bool fastest) {
  CpuSet allowed = AllowedCpus();
  double highest = 0;
  double lowest = HighestFrequency(allowed[0]);
  for (int cpu : allowed) {
    highest = std::max(highest, HighestFrequency(cpu));
    lowest = std::min(lowest, HighestFrequency(cpu));
  }
  CpuSet chosen;
  for (int cpu : allowed) {
    // cores of one kind differ by a few per cent
    double frequency = HighestFrequency(cpu);
    if (fastest ? frequency >= 0.9 * highest : frequency <= 1.1 * lowest) chosen.push_back(cpu);
  }
  return chosen;
}

CpuSet CheckedCpus(CpuSet cpus) {
  CpuSet allowed = AllowedCpus();
  for (int cpu : cpus) {
    if (std::find(allowed.begin(), allowed.end(), cpu) == allowed.end()) {
      ThrowValueError("CPU ", cpu, " is not among those that this process may use");
    }
  }
  return cpus;
}

CpuSet ParseCpus(const std::string& text) {
  CpuSet cpus;
  const char* rest = text.c_str();
  for (;;) {
    char* end = nullptr;
    long cpu = std::strtol(rest, &end, 10);
    if (end == rest || (*end != ',' && *end != '\0')) ThrowValueError("CPUs must be numbers such as 0,2,3, got '", text, "'");
    cpus.push_back(static_cast<int>(cpu));
    if (*end == '\0') return CheckedCpus(std::move(cpus));
    rest = end + 1;
  }
}

std::vector<CpuSet> PlacesOf(AffinityMode mode, const CpuSet& cpus) {
  if (mode == ThreadGroup::kSpecifyOneCorePerThread || mode == ThreadGroup::kSpecifyThreadShareAllCore) {
    if (cpus.empty()) ThrowValueError("config_threadpool: mode ", int(mode), " needs a list of CPUs");
    if (mode == ThreadGroup::kSpecifyThreadShareAllCore) return {cpus};
    std::vector<CpuSet> places;
    for (int cpu : cpus) places.push_back({cpu});
    return places;
  }
  if (!cpus.empty()) ThrowValueError("config_threadpool: a list of CPUs needs mode -2 or -3, got ", int(mode));
  if (mode == ThreadGroup::kAny) return {};
  if (mode != ThreadGroup::kBig && mode != ThreadGroup::kLittle) {
    ThrowValueError("config_threadpool: mode must be 1 (big cores), 0 (any), -1 (little cores), -2 (one CPU a thread) or ",
                    "-3 (threads share CPUs), got ", int(mode));
  }
  return {CpusOfKind(mode == ThreadGroup::kBig)};
}

int ThreadsFor(const std::vector<CpuSet>& places) {
  int count = UsableThreads();
  return places.empty() ? count : std::min(count, static_cast<int>(std::max(places.size(), places[0].size())));
}

namespace threading {

int MaxConcurrency() { return UsableThreads(); }

void SetMaxConcurrency(int value) {
  if (value < 0 || value > kMaxThreads) ThrowValueError("SetMaxConcurrency needs between 0 and ", kMaxThreads, " threads, got ", value);
  max_concurrency = value;
}

}  // namespace threading

TVM_REGISTER_GLOBAL("tvm.runtime.threading.set_current_thread_affinity").set_body_typed([](ShapeTuple cpus) {
  SetAffinity(pthread_self(), CheckedCpus({cpus.begin(), cpus.end()}));
});

void SetAffinity(pthread_t thread, const CpuSet& cpus) {
  OriginalAffinity& original = OriginalAffinity::Global();
  std::lock_guard<ForkMutex> lock(original.mutex);
  if (original.cpus.empty()) original.cpus = AffinityOfThisThread();
  int rc = Bind(thread, cpus);
  if (rc != 0) ThrowError("cannot set the affinity of a thread: error ", rc);
}

}  // namespace runtime
}  // namespace tvm
