// Counters of the Linux kernel: cycles, instructions, cache misses ... of all threads of this process.
#include <tvm/runtime/registry.h>

#if defined(__linux__)
#include <dirent.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

namespace tvm {
namespace runtime {
namespace {

#if defined(__linux__)
struct EventKind {
  const char* name;
  uint32_t type;
  uint64_t config;
  bool is_of_kernel{false};  // it happens there alone
};

constexpr uint64_t Cache(uint64_t cache, uint64_t operation, uint64_t result) { return cache | operation << 8 | result << 16; }

constexpr EventKind kEvents[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"l1-dcache-loads", PERF_TYPE_HW_CACHE, Cache(PERF_COUNT_HW_CACHE_L1D, PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
    {"l1-dcache-load-misses", PERF_TYPE_HW_CACHE, Cache(PERF_COUNT_HW_CACHE_L1D, PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS)},
    {"llc-loads", PERF_TYPE_HW_CACHE, Cache(PERF_COUNT_HW_CACHE_LL, PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
    {"llc-load-misses", PERF_TYPE_HW_CACHE, Cache(PERF_COUNT_HW_CACHE_LL, PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS)},
    {"dtlb-load-misses", PERF_TYPE_HW_CACHE, Cache(PERF_COUNT_HW_CACHE_DTLB, PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS)},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, true},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, true},
};

std::vector<int> ThreadsOfThisProcess() {
  std::vector<int> threads;
  DIR* folder = opendir("/proc/self/task");
  if (folder == nullptr) ThrowError("perf events need the threads in /proc/self/task: ", std::strerror(errno));
  while (dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') threads.push_back(std::atoi(entry->d_name));
  }
  closedir(folder);
  return threads;
}

const EventKind& Named(const std::string& name) {
  std::string known;
  for (const EventKind& kind : kEvents) {
    if (name == kind.name) return kind;
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
  }
  ThrowValueError("there is no perf event '", name, "'; known are ", known);
}

[[noreturn]] void ThrowDenied(const EventKind& kind, int error) {
  const std::string name = kind.name;
  if (error == EACCES || error == EPERM) {
    std::string level = "unknown";
    std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> level;
    ThrowError("the kernel does not permit to count '", name, "': kernel.perf_event_paranoid is ", level, ", at most ",
               kind.is_of_kernel ? 1 : 2, " is needed");
  }
  if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV || error == ENOSYS) {
    ThrowError("this machine cannot count '", name, "': it has no such counter, as most virtual machines; task-clock and page-faults are always there");
  }
  ThrowError("cannot count '", name, "': ", std::strerror(error));
}

class PerfEvents {
 public:
  explicit PerfEvents(const std::vector<std::string>& names) {
    for (const std::string& name : names) Open(Named(name));
  }
  PerfEvents(const PerfEvents&) = delete;
  PerfEvents& operator=(const PerfEvents&) = delete;
  ~PerfEvents() { Close(); }

  // What each event has counted so far, in all threads.
  std::vector<int64_t> Read() const {
    std::vector<int64_t> totals;
    for (const std::vector<int>& of_threads : files_) {
      int64_t total = 0;
      for (int file : of_threads) {
        int64_t count = 0;
        if (read(file, &count, sizeof(count)) == sizeof(count)) total += count;
      }
      totals.push_back(total);
    }
    return totals;
  }

 private:
  static int OpenFile(const EventKind& kind, int thread, bool with_kernel) {
    perf_event_attr attributes{};
    attributes.size = sizeof(attributes);
    attributes.type = kind.type;
    attributes.config = kind.config;
    attributes.exclude_kernel = !with_kernel;
    attributes.exclude_hv = 1;
    return static_cast<int>(syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
  }

  void Open(const EventKind& kind) {
    files_.emplace_back();
    for (int thread : ThreadsOfThisProcess()) {
      int file = OpenFile(kind, thread, kind.type == PERF_TYPE_SOFTWARE);
      // ordinary users may count what their own code causes
      if (file < 0 && (errno == EACCES || errno == EPERM) && !kind.is_of_kernel) file = OpenFile(kind, thread, false);
      if (file >= 0) {
        files_.back().push_back(file);
      } else if (errno != ESRCH) {  // the thread may have ended meanwhile
        int error = errno;
        Close();
        ThrowDenied(kind, error);
      }
    }
  }

  void Close() {
    for (const std::vector<int>& of_threads : files_) {
      for (int file : of_threads) close(file);
    }
    files_.clear();
  }

  std::vector<std::vector<int>> files_;
};
#else
class PerfEvents {
 public:
  explicit PerfEvents(const std::vector<std::string>&) { ThrowError("perf events are counted on Linux only"); }
  std::vector<int64_t> Read() const { return {}; }
};
#endif

}  // namespace

// (name, ...) -> a function that returns the counts so far, as bytes of int64
TVM_REGISTER_GLOBAL("runtime.profiling.PerfEvents").set_body([](TVMArgs args, TVMRetValue* rv) {
  std::vector<std::string> names;
  for (int i = 0; i < args.num_args; ++i) names.push_back(args[i]);
  auto events = std::make_shared<PerfEvents>(names);
  *rv = PackedFunc([events](TVMArgs, TVMRetValue* counts) {
    std::vector<int64_t> totals = events->Read();
    *counts = TVMByteArray{reinterpret_cast<const char*>(totals.data()), totals.size() * sizeof(int64_t)};
  });
});

}  // namespace runtime
}  // namespace tvm
