// Locks that fork() leaves usable: the child has the thread that forked, and no other.
#ifndef TVM_SRC_FORK_H_
#define TVM_SRC_FORK_H_

#include <cstdint>
#include <mutex>

namespace tvm {
namespace runtime {

// A mutex for short sections over shared tables. fork() waits until all of these are free, so that the child finds the
// tables whole and the mutexes open. Nobody may wait for Python's lock while holding one.
class ForkMutex {
 public:
  ForkMutex();
  ~ForkMutex();
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// How many forks lie between this process and the one that loaded the runtime.
uint32_t ForkGeneration();

// Called in each child, once its locks are open.
void AfterForkInChild(void (*callback)());

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_FORK_H_
