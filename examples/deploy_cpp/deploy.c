/* Runs a model from a shared library, in C11, with the C interface of the runtime alone.
 *
 * usage: deploy_c resnet18.so input.bin
 */
#include <stdio.h>
#include <stdlib.h>
#include <tvm/runtime/c_runtime_api.h>

enum { kBest = 5 };

static void Check(int status) {
  if (status == 0) return;
  fprintf(stderr, "%s\n", TVMGetLastError());
  exit(1);
}

static TVMFunctionHandle Find(TVMModuleHandle module, const char* name) {
  TVMFunctionHandle function = NULL;
  Check(TVMModGetFunction(module, name, 0, &function));
  if (function == NULL) {
    fprintf(stderr, "the module has no function %s\n", name);
    exit(1);
  }
  return function;
}

/* Calls a function of the module with one argument, or with none if `code` is negative. */
static TVMValue Call(TVMModuleHandle module, const char* name, TVMValue argument, int code) {
  TVMFunctionHandle function = Find(module, name);
  TVMValue result;
  int result_code;
  Check(TVMFuncCall(function, &argument, &code, code < 0 ? 0 : 1, &result, &result_code));
  Check(TVMFuncFree(function));
  return result;
}

static size_t CountElements(const DLTensor* tensor) {
  size_t count = 1;
  for (int i = 0; i < tensor->ndim; ++i) count *= (size_t)tensor->shape[i];
  return count;
}

static void ReadInput(const char* path, DLTensor* input) {
  size_t bytes = CountElements(input) * sizeof(float);
  void* data = malloc(bytes);
  FILE* file = fopen(path, "rb");
  if (data == NULL || file == NULL || fread(data, 1, bytes, file) != bytes) {
    fprintf(stderr, "cannot read %zu bytes of %s\n", bytes, path);
    exit(1);
  }
  fclose(file);
  Check(TVMArrayCopyFromBytes(input, data, bytes));
  free(data);
}

static void PrintBest(float* scores, size_t count) {
  for (int rank = 0; rank < kBest; ++rank) {
    size_t best = 0;
    for (size_t i = 1; i < count; ++i) {
      if (scores[i] > scores[best]) best = i;
    }
    printf("class %4zu  %.6f\n", best, (double)scores[best]);
    scores[best] = -1e30f; /* not again */
  }
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s library input\n", argv[0]);
    return 2;
  }
  TVMModuleHandle model;
  Check(TVMModLoadFromFile(argv[1], "so", &model));
  TVMValue device = {.v_device = {kDLCPU, 0}};
  TVMModuleHandle executor = Call(model, "default", device, kDLDevice).v_handle;

  TVMArrayHandle input = Call(executor, "get_input", (TVMValue){.v_str = "data"}, kTVMStr).v_handle;
  ReadInput(argv[2], input);
  Call(executor, "run", (TVMValue){0}, -1);

  TVMArrayHandle output = Call(executor, "get_output", (TVMValue){.v_int64 = 0}, kTVMArgInt).v_handle;
  size_t count = CountElements(output);
  float* scores = malloc(count * sizeof(float));
  if (scores == NULL) return 1;
  Check(TVMArrayCopyToBytes(output, scores, count * sizeof(float)));
  PrintBest(scores, count);

  free(scores);
  Check(TVMArrayFree(output));
  Check(TVMArrayFree(input));
  Check(TVMModFree(executor));
  Check(TVMModFree(model));
  return 0;
}
