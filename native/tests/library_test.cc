// Libraries: loaded, unloaded, and refused with a reason.
#include <stdlib.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "arrays.h"
#include "check.h"

using namespace tvm::runtime;

namespace {

Module Compiled() { return Module::LoadFromFile(COMPILED_LIBRARY); }

std::string Bytes() {
  std::ifstream file(COMPILED_LIBRARY, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Loads a library of these bytes.
void Load(const std::string& bytes) {
  char name[] = "/tmp/libraryXXXXXX.so";
  int file = mkstemps(name, 3);
  bool is_written = write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  close(file);
  std::string error;
  try {
    Module::LoadFromFile(name);
  } catch (const Error& caught) {
    error = caught.what();
  }
  unlink(name);
  EXPECT(is_written);
  if (!error.empty()) throw Error(error);
}

}  // namespace

TEST(functions_of_a_library_are_called) {
  Module library = Compiled();
  EXPECT_EQ(std::string(library->type_key()), "library");
  NDArray out = Floats({0, 0});
  library.GetFunction("add")(Floats({1, 2}), Floats({3, 4}), out);
  EXPECT(ValuesOf(out) == (std::vector<float>{4, 6}));
  EXPECT(library.GetFunction("__tvm_main__").defined());
  EXPECT(!library.GetFunction("absent").defined());
  EXPECT_RAISES(library.GetFunction("fail")(), "TypeError: fail: argument 0 needs dtype float32, got int32");
}

TEST(libraries_are_loaded_and_unloaded_many_times) {
  for (int i = 0; i < 50; ++i) {
    PackedFunc negate = Compiled().GetFunction("negate");  // keeps its library
    NDArray out = Floats({0});
    negate(Floats({1}), out);
    EXPECT(ValuesOf(out)[0] == -1);
  }
}

TEST(threads_load_libraries_at_once) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int k = 0; k < 20; ++k) Compiled().GetFunction("negate")(Floats({1}), Floats({0}));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(compiled_code_calls_global_functions) {
  Module library = Compiled();
  EXPECT_RAISES(library.GetFunction("call_from_env")(20), "tests.from_env");
  Registry::Set("tests.from_env", PackedFunc([](TVMArgs args, TVMRetValue* rv) { *rv = int64_t(args[0]) * 2; }), true);
  EXPECT_EQ(int64_t(library.GetFunction("call_from_env")(21)), 42);
  Registry::Remove("tests.from_env");
}

TEST(modules_import_others_without_cycles) {
  Module library = Compiled();
  Module outer = Registry::Find("tvm.graph_executor_factory.create")(
      R"({"nodes": [], "arg_nodes": [], "heads": [], "node_row_ptr": [0],
          "attrs": {"dltype": ["list_str", []], "storage_id": ["list_int", []], "shape": ["list_shape", []]}})",
      library, "default");
  EXPECT(outer.GetFunction("negate", true).defined());
  EXPECT(!outer.GetFunction("negate", false).defined());
  EXPECT_RAISES(library.Import(outer), "import itself");
}

TEST(files_that_are_no_libraries_are_refused) {
  EXPECT_RAISES(Module::LoadFromFile("/nowhere/a.so"), "there is no readable file /nowhere/a.so");
  EXPECT_RAISES(Load(""), "cannot load library");
  EXPECT_RAISES(Load("no library"), "cannot load library");
  EXPECT_RAISES(Module::LoadFromFile(COMPILED_LIBRARY, "xyz"), "no loader for format 'xyz'");
}

TEST(libraries_that_are_cut_off_are_refused) {
  const std::string bytes = Bytes();
  for (size_t size = 0; size < bytes.size() / 2; size += 97) EXPECT_RAISES(Load(bytes.substr(0, size)), "cannot load library");
}

TEST(libraries_for_other_processors_are_refused) {
  std::string bytes = Bytes();
  bytes[18] = static_cast<char>(243);
  bytes[19] = 0;
  EXPECT_RAISES(Load(bytes), "it is for RISC-V, and this machine is");
}
