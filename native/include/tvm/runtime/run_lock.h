// The lock of what serves one run at a time.
//
//     std::lock_guard<RunLock> lock(lock_);
#ifndef TVM_RUNTIME_RUN_LOCK_H_
#define TVM_RUNTIME_RUN_LOCK_H_

#include <tvm/runtime/c_runtime_api.h>

#include <atomic>
#include <cstdint>

namespace tvm {
namespace runtime {

// Names the calling thread; no other thread of this process, nor one of its parents, ever has the same number.
TVM_DLL uint64_t ThisThread();

// A lock that its thread may take again, held for as long as a run takes. Ctrl-C ends the wait for it. In a child of
// fork(), what other threads of the parent held is free.
class RunLock {
 public:
  void lock() {
    const uint64_t me = ThisThread();
    if (owner_.load(std::memory_order_relaxed) != me) {
      uint64_t nobody = 0;
      if (!owner_.compare_exchange_strong(nobody, me)) Wait(me);
    }
    ++depth_;
  }
  void unlock() {
    if (--depth_ > 0) return;
    owner_.store(0);
    if (HasWaiters()) WakeWaiters();
  }

 private:
  TVM_DLL void Wait(uint64_t me);
  TVM_DLL static bool HasWaiters();
  TVM_DLL static void WakeWaiters();

  std::atomic<uint64_t> owner_{0};
  int depth_{0};
};

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_RUN_LOCK_H_
