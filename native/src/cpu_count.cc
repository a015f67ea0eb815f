// How many threads this process may keep busy.
#include "cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace tvm {
namespace runtime {
namespace {

int AffinityCount() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(CPU_COUNT(&set), 1);
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

// The smallest quota of this process's group and the groups around it.
double CgroupQuota() {
  double smallest = 0;
  auto take = [&](double quota) {
    if (quota > 0 && (smallest == 0 || quota < smallest)) smallest = quota;
  };
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    for (;;) {
      if (controllers.empty()) take(QuotaV2("/sys/fs/cgroup" + path));
      if (controllers.find("cpu") != std::string::npos) take(QuotaV1("/sys/fs/cgroup/cpu" + path));
      if (path.empty() || path == "/") break;
      path = path.substr(0, path.rfind('/'));
    }
  }
  return smallest;
}

int FromEnvironment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::max(std::atoi(text), 0);
}

}  // namespace

int UsableThreads() {
  for (const char* name : {"TVM_NUM_THREADS", "OMP_NUM_THREADS"}) {
    if (int wanted = FromEnvironment(name)) return std::min(wanted, kMaxThreads);
  }
  int count = AffinityCount();
  double quota = CgroupQuota();
  if (quota > 0) count = std::min(count, std::max(static_cast<int>(std::ceil(quota)), 1));
  return std::min(count, kMaxThreads);
}

}  // namespace runtime
}  // namespace tvm
