// Runs a model from a shared library, in C++17.
//
// usage: deploy resnet18.so input.bin
#include <tvm/runtime/module.h>

#include "top5.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s library input\n", argv[0]);
    return 2;
  }
  try {
    PrintTop5(tvm::runtime::Module::LoadFromFile(argv[1]), argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
