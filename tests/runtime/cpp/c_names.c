/* The C interface, name by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/c_runtime_api.h>

#define REQUIRE(condition)                                                           \
  if (!(condition)) {                                                                \
    fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, TVMGetLastError());  \
    exit(1);                                                                         \
  }
#define CALL(expression) REQUIRE((expression) == 0)

static int finalized = 0;
static int Add(TVMValue* args, int* codes, int count, TVMRetValueHandle ret, void* resource) {
  if (count != 2 || codes[0] != kTVMArgInt) {
    TVMAPISetLastError("TypeError: add takes two integers");
    return -1;
  }
  TVMValue sum;
  int code = kTVMArgInt;
  sum.v_int64 = args[0].v_int64 + args[1].v_int64 + *(int*)resource;
  return TVMCFuncSetReturn(ret, &sum, &code, 1);
}
static void Finish(void* resource) { ++finalized; }

static void UseFunctions(void) {
  static int extra = 1;
  TVMFunctionHandle add, found;
  TVMValue args[2], ret;
  int codes[2] = {kTVMArgInt, kTVMArgInt}, ret_code, count;
  const char *name, **names;
  CALL(TVMFuncCreateFromCFunc(Add, &extra, Finish, &add));
  CALL(TVMFuncRegisterGlobal("c.add", add, 0));
  REQUIRE(TVMFuncRegisterGlobal("c.add", add, 0) == -1);
  CALL(TVMFuncRegisterGlobal("c.add", add, 1));
  CALL(TVMFuncGetGlobal("c.add", &found));
  CALL(TVMFuncGetName(found, &name));
  REQUIRE(strcmp(name, "c.add") == 0);
  args[0].v_int64 = 2;
  args[1].v_int64 = 3;
  CALL(TVMFuncCall(found, args, codes, 2, &ret, &ret_code));
  REQUIRE(ret_code == kTVMArgInt && ret.v_int64 == 6);
  REQUIRE(TVMFuncCall(found, args, codes, 1, &ret, &ret_code) == -1);
  REQUIRE(strcmp(TVMGetLastError(), "TypeError: add takes two integers") == 0);
  REQUIRE(TVMGetLastPythonError() == NULL && TVMGetLastBacktrace() == NULL);
  TVMDropLastPythonError();
  TVMAPISetLastError("InternalError: Check failed: (a == b) is false (file.cc:12)");
  REQUIRE(strcmp(TVMGetLastBacktrace(), "file.cc:12") == 0);
  TVMAPISetLastPythonError(&extra); /* there is no Python here */
  REQUIRE(TVMGetLastPythonError() == NULL && strstr(TVMGetLastError(), "Python") != NULL);
  TVMAPISetLastForeignError("ValueError: foreign", NULL);
  REQUIRE(TVMTakeLastForeignError() == NULL);
  CALL(TVMFuncListGlobalNames(&count, &names));
  REQUIRE(count > 0 && names[0] != NULL);
  CALL(TVMFuncRemoveGlobal("c.add"));
  REQUIRE(TVMFuncRemoveGlobal("c.add") == -1);
  CALL(TVMFuncFree(found));
  REQUIRE(finalized == 0);
  CALL(TVMFuncFree(add));
  REQUIRE(finalized == 1);
}

static void UseArrays(void) {
  tvm_index_t shape[2] = {2, 3}, flat[1] = {6};
  float values[6] = {0, 1, 2, 3, 4, 5}, out[6];
  DLDataType f32 = {kDLFloat, 32, 1};
  TVMArrayHandle a, b, view;
  DLManagedTensor* managed;
  CALL(TVMArrayAlloc(shape, 2, kDLFloat, 32, 1, kDLCPU, 0, &a));
  CALL(TVMArrayAlloc(shape, 2, kDLFloat, 32, 1, kDLCPU, 0, &b));
  CALL(TVMArrayCopyFromBytes(a, values, sizeof(values)));
  CALL(TVMArrayCopyFromTo(a, b, NULL));
  CALL(TVMArrayCreateView(b, flat, 1, f32, 0, &view));
  CALL(TVMArrayCopyToBytes(view, out, sizeof(out)));
  REQUIRE(memcmp(values, out, sizeof(out)) == 0 && view->ndim == 1);
  CALL(TVMArrayToDLPack(a, &managed));
  CALL(TVMArrayFree(view));
  CALL(TVMArrayFromDLPack(managed, &view));
  REQUIRE(view->data == a->data);
  CALL(TVMArrayRetain(a));
  CALL(TVMArrayFree(a));
  CALL(TVMArrayFree(view));
  CALL(TVMArrayToDLPack(a, &managed));
  TVMDLManagedTensorCallDeleter(managed);
  CALL(TVMArrayFree(a));
  CALL(TVMArrayFree(b));
}

static void UseDevices(void) {
  DLDevice cpu = {kDLCPU, 0};
  DLDataType f32 = {kDLFloat, 32, 1};
  int64_t shape[1] = {16};
  TVMStreamHandle stream;
  void* memory;
  CALL(TVMStreamCreate(kDLCPU, 0, &stream));
  CALL(TVMSetStream(kDLCPU, 0, stream));
  CALL(TVMSynchronize(kDLCPU, 0, stream));
  CALL(TVMStreamStreamSynchronize(kDLCPU, 0, stream, stream));
  CALL(TVMStreamFree(kDLCPU, 0, stream));
  CALL(TVMDeviceAllocDataSpace(cpu, 64, 64, f32, &memory));
  CALL(TVMDeviceFreeDataSpace(cpu, memory));
  CALL(TVMDeviceAllocDataSpaceWithScope(cpu, 1, shape, f32, NULL, &memory));
  CALL(TVMDeviceFreeDataSpace(cpu, memory));
  REQUIRE(TVMDeviceAllocDataSpaceWithScope(cpu, 1, shape, f32, "global.texture", &memory) == -1);
  REQUIRE(kDLAOCL == 32 && kDLSDAccel == 33 && kOpenGL == 34 && kDLMicroDev == 35);
}

static void UseObjects(void) {
  TVMFunctionHandle function;
  unsigned index, expected;
  int is_derived;
  char* key;
  CALL(TVMFuncGetGlobal("runtime.SystemLib", &function));
  CALL(TVMObjectGetTypeIndex(function, &index));
  CALL(TVMObjectTypeIndex2Key(index, &key));
  CALL(TVMObjectTypeKey2Index(key, &expected));
  REQUIRE(index == expected);
  free(key);
  CALL(TVMObjectTypeKey2Index("runtime.Object", &expected));
  CALL(TVMObjectDerivedFrom(index, expected, &is_derived));
  REQUIRE(is_derived);
  CALL(TVMObjectRetain(function));
  CALL(TVMObjectFree(function));
  CALL(TVMFuncFree(function));
  REQUIRE(TVMBackendRegisterEnvCAPI("no such function", NULL) == -1);
}

static int Task(int task, TVMParallelGroupEnv* env, void* data) {
  ((int*)data)[task] = env->num_task;
  return TVMBackendParallelBarrier(task, env);
}
static int Once(void* data) { return ++*(int*)data, 0; }

static void UseBackend(void) {
  int counts[64] = {0}, once = 0;
  void* handle = NULL;
  void* workspace = TVMBackendAllocWorkspace(kDLCPU, 0, 256, kDLFloat, 32);
  REQUIRE(workspace != NULL);
  CALL(TVMBackendFreeWorkspace(kDLCPU, 0, workspace));
  CALL(TVMBackendParallelLaunch(Task, counts, 2));
  REQUIRE(counts[0] == counts[1] && counts[0] >= 1);
  CALL(TVMBackendRunOnce(&handle, Once, &once, 0));
  CALL(TVMBackendRunOnce(&handle, Once, &once, 0));
  REQUIRE(once == 1);
  CALL(TVMBackendRegisterSystemLibSymbol("c_names_symbol", &once));
}

static void UseModules(const char* path) {
  TVMModuleHandle library, other;
  TVMFunctionHandle function, inner;
  CALL(TVMModLoadFromFile(path, "so", &library));
  CALL(TVMModGetFunction(library, "addone", 0, &function));
  REQUIRE(function != NULL);
  CALL(TVMModGetFunction(library, "no_such_function", 1, &inner));
  REQUIRE(inner == NULL);
  REQUIRE(TVMModLoadFromFile("no/such/library.so", "so", &other) == -1);
  REQUIRE(TVMModImport(library, library) == -1);
  CALL(TVMFuncFree(function));
  CALL(TVMModFree(library));
}

int main(int argc, char** argv) {
  REQUIRE(strcmp(TVM_VERSION, "0.18.0") == 0);
  UseFunctions();
  UseArrays();
  UseDevices();
  UseObjects();
  UseBackend();
  UseModules(argv[1]);
  puts("all is well");
  return 0;
}
