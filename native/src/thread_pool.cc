// Parallel loops of compiled code.
//
// A job has a part for each worker, the calling thread being worker 0. A launch opens the parts under the job's number;
// a worker takes the part that is its own. The caller, done with its part, takes those that nobody has started: on a
// busy machine it does not wait for a thread that does not run. Workers spin for a while after a job, since the next
// operator usually follows at once, and then sleep. A launch inside a job, or while another thread holds the pool, runs
// on the calling thread alone; so do launches for a while when waiting for the others costs more than their help saves,
// as it does when other programs keep the processors busy.
#include <pthread.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>

#include "cpu_count.h"

namespace tvm {
namespace runtime {
namespace {

constexpr int kDefaultSpin = 20000;  // a pause takes 10 to 50 ns: 0.2 to 1 ms
constexpr int kCacheLine = 64;

inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int SpinCount() {
  const char* text = std::getenv("TVM_THREAD_POOL_SPIN_COUNT");
  return text == nullptr ? kDefaultSpin : std::atoi(text);
}

thread_local bool inside_job = false;

struct alignas(kCacheLine) Counter {
  std::atomic<int32_t> value{0};
};

// The rendezvous of a job's tasks: each counts the barriers it has reached.
struct Barrier {
  explicit Barrier(int num_task) : arrived(new Counter[num_task]) {}
  std::unique_ptr<Counter[]> arrived;
};

// The number of the job whose part of this worker nobody has taken yet; 0 if there is none.
struct alignas(kCacheLine) Part {
  std::atomic<uint32_t> open{0};
};

struct Job {
  FTVMParallelLambda lambda;
  void* data;
  int num_task;
  TVMParallelGroupEnv env;
};

class FirstError {
 public:
  void Take() {  // from the calling thread's last error
    std::lock_guard<std::mutex> lock(mutex_);
    if (failed_.exchange(true)) return;
    message_ = TVMGetLastError();
    foreign_ = ObjectPtr<Object>::Adopt(static_cast<Object*>(TVMTakeLastForeignError()));
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  int Raise() {
    TVMAPISetLastForeignError(message_.c_str(), foreign_.get());
    foreign_ = nullptr;
    failed_ = false;
    return -1;
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> failed_{false};
  std::string message_;
  ObjectPtr<Object> foreign_;
};

// Decides whether the other threads are of use, from how long the caller works and then waits for them.
class Profit {
 public:
  // Whether the next launch should go to all threads. Asked once a launch.
  bool WorthSharing() {
    if (alone_left_ == 0) return true;
    if (--alone_left_ == 0) working_ = waiting_ = launches_ = 0;
    return false;
  }

  void Record(int64_t working, int64_t waiting) {
    working_ += working - working_ / kMemory;
    waiting_ += waiting - waiting_ / kMemory;
    if (++launches_ < kMemory) return;
    if (waiting_ > working_) {  // alone, the caller would have been done by now
      alone_left_ = alone_next_;
      alone_next_ = std::min(alone_next_ * 2, kLongestAlone);
    } else if (launches_ > 8 * kMemory) {
      alone_next_ = kShortestAlone;
    }
  }

 private:
  static constexpr int kMemory = 8;
  static constexpr int kShortestAlone = 32;
  static constexpr int kLongestAlone = 1024;
  int64_t working_{0};
  int64_t waiting_{0};
  int launches_{0};
  int alone_left_{0};
  int alone_next_{kShortestAlone};
};

int64_t Nanoseconds() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

class ThreadPool {
 public:
  explicit ThreadPool(int num_workers)
      : num_workers_(num_workers), spin_(SpinCount()), parts_(new Part[num_workers]) {
    for (int i = 1; i < num_workers_; ++i) std::thread([this, i] { Work(i); }).detach();
  }

  int num_workers() const { return num_workers_; }
  std::mutex& launch_mutex() { return launch_mutex_; }
  bool retired() const { return retired_.load(); }

  // For this and Launch, the caller holds launch_mutex.
  bool WorthSharing() { return profit_.WorthSharing(); }

  int Launch(FTVMParallelLambda lambda, void* data, int num_task) {
    Barrier barrier(num_task);
    // more tasks than workers cannot all be at a barrier together
    job_ = Job{lambda, data, num_task, {num_task <= num_workers_ ? &barrier : nullptr, num_task}};
    if (++job_number_ == 0) job_number_ = 1;
    const uint32_t number = job_number_;
    const int num_parts = std::min(num_task, num_workers_);
    const int64_t start = Nanoseconds();
    unfinished_.store(num_parts, std::memory_order_relaxed);
    for (int i = 1; i < num_parts; ++i) parts_[i].open.store(number, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0) {
      std::lock_guard<std::mutex> lock(sleep_mutex_);
      wake_.notify_all();
    }
    Run(0);
    for (int i = 1; i < num_parts; ++i) {
      if (Take(i, number)) Run(i);
    }
    const int64_t end = Nanoseconds();
    WaitForParts();
    profit_.Record(end - start, Nanoseconds() - end);
    return error_.failed() ? error_.Raise() : 0;
  }

  // Asks the workers to leave; they free nothing that others may still read.
  void Retire() {
    retired_.store(true);
    std::lock_guard<std::mutex> lock(sleep_mutex_);
    wake_.notify_all();
  }

 private:
  void Work(int worker) {
    inside_job = true;
    for (;;) {
      uint32_t number = WaitForPart(worker);
      if (retired_.load()) return;
      if (number != 0 && Take(worker, number)) Run(worker);
    }
  }

  // Only who takes a part may read the job: the caller waits for the parts that others took.
  bool Take(int worker, uint32_t number) {
    return parts_[worker].open.compare_exchange_strong(number, 0, std::memory_order_acq_rel);
  }

  uint32_t WaitForPart(int worker) {
    std::atomic<uint32_t>& open = parts_[worker].open;
    for (int i = 0; i < spin_; ++i) {
      uint32_t number = open.load(std::memory_order_acquire);
      if (number != 0 || retired_.load(std::memory_order_relaxed)) return number;
      Pause();
    }
    std::unique_lock<std::mutex> lock(sleep_mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    wake_.wait(lock, [&] { return open.load(std::memory_order_seq_cst) != 0 || retired_.load(); });
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    return open.load(std::memory_order_acquire);
  }

  void WaitForParts() {
    for (int i = 0; i < spin_; ++i) {
      if (unfinished_.load(std::memory_order_acquire) == 0) return;
      Pause();
    }
    std::unique_lock<std::mutex> lock(sleep_mutex_);
    caller_sleeps_.store(true, std::memory_order_seq_cst);
    done_.wait(lock, [&] { return unfinished_.load(std::memory_order_seq_cst) == 0; });
    caller_sleeps_.store(false, std::memory_order_seq_cst);
  }

  void Run(int worker) {
    bool outer = inside_job;
    inside_job = true;
    for (int task = worker; task < job_.num_task; task += num_workers_) {
      if (job_.lambda(task, &job_.env, job_.data) != 0) error_.Take();
    }
    inside_job = outer;
    if (unfinished_.fetch_sub(1, std::memory_order_seq_cst) == 1 && caller_sleeps_.load(std::memory_order_seq_cst)) {
      std::lock_guard<std::mutex> lock(sleep_mutex_);
      done_.notify_one();
    }
  }

  const int num_workers_;
  const int spin_;
  std::mutex launch_mutex_;
  Job job_{};
  FirstError error_;
  Profit profit_;
  std::unique_ptr<Part[]> parts_;
  uint32_t job_number_{0};
  alignas(kCacheLine) std::atomic<int> unfinished_{0};
  alignas(kCacheLine) std::atomic<int> sleepers_{0};
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<bool> retired_{false};
  std::mutex sleep_mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
};

// Pools are never freed: their threads may outlive the program's static objects, and after fork() the child has a
// pool whose threads do not exist, so it makes a new one.
std::atomic<ThreadPool*> current_pool{nullptr};
std::mutex* pool_mutex = new std::mutex();

void ForgetPoolInChild() {
  current_pool.store(nullptr);
  pool_mutex = new std::mutex();
  inside_job = false;
}

ThreadPool* CurrentPool() {
  if (ThreadPool* pool = current_pool.load(std::memory_order_acquire)) return pool;
  std::lock_guard<std::mutex> lock(*pool_mutex);
  ThreadPool* pool = current_pool.load();
  if (pool == nullptr) {
    static std::once_flag at_fork;
    std::call_once(at_fork, [] { pthread_atfork(nullptr, nullptr, ForgetPoolInChild); });
    pool = new ThreadPool(UsableThreads());
    current_pool.store(pool, std::memory_order_release);
  }
  return pool;
}

void ResizePool(int num_workers) {
  ThreadPool* old = CurrentPool();
  if (num_workers == old->num_workers()) return;
  std::lock_guard<std::mutex> launches(old->launch_mutex());
  current_pool.store(new ThreadPool(num_workers), std::memory_order_release);
  old->Retire();
}

int RunAlone(FTVMParallelLambda lambda, void* data, int num_task) {
  TVMParallelGroupEnv env{nullptr, std::max(num_task, 1)};
  bool outer = inside_job;
  inside_job = true;
  int rc = 0;
  for (int task = 0; task < env.num_task && rc == 0; ++task) rc = lambda(task, &env, data);
  inside_job = outer;
  return rc;
}

// (mode, number of threads); the mode, which kind of core to prefer, has no meaning here
TVM_REGISTER_GLOBAL("runtime.config_threadpool").set_body([](TVMArgs args, TVMRetValue*) {
  int wanted = args.num_args > 1 ? int(args[1]) : 0;
  ResizePool(wanted > 0 ? std::min(wanted, kMaxThreads) : UsableThreads());
});

TVM_REGISTER_GLOBAL("runtime.NumThreads").set_body_typed([] { return CurrentPool()->num_workers(); });

}  // namespace
}  // namespace runtime
}  // namespace tvm

using namespace tvm::runtime;

int TVMBackendParallelLaunch(FTVMParallelLambda flambda, void* cdata, int num_task) {
  TVM_API_BEGIN();
  if (inside_job) return RunAlone(flambda, cdata, num_task);
  ThreadPool* pool = CurrentPool();
  int tasks = num_task > 0 ? num_task : pool->num_workers();
  if (tasks == 1 || pool->num_workers() == 1) return RunAlone(flambda, cdata, tasks);
  std::unique_lock<std::mutex> lock(pool->launch_mutex(), std::try_to_lock);
  if (!lock.owns_lock() || pool->retired()) return RunAlone(flambda, cdata, num_task);
  if (num_task <= 0 && !pool->WorthSharing()) return RunAlone(flambda, cdata, 1);
  return pool->Launch(flambda, cdata, tasks);
  TVM_API_END();
}

int TVMBackendParallelBarrier(int task_id, TVMParallelGroupEnv* penv) {
  auto* barrier = static_cast<Barrier*>(penv->sync_handle);
  if (penv->num_task == 1) return 0;
  if (barrier == nullptr) {
    TVMAPISetLastError("TVMError: a barrier needs each task on a thread of its own");
    return -1;
  }
  int32_t mine = barrier->arrived[task_id].value.fetch_add(1, std::memory_order_acq_rel) + 1;
  for (int i = 0; i < penv->num_task; ++i) {
    while (barrier->arrived[i].value.load(std::memory_order_acquire) < mine) std::this_thread::yield();
  }
  return 0;
}
