"""A library of packed functions in C, as compiled code makes them; built with g++ at test time."""

from __future__ import annotations

from pathlib import Path

from tvm._ffi import libinfo
from tvm.contrib import cc

_RUNTIME = Path(libinfo.find_lib_path()[0]).parent
INCLUDES = [f"-I{path}" for path in libinfo.find_include_path()]
# what links with the runtime
RUNTIME_OPTIONS = [f"-L{_RUNTIME}", f"-Wl,-rpath,{_RUNTIME}", "-ltvm_runtime"]

SOURCE = r"""
#include <tvm/runtime/c_backend_api.h>
#include <stdio.h>
#include <string.h>

#define EXPORT extern "C" __attribute__((visibility("default")))
#define ARGS TVMValue *args, int *codes, int n, TVMValue *ret, int *ret_code, void *resource

EXPORT void *__tvm_module_ctx = nullptr;
EXPORT decltype(TVMFuncCall) *__TVMFuncCall = nullptr;
EXPORT decltype(TVMAPISetLastError) *__TVMAPISetLastError = nullptr;
EXPORT decltype(TVMBackendGetFuncFromEnv) *__TVMBackendGetFuncFromEnv = nullptr;
EXPORT decltype(TVMBackendAllocWorkspace) *__TVMBackendAllocWorkspace = nullptr;
EXPORT decltype(TVMBackendFreeWorkspace) *__TVMBackendFreeWorkspace = nullptr;
EXPORT decltype(TVMBackendParallelLaunch) *__TVMBackendParallelLaunch = nullptr;
EXPORT decltype(TVMBackendParallelBarrier) *__TVMBackendParallelBarrier = nullptr;
EXPORT const char __tvm_main__[] = "add";

static int64_t count(DLTensor *t) {
  int64_t c = 1;
  for (int i = 0; i < t->ndim; ++i) c *= t->shape[i];
  return c;
}
static float *data(TVMValue v) {
  DLTensor *t = (DLTensor *)v.v_handle;
  return (float *)((char *)t->data + t->byte_offset);
}

EXPORT int add(ARGS) {
  for (int64_t i = 0; i < count((DLTensor *)args[0].v_handle); ++i)
    data(args[2])[i] = data(args[0])[i] + data(args[1])[i];
  return 0;
}

EXPORT int twice(ARGS) {
  for (int64_t i = 0; i < count((DLTensor *)args[0].v_handle); ++i)
    data(args[1])[i] = 2 * data(args[0])[i];
  return 0;
}

EXPORT int rank_of_first(ARGS) {
  *(float *)data(args[1]) = ((DLTensor *)args[0].v_handle)->ndim;
  return 0;
}

EXPORT int sum_scalars(ARGS) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += codes[i] == kTVMArgFloat ? args[i].v_float64 : args[i].v_int64;
  ret->v_float64 = sum;
  *ret_code = kTVMArgFloat;
  return 0;
}

EXPORT int codes_seen(ARGS) {
  int64_t packed = 0;
  for (int i = 0; i < n; ++i) packed = packed * 16 + codes[i];
  ret->v_int64 = packed;
  *ret_code = kTVMArgInt;
  return 0;
}

EXPORT int fail(ARGS) {
  __TVMAPISetLastError("TypeError: fail: argument 0 needs dtype float32, got int32");
  return -1;
}

EXPORT int call_from_env(ARGS) {
  void *func = nullptr;
  if (__TVMBackendGetFuncFromEnv(__tvm_module_ctx, "test.from_env", &func)) return -1;
  return __TVMFuncCall(func, args, codes, n, ret, ret_code);
}

static int fill_task(int task, TVMParallelGroupEnv *env, void *cdata) {
  DLTensor *t = (DLTensor *)cdata;
  int64_t total = count(t), step = (total + env->num_task - 1) / env->num_task;
  for (int64_t i = task * step; i < (task + 1) * step && i < total; ++i) ((float *)t->data)[i] += i;
  return 0;
}

EXPORT int parallel_fill(ARGS) { return __TVMBackendParallelLaunch(fill_task, args[0].v_handle, 0); }

struct Rounds { int64_t sums[64]; int bad; };
static int barrier_task(int task, TVMParallelGroupEnv *env, void *cdata) {
  Rounds *r = (Rounds *)cdata;
  for (int round = 0; round < 50; ++round) {
    __atomic_fetch_add(&r->sums[round], 1, __ATOMIC_SEQ_CST);
    if (__TVMBackendParallelBarrier(task, env)) return -1;
    if (__atomic_load_n(&r->sums[round], __ATOMIC_SEQ_CST) != env->num_task) r->bad = 1;
  }
  return 0;
}
EXPORT int barriers_hold(ARGS) {
  Rounds r;
  memset(&r, 0, sizeof r);
  if (__TVMBackendParallelLaunch(barrier_task, &r, 0)) return -1;
  ret->v_int64 = !r.bad;
  *ret_code = kTVMArgInt;
  return 0;
}

static int failing_task(int task, TVMParallelGroupEnv *, void *) {
  if (task == 0) return 0;
  __TVMAPISetLastError("ValueError: a task failed");
  return -1;
}
EXPORT int parallel_fail(ARGS) { return __TVMBackendParallelLaunch(failing_task, nullptr, 4); }

EXPORT int workspaces(ARGS) {
  void *first = __TVMBackendAllocWorkspace(1, 0, 1000, 2, 32);
  void *second = __TVMBackendAllocWorkspace(1, 0, 5000, 2, 32);
  memset(first, 1, 1000);
  memset(second, 2, 5000);
  bool aligned = (uintptr_t)first % 64 == 0 && (uintptr_t)second % 64 == 0;
  __TVMBackendFreeWorkspace(1, 0, second);
  __TVMBackendFreeWorkspace(1, 0, first);
  void *again = __TVMBackendAllocWorkspace(1, 0, 1000, 2, 32);
  ret->v_int64 = aligned && again == first;
  *ret_code = kTVMArgInt;
  return __TVMBackendFreeWorkspace(1, 0, again);
}
"""


def build(folder: Path) -> str:
    """Compile the library; its path."""
    source = folder / "packed.cc"
    source.write_text(SOURCE)
    library = str(folder / "packed.so")
    cc.create_shared(library, str(source), options=["-O1", *INCLUDES])
    return library
