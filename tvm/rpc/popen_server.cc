// The main function of a program that serves one session: program <descriptor to read> <descriptor to write>
#include <tvm/runtime/c_runtime_api.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s <read descriptor> <write descriptor>\n", argv[0]);
    return 2;
  }
  TVMValue values[2], result;
  int codes[2] = {kTVMArgInt, kTVMArgInt}, result_code;
  for (int i = 0; i < 2; ++i) values[i].v_int64 = std::atoi(argv[i + 1]);
  TVMFunctionHandle serve = nullptr;
  if (TVMFuncGetGlobal("rpc.ServeDescriptors", &serve) != 0 || serve == nullptr ||
      TVMFuncCall(serve, values, codes, 2, &result, &result_code) != 0) {
    std::fprintf(stderr, "%s: %s\n", argv[0], TVMGetLastError());
    return 1;
  }
  return 0;
}
