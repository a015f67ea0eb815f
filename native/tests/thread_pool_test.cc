// Parallel loops: nested, failing, from many threads, after fork(); pools of any size.
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/registry.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "check.h"
#include "cpu_count.h"

using namespace tvm::runtime;

namespace {

void Configure(int mode, int threads) { Registry::Find("runtime.config_threadpool")(mode, threads); }
int NumThreads() { return Registry::Find("runtime.NumThreads")(); }

template <class F>
int Launch(F body, int tasks = 0) {
  FTVMParallelLambda call = [](int task, TVMParallelGroupEnv* env, void* data) { return (*static_cast<F*>(data))(task, env); };
  return TVMBackendParallelLaunch(call, &body, tasks);
}

// Whether each of `tasks` runs once.
bool RunsEachTask(int tasks) {
  std::vector<std::atomic<int>> runs(tasks);
  int rc = Launch([&](int task, TVMParallelGroupEnv*) { ++runs[task]; return 0; }, tasks);
  for (auto& count : runs) rc |= count != 1;
  return rc == 0;
}

}  // namespace

WithThreads::WithThreads(int count) { Configure(0, count); }
WithThreads::~WithThreads() { Configure(0, 0); }

TEST(each_task_runs_once_whatever_their_number) {
  WithThreads four(4);
  for (int tasks = 1; tasks < 40; ++tasks) EXPECT(RunsEachTask(tasks));
}

TEST(pools_grow_and_shrink) {
  for (int size : {1, 3, 2, 5, 1, 4}) {
    WithThreads some(size);
    EXPECT_EQ(NumThreads(), size);
    std::atomic<int> tasks{0};
    for (int i = 0; i < 100; ++i) {
      // one task a worker, or a single one where sharing does not pay
      EXPECT_EQ(Launch([&](int, TVMParallelGroupEnv* env) { tasks = env->num_task; return 0; }), 0);
      EXPECT(tasks == size || tasks == 1);
    }
    EXPECT(RunsEachTask(size));
  }
}

TEST(workers_wake_up_after_a_pause) {
  WithThreads four(4);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT(RunsEachTask(4));
  }
}

TEST(launches_inside_tasks_run_on_the_same_thread) {
  WithThreads four(4);
  std::atomic<int> wrong{0};
  int rc = Launch([&](int, TVMParallelGroupEnv*) {
    auto outer = std::this_thread::get_id();
    return Launch([&](int, TVMParallelGroupEnv*) { wrong += std::this_thread::get_id() != outer; return 0; }, 3);
  }, 4);
  EXPECT_EQ(rc, 0);
  EXPECT_EQ(wrong.load(), 0);
}

TEST(an_error_of_any_task_reaches_the_caller) {
  WithThreads four(4);
  for (int bad = 0; bad < 9; ++bad) {
    int rc = Launch([&](int task, TVMParallelGroupEnv*) {
      if (task != bad) return 0;
      TVMAPISetLastError("ValueError: a task failed");
      return -1;
    }, 9);
    EXPECT_EQ(rc, -1);
    EXPECT_EQ(std::string(TVMGetLastError()), "ValueError: a task failed");
    EXPECT(RunsEachTask(9));
  }
}

TEST(an_exception_of_any_task_reaches_the_caller) {
  WithThreads four(4);
  for (int bad = 0; bad < 4; ++bad) {
    int rc = Launch([&](int task, TVMParallelGroupEnv*) -> int {
      if (task == bad) ThrowTypeError("task ", task);
      return 0;
    }, 4);
    EXPECT_EQ(rc, -1);
    EXPECT_EQ(std::string(TVMGetLastError()), Cat("TypeError: task ", bad));
    EXPECT(RunsEachTask(4));
  }
}

TEST(an_exception_of_a_nested_task_reaches_the_caller) {
  WithThreads two(2);
  int rc = Launch([&](int, TVMParallelGroupEnv*) {
    return Launch([&](int, TVMParallelGroupEnv*) -> int { ThrowTypeError("inner"); }, 2);
  }, 2);
  EXPECT_EQ(rc, -1);
  EXPECT_EQ(std::string(TVMGetLastError()), "TypeError: inner");
  EXPECT(RunsEachTask(4));
}

TEST(barriers_separate_phases) {
  WithThreads four(4);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<std::atomic<int>> arrived(10);
    std::atomic<int> wrong{0};
    int rc = Launch([&](int task, TVMParallelGroupEnv* env) {
      for (auto& phase : arrived) {
        ++phase;
        if (TVMBackendParallelBarrier(task, env) != 0) return -1;
        wrong += phase != env->num_task;
      }
      return 0;
    }, 4);
    EXPECT_EQ(rc, 0);
    EXPECT_EQ(wrong.load(), 0);
  }
}

TEST(a_task_that_fails_before_a_barrier_does_not_hang_the_others) {
  WithThreads four(4);
  for (int bad = 0; bad < 4; ++bad) {
    int rc = Launch([&](int task, TVMParallelGroupEnv* env) -> int {
      if (task == bad) ThrowValueError("first");
      return TVMBackendParallelBarrier(task, env);
    }, 4);
    EXPECT_EQ(rc, -1);
    EXPECT_EQ(std::string(TVMGetLastError()), "ValueError: first");
  }
}

TEST(barriers_need_a_thread_for_each_task) {
  WithThreads two(2);
  int rc = Launch([](int task, TVMParallelGroupEnv* env) { return TVMBackendParallelBarrier(task, env); }, 5);
  EXPECT_EQ(rc, -1);
  EXPECT(std::string(TVMGetLastError()).find("a thread of its own") != std::string::npos);
}

TEST(many_threads_launch_at_once) {
  WithThreads three(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([&] {
      for (int k = 0; k < 200; ++k) wrong += !RunsEachTask(1 + k % 7);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(the_pool_changes_while_others_launch) {
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread caller([&] {
    while (!done) wrong += !RunsEachTask(5);
  });
  for (int i = 0; i < 50; ++i) Configure(0, 1 + i % 4);
  done = true;
  caller.join();
  Configure(0, 0);
  EXPECT_EQ(wrong.load(), 0);
}

TEST(a_forked_child_has_threads_of_its_own) {
  WithThreads four(4);
  EXPECT(RunsEachTask(8));
  pid_t child = fork();
  if (child == 0) _exit(RunsEachTask(8) ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT(RunsEachTask(8));
}

TEST(the_pool_cannot_change_inside_a_task) {
  WithThreads two(2);
  int rc = Launch([](int, TVMParallelGroupEnv*) { Configure(0, 3); return 0; }, 2);
  EXPECT_EQ(rc, -1);
  EXPECT(std::string(TVMGetLastError()).find("inside a parallel loop") != std::string::npos);
}

TEST(wrong_configurations_are_refused) {
  PackedFunc configure = Registry::Find("runtime.config_threadpool");
  EXPECT_RAISES(configure(7, 2), "mode must be");
  EXPECT_RAISES(configure(0, -1), "between 0 (all) and 512 threads, got -1");
  EXPECT_RAISES(configure(0, 513), "got 513");
  EXPECT_RAISES(configure(-2, 2), "needs a list of CPUs");
  EXPECT_RAISES(configure(0, 2, "0"), "needs mode -2 or -3");
  EXPECT_RAISES(configure(-2, 2, "0,x"), "CPUs must be numbers");
  EXPECT_RAISES(configure(-2, 2, "1000"), "CPU 1000 is not among");
}

TEST(threads_are_bound_to_cpus_and_released) {
  CpuSet allowed = AllowedCpus();
  PackedFunc configure = Registry::Find("runtime.config_threadpool");
  for (int mode : {-2, -3}) {
    configure(mode, 2, std::to_string(allowed.back()));
    std::atomic<int> wrong{0};
    Launch([&](int, TVMParallelGroupEnv*) {
      cpu_set_t set;
      sched_getaffinity(0, sizeof(set), &set);
      wrong += CPU_COUNT(&set) != 1 || !CPU_ISSET(allowed.back(), &set);
      return 0;
    }, 2);
    EXPECT_EQ(wrong.load(), 0);
    EXPECT(AllowedCpus() == allowed);
  }
  configure(0, 2);
  cpu_set_t set;
  sched_getaffinity(0, sizeof(set), &set);
  EXPECT_EQ(CPU_COUNT(&set), static_cast<int>(allowed.size()));
  configure(1, 0);
  EXPECT(NumThreads() >= 1);
  configure(0, 8, nullptr, 3);
  EXPECT_EQ(NumThreads(), 3);
  configure(0, 0);
}

TEST(quotas_of_control_groups_limit_the_threads) {
  char name[] = "/tmp/cgroupXXXXXX";
  const std::string root = mkdtemp(name);
  auto write = [&](const std::string& path, const std::string& text) {
    std::string folder = root + path.substr(0, path.rfind('/'));
    EXPECT_EQ(system(("mkdir -p " + folder).c_str()), 0);
    std::ofstream(root + path) << text;
  };
  write("/groups", "0::/outer/inner\n");
  EXPECT_EQ(CgroupQuota(root + "/groups", root), 0.0);
  write("/outer/inner/cpu.max", "max 100000\n");
  EXPECT_EQ(CgroupQuota(root + "/groups", root), 0.0);
  write("/outer/cpu.max", "250000 100000\n");
  EXPECT_EQ(CgroupQuota(root + "/groups", root), 2.5);
  write("/outer/inner/cpu.max", "150000 100000\n");
  EXPECT_EQ(CgroupQuota(root + "/groups", root), 1.5);
  write("/groups", "4:cpu,cpuacct:/box\n0::/\n");
  write("/cpu/box/cpu.cfs_quota_us", "-1");
  write("/cpu/box/cpu.cfs_period_us", "100000");
  EXPECT_EQ(CgroupQuota(root + "/groups", root), 0.0);
  write("/cpu/box/cpu.cfs_quota_us", "50000");
  EXPECT_EQ(CgroupQuota(root + "/groups", root), 0.5);
  EXPECT_EQ(system(("rm -r " + root).c_str()), 0);
}

TEST(the_environment_names_the_number_of_threads) {
  std::string before = getenv("TVM_NUM_THREADS") ? getenv("TVM_NUM_THREADS") : "";
  setenv("TVM_NUM_THREADS", "3", 1);
  EXPECT_EQ(UsableThreads(), 3);
  setenv("TVM_NUM_THREADS", "no number", 1);
  EXPECT(UsableThreads() >= 1);
  unsetenv("TVM_NUM_THREADS");
  if (!before.empty()) setenv("TVM_NUM_THREADS", before.c_str(), 1);
}

TEST(what_runs_once_runs_once) {
  void* handle = nullptr;
  int runs = 0;
  auto count = [](void* data) { return ++*static_cast<int*>(data), 0; };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(TVMBackendRunOnce(&handle, count, &runs, 0), 0);
  EXPECT_EQ(runs, 1);
}
