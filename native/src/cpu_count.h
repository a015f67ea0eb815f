// How many threads this process may keep busy, and on which processors.
#ifndef TVM_SRC_CPU_COUNT_H_
#define TVM_SRC_CPU_COUNT_H_

#include <pthread.h>
#include <tvm/runtime/threading_backend.h>

#include <string>
#include <vector>

namespace tvm {
namespace runtime {

constexpr int kMaxThreads = 512;

using CpuSet = std::vector<int>;

// What SetMaxConcurrency was given, else TVM_NUM_THREADS (or OMP_NUM_THREADS) if set, else UsableCpus.
int UsableThreads();
// The size of the affinity mask, within the control group's quota.
int UsableCpus();
// The smallest quota, in CPUs, of the groups that `membership` (a file as /proc/self/cgroup) names under the folder
// `root`, and of the groups around them; 0 if there is none.
double CgroupQuota(const std::string& membership, const std::string& root);

// The affinity mask that this process had before SetAffinity.
CpuSet AllowedCpus();
// The fastest of them, or the slowest; all of them where the processors are alike.
CpuSet CpusOfKind(bool fastest);
// "0,2,3"; raises unless all of them are allowed.
CpuSet ParseCpus(const std::string& text);
CpuSet CheckedCpus(CpuSet cpus);
// Where threads 0, 1, ... run; they repeat if there are more. Empty: where the system likes.
std::vector<CpuSet> PlacesOf(threading::ThreadGroup::AffinityMode mode, const CpuSet& cpus);
// How many threads the places are enough for.
int ThreadsFor(const std::vector<CpuSet>& places);
void SetAffinity(pthread_t thread, const CpuSet& cpus);

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_CPU_COUNT_H_
