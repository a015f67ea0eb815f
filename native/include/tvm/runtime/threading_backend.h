// Threads of one's own beside the pool, and how many the pool has.
#ifndef TVM_RUNTIME_THREADING_BACKEND_H_
#define TVM_RUNTIME_THREADING_BACKEND_H_

#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/error.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

namespace tvm {
namespace runtime {
namespace threading {

// Threads that each call a function with their number.
class TVM_DLL ThreadGroup {
 public:
  // Which processors threads run on: the fast ones, the slow ones, any, one of a list for each thread, all of a list.
  enum AffinityMode : int {
    kBig = 1,
    kAny = 0,
    kLittle = -1,
    kSpecifyOneCorePerThread = -2,
    kSpecifyThreadShareAllCore = -3,
  };

  // With `exclude_worker0` the caller is worker 0, and calls the function itself.
  ThreadGroup(int num_workers, std::function<void(int)> worker_callback, bool exclude_worker0 = false);
  ~ThreadGroup();  // joins
  void Join();
  // Moves the threads to processors; the number of threads that these are enough for, at most `nthreads` unless 0.
  int Configure(AffinityMode mode, int nthreads, bool exclude_worker0, std::vector<unsigned int> cpus = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TVM_DLL void Yield();
// How many threads the pool has unless it is configured.
TVM_DLL int MaxConcurrency();
// Sets that for the pools to come; 0 for what the machine and the environment say.
TVM_DLL void SetMaxConcurrency(int value);
// Gives the pool back MaxConcurrency threads, on any processors.
TVM_DLL void ResetThreadPool();
// As the global function runtime.config_threadpool.
TVM_DLL void Configure(ThreadGroup::AffinityMode mode, int nthreads, std::vector<unsigned int> cpus, int max_concurrency = 0);
// How many threads the pool has.
TVM_DLL int32_t NumThreads();

}  // namespace threading

// Calls `body` with each number from `begin` to before `end`, on the pool's threads. What a call throws is thrown here.
template <class F>
void parallel_for_with_threading_backend(F body, int64_t begin, int64_t end) {
  struct Loop {
    F* body;
    int64_t begin;
    int64_t end;
  } loop{&body, begin, end};
  auto run_part = [](int task, TVMParallelGroupEnv* env, void* data) {
    TVM_API_BEGIN();
    const auto& loop = *static_cast<Loop*>(data);
    const int64_t count = loop.end - loop.begin;
    const int64_t step = (count + env->num_task - 1) / env->num_task;
    const int64_t first = loop.begin + std::min(task * step, count);
    for (int64_t i = first; i < std::min(first + step, loop.end); ++i) (*loop.body)(i);
    TVM_API_END();
  };
  if (end > begin && TVMBackendParallelLaunch(run_part, &loop, 0) != 0) ThrowLastError();
}

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_THREADING_BACKEND_H_
