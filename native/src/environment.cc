// Functions that the surrounding language lends to the runtime, and its exceptions as errors.
#include <sys/syscall.h>
#include <time.h>
#include <tvm/runtime/registry.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <thread>

#include "fork.h"
#include "interrupt.h"

namespace tvm {
namespace runtime {
namespace {

struct EnvironmentFunction {
  const char* name;
  std::atomic<void*> address{nullptr};

  template <class F>
  F* Get() const {
    return reinterpret_cast<F*>(address.load());
  }
};

EnvironmentFunction check_signals{"PyErr_CheckSignals"};
EnvironmentFunction take_reference{"Py_IncRef"};
EnvironmentFunction drop_reference{"Py_DecRef"};

EnvironmentFunction& FindFunction(const std::string& name) {
  for (EnvironmentFunction* function : {&check_signals, &take_reference, &drop_reference}) {
    if (name == function->name) return *function;
  }
  ThrowValueError("no function of the environment is called '", name, "'");
}

// "text (file.cc:12)" -> "file.cc:12"
std::string PlaceIn(const std::string& message) {
  size_t open = message.rfind(" (");
  size_t colon = message.rfind(':');
  if (message.empty() || message.back() != ')' || open == std::string::npos || colon == std::string::npos || colon < open) return "";
  for (size_t i = colon + 1; i + 1 < message.size(); ++i) {
    if (!std::isdigit(static_cast<unsigned char>(message[i]))) return "";
  }
  return message.substr(open + 2, message.size() - open - 3);
}

constexpr int kPollMilliseconds = 50;

int64_t CoarseMilliseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

struct SignalPoll {
  int64_t next{0};  // in milliseconds of the coarse clock
  uint32_t generation{~uint32_t{0}};
  bool is_main_thread{false};
};

bool IsMainThread(SignalPoll* poll) {
  if (poll->generation != ForkGeneration()) {  // the thread that forks is the main thread of the child
    poll->generation = ForkGeneration();
    poll->is_main_thread = getpid() == syscall(SYS_gettid);
  }
  return poll->is_main_thread;
}

}  // namespace

void EnvCheckSignals() {
  auto* check = check_signals.Get<int()>();
  if (check != nullptr && check() != 0) ThrowLastError();
}

void PollSignals() {
  static thread_local SignalPoll poll;
  const int64_t now = CoarseMilliseconds();
  if (now < poll.next) return;
  poll.next = now + kPollMilliseconds;
  if (IsMainThread(&poll)) EnvCheckSignals();
}

void SleepUnlessInterrupted(int milliseconds) {
  for (int left = milliseconds; left > 0; left -= kPollMilliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(left, kPollMilliseconds)));
    PollSignals();
  }
}

}  // namespace runtime
}  // namespace tvm

using namespace tvm::runtime;

int TVMBackendRegisterEnvCAPI(const char* name, void* ptr) {
  TVM_API_BEGIN();
  FindFunction(name).address = ptr;
  TVM_API_END();
}

void TVMAPISetLastPythonError(void* py_object) {
  auto* take = take_reference.Get<void(void*)>();
  auto* drop = drop_reference.Get<void(void*)>();
  if (take == nullptr || drop == nullptr) {
    TVMAPISetLastError("TVMError: a Python exception in a process where Python has not loaded this runtime");
    return;
  }
  take(py_object);
  ObjectPtr<Object> error(make_object<ForeignObj>(py_object, drop));
  TVMAPISetLastForeignError((ForeignTypeName(error.get()) + ": a Python exception").c_str(), error.get());
}

const char* TVMGetLastBacktrace() {
  static thread_local std::string place;
  place = PlaceIn(TVMGetLastError());
  return place.empty() ? nullptr : place.c_str();
}

void TVMThrowLastError() { ThrowLastError(); }
