// Threads: groups, the pool's size and places, loops over the pool.
#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/threading_backend.h>

#include <sched.h>

#include <atomic>
#include <cstdio>
#include <numeric>

using namespace tvm::runtime;
using threading::ThreadGroup;

template <class F>
std::string ErrorOf(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "none";
}

unsigned int FirstCpu() {
  cpu_set_t set;
  ICHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  unsigned int cpu = 0;
  while (!CPU_ISSET(cpu, &set)) ++cpu;
  return cpu;
}

void UseGroups() {
  std::atomic<int> sum{0};
  {
    ThreadGroup group(4, [&](int worker) { sum += 1 << worker; });
    group.Join();
    ICHECK_EQ(sum, 15);
  }
  ThreadGroup others(3, [&](int worker) { sum += 100 * worker; }, true);
  ICHECK(others.Configure(ThreadGroup::kBig, 0, false) >= 1);
  ICHECK_EQ(others.Configure(ThreadGroup::kSpecifyThreadShareAllCore, 8, false, {FirstCpu()}), 1);
  threading::Yield();
  others.Join();
  ICHECK_EQ(sum, 315);
  ICHECK(ErrorOf([] { ThreadGroup none(0, [](int) {}); }).find("between 1 and") != std::string::npos);
  ICHECK(ErrorOf([] { threading::Configure(ThreadGroup::kSpecifyOneCorePerThread, 1, {4000}); }).find("CPU 4000") != std::string::npos);
}

void SizePools() {
  threading::Configure(ThreadGroup::kBig, 3, {});
  ICHECK_EQ(threading::NumThreads(), 3);
  ICHECK_EQ((*Registry::Get("runtime.NumThreads"))().operator int(), 3);
  threading::Configure(ThreadGroup::kSpecifyOneCorePerThread, 2, {FirstCpu()}, 1);
  ICHECK_EQ(threading::NumThreads(), 1);
  threading::ResetThreadPool();
  ICHECK_EQ(threading::NumThreads(), threading::MaxConcurrency());
  threading::SetMaxConcurrency(4);
  threading::ResetThreadPool();
  ICHECK(threading::MaxConcurrency() == 4 && threading::NumThreads() == 4);
  ICHECK(ErrorOf([] { threading::SetMaxConcurrency(-1); }).find("got -1") != std::string::npos);
}

void LoopInParallel() {
  for (int64_t count : {0, 1, 3, 4, 1000}) {
    std::vector<int64_t> seen(count);
    parallel_for_with_threading_backend([&](int64_t i) { seen[i - 5] += i; }, 5, 5 + count);
    for (int64_t i = 0; i < count; ++i) ICHECK_EQ(seen[i], i + 5);
  }
  std::atomic<int64_t> total{0};
  parallel_for_with_threading_backend(
      [&](int64_t i) { parallel_for_with_threading_backend([&](int64_t j) { total += i * j; }, 0, 10); }, 0, 10);
  ICHECK_EQ(total, 45 * 45);
  std::string text = ErrorOf([] {
    parallel_for_with_threading_backend([](int64_t i) { if (i == 7) LOG(FATAL) << "ValueError: seven"; }, 0, 8);
  });
  ICHECK(text.find("ValueError: seven (threads.cc:") == 0) << text;
}

int main() {
  UseGroups();
  SizePools();
  LoopInParallel();
  std::puts("all is well");
}
