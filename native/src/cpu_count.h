// How many threads this process may keep busy.
#ifndef TVM_SRC_CPU_COUNT_H_
#define TVM_SRC_CPU_COUNT_H_

namespace tvm {
namespace runtime {

constexpr int kMaxThreads = 512;

// TVM_NUM_THREADS (or OMP_NUM_THREADS) if set, else the CPUs of the affinity mask within the cgroup's quota.
int UsableThreads();

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_CPU_COUNT_H_
