// What happens around fork(): the locks of the runtime are taken, and given back on both sides.
#include "fork.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace tvm {
namespace runtime {
namespace {

std::atomic<uint32_t> generation{0};

struct ForkState {
  std::mutex mutex;
  std::vector<ForkMutex*> locks;
  std::vector<void (*)()> callbacks;
  static ForkState& Global() {
    static auto* state = new ForkState();  // outlives every static destructor
    return *state;
  }
};

// Holds all of them or none: their order does not matter.
bool TryLockAll(ForkState* state) {
  for (auto it = state->locks.begin(); it != state->locks.end(); ++it) {
    if ((*it)->try_lock()) continue;
    while (it != state->locks.begin()) (*--it)->unlock();
    return false;
  }
  return true;
}

void LockAll() {
  ForkState& state = ForkState::Global();
  state.mutex.lock();
  while (!TryLockAll(&state)) {
    state.mutex.unlock();
    std::this_thread::yield();
    state.mutex.lock();
  }
}

void UnlockAll() {
  ForkState& state = ForkState::Global();
  for (ForkMutex* lock : state.locks) lock->unlock();
  state.mutex.unlock();
}

void ContinueInChild() {
  generation.fetch_add(1);
  UnlockAll();
  for (auto* callback : ForkState::Global().callbacks) callback();
}

const int is_registered = pthread_atfork(LockAll, UnlockAll, ContinueInChild);

}  // namespace

ForkMutex::ForkMutex() {
  (void)is_registered;
  ForkState& state = ForkState::Global();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.locks.push_back(this);
}

ForkMutex::~ForkMutex() {
  ForkState& state = ForkState::Global();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.locks.erase(std::find(state.locks.begin(), state.locks.end(), this));
}

uint32_t ForkGeneration() { return generation.load(std::memory_order_relaxed); }

void AfterForkInChild(void (*callback)()) {
  ForkState& state = ForkState::Global();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.callbacks.push_back(callback);
}

}  // namespace runtime
}  // namespace tvm
