// Threads that wait for a run to end sleep on one condition, whichever run it is: they are few.
#include <tvm/runtime/registry.h>
#include <tvm/runtime/run_lock.h>

#include <chrono>
#include <condition_variable>

#include "fork.h"

namespace tvm {
namespace runtime {
namespace {

constexpr int kGenerationShift = 40;
constexpr std::chrono::milliseconds kBetweenSignalChecks{50};

std::atomic<uint64_t> num_threads{0};
std::atomic<int> num_waiters{0};
thread_local uint64_t this_thread = 0;
uint64_t survivor = 0;  // the thread that forked, by its number in the parent

struct Waiting {
  std::mutex mutex;
  std::condition_variable woken;
};
Waiting* waiting = new Waiting();

void ForgetOtherThreads() {
  waiting = new Waiting();  // a thread that does not exist here may have held the old one
  num_waiters = 0;
  survivor = this_thread;
}

const bool is_registered = (AfterForkInChild(ForgetOtherThreads), true);

// Whether the owner is a thread of the parent that does not exist in this process.
bool IsGone(uint64_t owner) {
  return owner != 0 && owner >> kGenerationShift != ForkGeneration() && owner != survivor;
}

struct CountedWaiter {
  CountedWaiter() { num_waiters.fetch_add(1); }
  ~CountedWaiter() { num_waiters.fetch_sub(1); }
};

}  // namespace

uint64_t ThisThread() {
  if (this_thread == 0) {
    (void)is_registered;
    this_thread = (uint64_t{ForkGeneration()} << kGenerationShift) | (num_threads.fetch_add(1) + 1);
  }
  return this_thread;
}

void RunLock::Wait(uint64_t me) {
  CountedWaiter counted;
  for (;;) {
    uint64_t owner = 0;
    {
      std::unique_lock<std::mutex> lock(waiting->mutex);
      if (owner_.compare_exchange_strong(owner, me)) return;
      if (IsGone(owner) && owner_.compare_exchange_strong(owner, me)) {
        depth_ = 0;
        return;
      }
      waiting->woken.wait_for(lock, kBetweenSignalChecks);
    }
    EnvCheckSignals();
  }
}

bool RunLock::HasWaiters() { return num_waiters.load() != 0; }

void RunLock::WakeWaiters() {
  std::lock_guard<std::mutex> lock(waiting->mutex);
  waiting->woken.notify_all();
}

}  // namespace runtime
}  // namespace tvm
