/* A loader of compiled libraries with no runtime behind it: it knows the binary contract alone.
 *
 * usage: loader library function size
 *
 * Fills the context of the library with functions of its own, prints what is embedded, and calls the function
 * (or the entry function, if it is "-") on float32 arrays of `size` elements: 0, 1, 2, ... and zeros.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
} Value;

typedef struct {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} Tensor;

typedef struct {
  void* sync_handle;
  int32_t num_task;
} TaskEnv;

typedef int32_t (*PackedFunc)(Value*, int32_t*, int32_t, Value*, int32_t*, void*);

enum { kTensor = 7, kNothing = 4 };

static char last_error[256];
static int allocated, launched, called;
static int context; /* stands for the module */

static void SetLastError(const char* text) { snprintf(last_error, sizeof last_error, "%s", text); }

static void* AllocWorkspace(int device_type, int device_id, uint64_t size, int code, int bits) {
  (void)device_type, (void)device_id, (void)code, (void)bits;
  ++allocated;
  return aligned_alloc(64, (size + 63) / 64 * 64);
}

static int FreeWorkspace(int device_type, int device_id, void* memory) {
  (void)device_type, (void)device_id;
  free(memory);
  return 0;
}

static int ParallelLaunch(int (*task)(int, TaskEnv*, void*), void* data, int count) {
  TaskEnv env = {NULL, count > 0 ? count : 3};
  ++launched;
  for (int i = 0; i < env.num_task; ++i) {
    if (task(i, &env, data) != 0) return -1;
  }
  return 0;
}

static int ParallelBarrier(int task, TaskEnv* env) {
  (void)task, (void)env;
  return 0;
}

/* the one function that this loader knows: y[i] = 10 x[i] */
static int TimesTen(Value* args) {
  Tensor* from = args[0].v_handle;
  Tensor* to = args[1].v_handle;
  for (int64_t i = 0; i < from->shape[0]; ++i) ((float*)to->data)[i] = 10 * ((float*)from->data)[i];
  return 0;
}

static int GetFuncFromEnv(void* module, const char* name, void** out) {
  if (module != &context || strcmp(name, "times_ten") != 0) {
    snprintf(last_error, sizeof last_error, "no function %s", name);
    return -1;
  }
  *out = (void*)TimesTen;
  return 0;
}

static int FuncCall(void* function, Value* args, int* codes, int count, Value* result, int* result_code) {
  (void)codes, (void)count, (void)result;
  ++called;
  *result_code = kNothing;
  return ((int (*)(Value*))function)(args);
}

static void Fill(void* library, const char* slot, void* function) {
  void** address = dlsym(library, slot);
  if (address != NULL) {
    *address = function;
    printf("slot %s\n", slot);
  }
}

/* ---- what is embedded */

static const char* at;
static const char* end;

static const char* Take(uint64_t size) {
  const char* start = at;
  if (size > (uint64_t)(end - at)) {
    printf("the blob is cut off\n");
    exit(1);
  }
  at += size;
  return start;
}

static uint64_t TakeNumber(int bytes) {
  uint64_t value = 0;
  const unsigned char* data = (const unsigned char*)Take(bytes);
  for (int i = 0; i < bytes; ++i) value |= (uint64_t)data[i] << (8 * i);
  return value;
}

static const char* TakeText(uint64_t* size) {
  *size = TakeNumber(8);
  return Take(*size);
}

static void PrintArray(void) {
  uint64_t magic = TakeNumber(8);
  uint64_t reserved = TakeNumber(8);
  uint64_t device_type = TakeNumber(4), device_id = TakeNumber(4), ndim = TakeNumber(4);
  uint64_t code = TakeNumber(1), bits = TakeNumber(1), lanes = TakeNumber(2);
  printf("array %" PRIX64 " %" PRIu64 " device %" PRIu64 ",%" PRIu64 " type %" PRIu64 ",%" PRIu64 ",%" PRIu64 " shape",
         magic, reserved, device_type, device_id, code, bits, lanes);
  for (uint64_t i = 0; i < ndim; ++i) printf(" %" PRIu64, TakeNumber(8));
  uint64_t size = TakeNumber(8);
  Take(size);
  printf(" bytes %" PRIu64 "\n", size);
}

static void PrintFactory(void) {
  uint64_t size;
  const char* json = TakeText(&size);
  printf("graph ");
  for (uint64_t i = 0; i < size; ++i) putchar(json[i] == '\n' ? ' ' : json[i]);
  printf("\n");
  uint64_t arrays = TakeNumber(8), names = TakeNumber(8);
  printf("params %" PRIu64 " %" PRIu64, arrays, names);
  for (uint64_t i = 0; i < names; ++i) {
    const char* name = TakeText(&size);
    printf(" %.*s", (int)size, name);
  }
  printf("\n");
  for (uint64_t i = 0; i < arrays; ++i) PrintArray();
  const char* name = TakeText(&size);
  printf("model %.*s\n", (int)size, name);
}

static void PrintNumbers(const char* title) {
  uint64_t count = TakeNumber(8);
  printf("%s", title);
  for (uint64_t i = 0; i < count; ++i) printf(" %" PRIu64, TakeNumber(8));
  printf("\n");
}

static void PrintEmbedded(const char* blob) {
  at = blob;
  end = blob + 8;
  uint64_t size = TakeNumber(8);
  end = at + size;
  uint64_t count = TakeNumber(8);
  printf("entries %" PRIu64 "\n", count);
  for (uint64_t i = 0; i < count; ++i) {
    const char* key = TakeText(&size);
    printf("entry %.*s\n", (int)size, key);
    if (strncmp(key, "_import_tree", size) == 0) {
      PrintNumbers("rows");
      PrintNumbers("children");
    } else if (strncmp(key, "_lib", size) != 0) {
      PrintFactory();
    }
  }
  printf("left %d\n", (int)(end - at));
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  void* library = dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) {
    printf("%s\n", dlerror());
    return 1;
  }
  Fill(library, "__tvm_module_ctx", &context);
  Fill(library, "__TVMFuncCall", (void*)FuncCall);
  Fill(library, "__TVMAPISetLastError", (void*)SetLastError);
  Fill(library, "__TVMBackendGetFuncFromEnv", (void*)GetFuncFromEnv);
  Fill(library, "__TVMBackendAllocWorkspace", (void*)AllocWorkspace);
  Fill(library, "__TVMBackendFreeWorkspace", (void*)FreeWorkspace);
  Fill(library, "__TVMBackendParallelLaunch", (void*)ParallelLaunch);
  Fill(library, "__TVMBackendParallelBarrier", (void*)ParallelBarrier);
  const char* blob = dlsym(library, "__tvm_dev_mblob");
  if (blob != NULL) PrintEmbedded(blob);

  const char* name = strcmp(argv[2], "-") == 0 ? dlsym(library, "__tvm_main__") : argv[2];
  int64_t size = atoi(argv[3]);
  float* from = aligned_alloc(64, (size * 4 + 63) / 64 * 64);
  float* to = aligned_alloc(64, (size * 4 + 63) / 64 * 64);
  for (int64_t i = 0; i < size; ++i) from[i] = (float)i, to[i] = 0;
  Tensor x = {from, 1, 0, 1, 2, 32, 1, &size, NULL, 0};
  Tensor y = {to, 1, 0, 1, 2, 32, 1, &size, NULL, 0};
  Value args[2] = {{.v_handle = &x}, {.v_handle = &y}};
  int32_t codes[2] = {kTensor, kTensor};
  Value result;
  int32_t result_code = kNothing;
  PackedFunc function = (PackedFunc)dlsym(library, name);
  if (function == NULL) return 1;
  printf("status %d\n", function(args, codes, 2, &result, &result_code, NULL));
  printf("values");
  for (int64_t i = 0; i < size; ++i) printf(" %.6g", to[i]);
  printf("\nallocated %d launched %d called %d\n", allocated, launched, called);
  y.bits = 64; /* a wrong argument is rejected in words */
  printf("status %d\n", function(args, codes, 2, &result, &result_code, NULL));
  printf("error %s\n", last_error);
  return 0;
}
