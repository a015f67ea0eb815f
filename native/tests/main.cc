// Runs all tests, or those whose names are given.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "check.h"

#define SANITIZER_OPTIONS extern "C" __attribute__((visibility("default"))) const char*
// Sanitizers end the program where memory cannot be had, and in a child of fork() that starts threads; tests do both.
SANITIZER_OPTIONS __asan_default_options() { return "allocator_may_return_null=1"; }
SANITIZER_OPTIONS __tsan_default_options() { return "allocator_may_return_null=1:die_after_fork=0"; }

int main(int argc, char** argv) {
  int failed = 0;
  int run = 0;
  for (const Test& test : Test::All()) {
    bool is_wanted = argc == 1 || std::any_of(argv + 1, argv + argc, [&](char* name) { return !std::strcmp(name, test.name); });
    if (!is_wanted) continue;
    ++run;
    try {
      test.body();
    } catch (const std::exception& error) {
      std::printf("FAILED %s: %s\n", test.name, error.what());
      ++failed;
    }
  }
  std::printf("%d tests, %d failed\n", run, failed);
  return failed != 0 || run == 0;
}
