// Runs a model that is linked into the program, in C++17: there is no library of the model to ship.
//
// usage: deploy_static input.bin
#include <tvm/runtime/registry.h>

#include "top5.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s input\n", argv[0]);
    return 2;
  }
  try {
    const tvm::runtime::PackedFunc* system_lib = tvm::runtime::Registry::Get("runtime.SystemLib");
    PrintTop5((*system_lib)("resnet18_"), argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
