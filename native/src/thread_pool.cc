// Parallel loops of compiled code.
//
// A job has a part for each worker, the calling thread being worker 0. A launch opens the parts under the job's number;
// a worker takes the part that is its own. The caller, done with its part, takes those that nobody has started: on a
// busy machine it does not wait for a thread that does not run. Workers spin for a while after a job, since the next
// operator usually follows at once, and then sleep. A launch inside a job, or while another thread holds the pool, runs
// on the calling thread alone; so do launches for a while when waiting for the others costs more than their help saves,
// as it does when other programs keep the processors busy.
//
// There is one pool. It grows when it is configured and never shrinks: threads that are too many sleep.
#include <pthread.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/threading_backend.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <vector>

#include "cpu_count.h"
#include "fork.h"
#include "interrupt.h"

namespace tvm {
namespace runtime {
namespace {

using AffinityMode = threading::ThreadGroup::AffinityMode;

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
thread_local bool reached_barrier = false;  // in a loop that this thread runs alone

class InsideJob {
 public:
  InsideJob() : outer_(inside_job) { inside_job = true; }
  ~InsideJob() { inside_job = outer_; }

 private:
  const bool outer_;
};

struct alignas(kCacheLine) Counter {
  std::atomic<int32_t> value{0};
};

// The rendezvous of a job's tasks: each counts the barriers it has reached.
struct Barrier {
  explicit Barrier(int num_task) : arrived(new Counter[num_task]) {}
  bool is_used() const { return arrived[0].value.load(std::memory_order_relaxed) != 0; }
  std::unique_ptr<Counter[]> arrived;
  std::atomic<bool> broken{false};  // a task has failed and will not arrive
};

struct alignas(kCacheLine) Worker {
  std::atomic<uint32_t> open{0};  // the number of the job whose part of this worker nobody has taken yet, or 0
  std::atomic<bool> asleep{false};
  std::condition_variable wake;
  pthread_t thread{};
};

int RunTask(FTVMParallelLambda lambda, int task, TVMParallelGroupEnv* env, void* data) {
  TVM_API_BEGIN();
  PollSignals();
  return lambda(task, env, data);
  TVM_API_END();
}

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

thread_local const FirstError* shared_error = nullptr;  // of the job that this thread has a part of

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

// Loops that take long are cut into more tasks than there are workers, so that Ctrl-C need not wait for their end. Which
// they are is known from their last launch.
class LongLoops {
 public:
  static LongLoops& Global() {
    static auto* loops = new LongLoops();
    return *loops;
  }

  // How many tasks each worker gets.
  int TasksPerWorker(FTVMParallelLambda lambda) {
    if (!is_any_.load(std::memory_order_relaxed)) return 1;
    std::lock_guard<ForkMutex> lock(mutex_);
    auto it = tasks_.find(lambda);
    return it == tasks_.end() ? 1 : it->second;
  }

  void Record(FTVMParallelLambda lambda, int64_t nanoseconds) {
    if (nanoseconds < kLong && !is_any_.load(std::memory_order_relaxed)) return;
    std::lock_guard<ForkMutex> lock(mutex_);
    if (nanoseconds < kLong) {
      tasks_.erase(lambda);
    } else {
      tasks_[lambda] = static_cast<int>(std::min(nanoseconds / kTask + 1, kMostTasks));
      is_any_ = true;
    }
  }

 private:
  static constexpr int64_t kLong = 100'000'000;
  static constexpr int64_t kTask = 20'000'000;
  static constexpr int64_t kMostTasks = 1024;
  std::atomic<bool> is_any_{false};
  ForkMutex mutex_;
  std::unordered_map<FTVMParallelLambda, int> tasks_;
};

class ThreadPool {
 public:
  ThreadPool() : spin_count_(SpinCount()) { Resize(UsableThreads()); }

  int num_workers() const { return num_workers_.load(std::memory_order_relaxed); }
  std::mutex& launch_mutex() { return launch_mutex_; }

  // For all that follows, the caller holds launch_mutex.
  bool WorthSharing() { return profit_.WorthSharing(); }

  void Resize(int num_workers) {
    while (NumThreads() < num_workers) {
      Worker& worker = others_.emplace_back();
      try {
        std::thread thread([this, &worker, number = NumThreads() - 1] { Work(&worker, number); });
        worker.thread = thread.native_handle();
        thread.detach();
      } catch (const std::system_error&) {
        others_.pop_back();
        break;  // the system has no more threads for us: the others do their work
      }
    }
    num_workers_ = std::min(num_workers, NumThreads());
    // who spins on a processor that another worker needs only delays it
    spin_ = num_workers_ > UsableCpus() ? 0 : spin_count_;
  }

  // Lets worker i run on places[i % size] only, the calling thread being worker 0; empty undoes that.
  void Place(std::vector<CpuSet> places) {
    if (places.empty() && !is_placed_) return;
    is_placed_ = !places.empty();
    if (places.empty()) places.push_back(AllowedCpus());
    SetAffinity(pthread_self(), places[0]);
    for (size_t i = 0; i < others_.size(); ++i) SetAffinity(others_[i].thread, places[(i + 1) % places.size()]);
  }

  // 0 tasks: as many as there are workers, or more.
  int Launch(FTVMParallelLambda lambda, void* data, int wanted) {
    const int num_task = wanted > 0 ? wanted : num_workers_ * LongLoops::Global().TasksPerWorker(lambda);
    Barrier barrier(num_task);
    // more tasks than workers cannot all be at a barrier together
    job_ = Job{lambda, data, num_task, {num_task <= num_workers_ ? &barrier : nullptr, num_task}};
    if (++job_number_ == 0) job_number_ = 1;
    const uint32_t number = job_number_;
    const int num_parts = std::min(num_task, num_workers());
    const int64_t start = Nanoseconds();
    unfinished_.store(num_parts, std::memory_order_relaxed);
    for (int i = 1; i < num_parts; ++i) Open(&others_[i - 1], number);
    Run(0);
    for (int i = 1; i < num_parts; ++i) {
      if (Take(&others_[i - 1], number)) Run(i);
    }
    const int64_t end = Nanoseconds();
    WaitForParts();
    const int64_t done = Nanoseconds();
    profit_.Record(end - start, done - end);
    if (wanted <= 0 && !barrier.is_used()) LongLoops::Global().Record(lambda, done - start);
    return error_.failed() ? error_.Raise() : 0;
  }

 private:
  int NumThreads() const { return static_cast<int>(others_.size()) + 1; }

  void Work(Worker* self, int worker) {
    inside_job = true;
    for (;;) {
      uint32_t number = WaitForPart(self);
      if (Take(self, number)) Run(worker);
    }
  }

  void Open(Worker* worker, uint32_t number) {
    worker->open.store(number, std::memory_order_seq_cst);
    if (!worker->asleep.load(std::memory_order_seq_cst)) return;
    std::lock_guard<std::mutex> lock(sleep_mutex_);
    worker->wake.notify_one();
  }

  // Only who takes a part may read the job: the caller waits for the parts that others took.
  bool Take(Worker* worker, uint32_t number) {
    return worker->open.compare_exchange_strong(number, 0, std::memory_order_acq_rel);
  }

  uint32_t WaitForPart(Worker* self) {
    for (int i = spin_.load(std::memory_order_relaxed); i > 0; --i) {
      if (uint32_t number = self->open.load(std::memory_order_acquire)) return number;
      Pause();
    }
    std::unique_lock<std::mutex> lock(sleep_mutex_);
    for (;;) {
      self->asleep.store(true, std::memory_order_seq_cst);
      uint32_t number = self->open.load(std::memory_order_seq_cst);
      if (number != 0) {
        self->asleep.store(false, std::memory_order_relaxed);
        return number;
      }
      self->wake.wait(lock);
    }
  }

  void WaitForParts() {
    for (int i = spin_.load(std::memory_order_relaxed); i > 0; --i) {
      if (unfinished_.load(std::memory_order_acquire) == 0) return;
      Pause();
    }
    std::unique_lock<std::mutex> lock(sleep_mutex_);
    caller_sleeps_.store(true, std::memory_order_seq_cst);
    done_.wait(lock, [&] { return unfinished_.load(std::memory_order_seq_cst) == 0; });
    caller_sleeps_.store(false, std::memory_order_seq_cst);
  }

  void Run(int worker) {
    {
      InsideJob inside;
      shared_error = &error_;
      for (int task = worker; task < job_.num_task; task += num_workers_) {
        if (task != worker && error_.failed()) break;
        if (RunTask(job_.lambda, task, &job_.env, job_.data) == 0) continue;
        error_.Take();
        if (job_.env.sync_handle) static_cast<Barrier*>(job_.env.sync_handle)->broken.store(true);
      }
      shared_error = nullptr;
    }
    if (unfinished_.fetch_sub(1, std::memory_order_seq_cst) == 1 && caller_sleeps_.load(std::memory_order_seq_cst)) {
      std::lock_guard<std::mutex> lock(sleep_mutex_);
      done_.notify_one();
    }
  }

  const int spin_count_;
  bool is_placed_{false};
  std::atomic<int> num_workers_{1};
  std::atomic<int> spin_{0};
  std::deque<Worker> others_;  // workers 1, 2, ...
  std::mutex launch_mutex_;
  Job job_{};
  FirstError error_;
  Profit profit_;
  uint32_t job_number_{0};
  alignas(kCacheLine) std::atomic<int> unfinished_{0};
  std::atomic<bool> caller_sleeps_{false};
  std::mutex sleep_mutex_;
  std::condition_variable done_;
};

// The pool is never freed: its threads may outlive the program's static objects. After fork() the child has a pool whose
// threads do not exist, so it makes a new one.
std::atomic<ThreadPool*> current_pool{nullptr};

ForkMutex& PoolMutex() {
  static auto* mutex = new ForkMutex();
  return *mutex;
}

void ForgetPool() {
  current_pool.store(nullptr);
  inside_job = false;
}

const bool forgets_pool = (AfterForkInChild(ForgetPool), true);

ThreadPool* CurrentPool() {
  if (ThreadPool* pool = current_pool.load(std::memory_order_acquire)) return pool;
  std::lock_guard<ForkMutex> lock(PoolMutex());
  ThreadPool* pool = current_pool.load();
  if (pool == nullptr) {
    (void)forgets_pool;
    pool = new ThreadPool();
    current_pool.store(pool, std::memory_order_release);
  }
  return pool;
}

void ConfigurePool(AffinityMode mode, int wanted, const CpuSet& cpus, int most) {
  if (inside_job) ThrowError("config_threadpool cannot be called inside a parallel loop");
  for (int count : {wanted, most}) {
    if (count < 0 || count > kMaxThreads) {
      ThrowValueError("config_threadpool needs between 0 (all) and ", kMaxThreads, " threads, got ", count);
    }
  }
  const std::vector<CpuSet> places = PlacesOf(mode, cpus);
  int count = wanted > 0 ? wanted : ThreadsFor(places);
  if (most > 0) count = std::min(count, most);
  ThreadPool* pool = CurrentPool();
  std::lock_guard<std::mutex> launches(pool->launch_mutex());
  pool->Resize(count);
  pool->Place(places);
}

int RunAlone(FTVMParallelLambda lambda, void* data, int num_task) {
  TVMParallelGroupEnv env{nullptr, std::max(num_task, 1)};
  InsideJob inside;
  int rc = 0;
  for (int task = 0; task < env.num_task && rc == 0; ++task) rc = RunTask(lambda, task, &env, data);
  return rc;
}

// A loop that may have any number of tasks, alone.
int RunLoopAlone(FTVMParallelLambda lambda, void* data) {
  LongLoops& loops = LongLoops::Global();
  reached_barrier = false;
  const int64_t start = Nanoseconds();
  const int rc = RunAlone(lambda, data, loops.TasksPerWorker(lambda));
  if (!reached_barrier) loops.Record(lambda, Nanoseconds() - start);
  return rc;
}

// CPUs are text, "0,2,3", or an array of such texts.
std::string ListedCpus(const TVMArgValue& cpus) {
  if (cpus.is_str()) return cpus;
  std::string text;
  auto list = detail::ConvertArgument<Array<std::string>>(cpus, "config_threadpool");
  for (const std::string& each : list) text += (text.empty() ? "" : ",") + each;
  return text;
}

// (mode, number of threads or 0, CPUs, most threads): the last two may be missing
TVM_REGISTER_GLOBAL("runtime.config_threadpool").set_body([](TVMArgs args, TVMRetValue*) {
  CpuSet cpus;
  if (args.num_args > 2 && !args[2].is_null()) cpus = ParseCpus(ListedCpus(args[2]));
  ConfigurePool(static_cast<AffinityMode>(int(args[0])), args.num_args > 1 ? int(args[1]) : 0, cpus,
            args.num_args > 3 ? int(args[3]) : 0);
});

TVM_REGISTER_GLOBAL("runtime.NumThreads").set_body_typed(threading::NumThreads);

}  // namespace

namespace threading {

int NumThreads() { return CurrentPool()->num_workers(); }

void ResetThreadPool() { ConfigurePool(ThreadGroup::kAny, 0, {}, 0); }

void Configure(ThreadGroup::AffinityMode mode, int nthreads, std::vector<unsigned int> cpus, int max_concurrency) {
  ConfigurePool(mode, nthreads, CheckedCpus({cpus.begin(), cpus.end()}), max_concurrency);
}

}  // namespace threading
}  // namespace runtime
}  // namespace tvm

using namespace tvm::runtime;

int TVMBackendParallelLaunch(FTVMParallelLambda flambda, void* cdata, int num_task) {
  TVM_API_BEGIN();
  if (inside_job) return RunAlone(flambda, cdata, num_task);
  auto run_alone = [&] { return num_task > 0 ? RunAlone(flambda, cdata, num_task) : RunLoopAlone(flambda, cdata); };
  ThreadPool* pool = CurrentPool();
  if (num_task == 1 || pool->num_workers() == 1) return run_alone();
  std::unique_lock<std::mutex> lock(pool->launch_mutex(), std::try_to_lock);
  if (!lock.owns_lock()) return run_alone();
  if (num_task <= 0 && !pool->WorthSharing()) return run_alone();
  return pool->Launch(flambda, cdata, num_task);
  TVM_API_END();
}

int TVMBackendParallelBarrier(int task_id, TVMParallelGroupEnv* penv) {
  auto* barrier = static_cast<Barrier*>(penv->sync_handle);
  if (penv->num_task == 1) {
    reached_barrier = true;
    return 0;
  }
  if (barrier == nullptr) {
    TVMAPISetLastError("TVMError: a barrier needs each task on a thread of its own");
    return -1;
  }
  int32_t mine = barrier->arrived[task_id].value.fetch_add(1, std::memory_order_acq_rel) + 1;
  for (int i = 0; i < penv->num_task; ++i) {
    while (barrier->arrived[i].value.load(std::memory_order_acquire) < mine) {
      if (barrier->broken.load(std::memory_order_relaxed)) {
        TVMAPISetLastError("TVMError: a task failed before it reached a barrier");
        return -1;
      }
      std::this_thread::yield();
    }
  }
  return 0;
}

int TVMBackendPollSignals() {
  TVM_API_BEGIN();
  if (shared_error != nullptr && shared_error->failed()) return -1;  // another part has been interrupted
  PollSignals();
  TVM_API_END();
}
