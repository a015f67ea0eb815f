// Reference counts, type keys, arrays and workspaces.
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/ndarray.h>

#include <memory>
#include <thread>
#include <vector>

#include "arrays.h"
#include "check.h"

using namespace tvm::runtime;

namespace {

struct Counted : Object {
  static constexpr uint32_t kTypeIndex = kRuntimeObject;
  explicit Counted(int* live) : live(live) { ++*live; }
  ~Counted() { --*live; }
  int* live;
};

}  // namespace

TEST(the_last_reference_frees_an_object) {
  int live = 0;
  {
    auto first = make_object<Counted>(&live);
    ObjectPtr<Counted> second = first;
    ObjectPtr<Object> base = second;
    EXPECT_EQ(first->use_count(), 3);
    first = nullptr;
    second = nullptr;
    EXPECT_EQ(live, 1);
  }
  EXPECT_EQ(live, 0);
}

TEST(threads_share_objects) {
  int live = 0;
  {
    auto object = make_object<Counted>(&live);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([object] {
        for (int k = 0; k < 1000; ++k) ObjectPtr<Counted> copy = object;
      });
    }
    object = nullptr;
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(live, 0);
}

TEST(type_keys_have_indices) {
  EXPECT_EQ(Object::TypeIndex2Key(kRuntimeNDArray), "runtime.NDArray");
  uint32_t index = Object::TypeKey2Index("tests.Thing");
  EXPECT_EQ(Object::TypeKey2Index("tests.Thing"), index);
  EXPECT_EQ(Object::TypeIndex2Key(index), "tests.Thing");
  unsigned found = 0;
  EXPECT_EQ(TVMObjectTypeKey2Index("tests.Thing", &found), 0);
  EXPECT_EQ(found, index);
}

TEST(foreign_objects_are_finalised) {
  static int finalised;
  finalised = 0;
  auto fin = [](void*) { ++finalised; };
  int thing = 0;
  TVMObjectHandle handle;
  EXPECT_EQ(TVMObjectWrapForeign(&thing, fin, &handle), 0);
  EXPECT(TVMObjectUnwrapForeign(handle, fin) == &thing);
  EXPECT_EQ(TVMObjectRetain(handle), 0);
  EXPECT_EQ(TVMObjectFree(handle), 0);
  EXPECT_EQ(finalised, 0);
  EXPECT_EQ(TVMObjectFree(handle), 0);
  EXPECT_EQ(finalised, 1);
}

TEST(arrays_are_aligned_and_copied) {
  NDArray array = Floats({1, 2, 3});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(array->data) % kAllocAlignment, uintptr_t{0});
  NDArray copy = array.CopyTo(kCpu);
  EXPECT(ValuesOf(copy) == (std::vector<float>{1, 2, 3}));
  EXPECT(copy->data != array->data);
  EXPECT_RAISES(array.CopyFrom(Floats({1})), "equal sizes");
}

TEST(empty_arrays_have_an_address) {
  NDArray array = NDArray::Empty({4, 0, 2}, kFloat32, kCpu);
  EXPECT(array->data != nullptr);
  EXPECT_EQ(DataBytes(*array.tensor()), size_t{0});
  array.CopyFrom(NDArray::Empty({0}, kFloat32, kCpu));
}

TEST(impossible_shapes_are_refused) {
  EXPECT_RAISES(NDArray::Empty({2, -1}, kFloat32, kCpu), "ValueError");
  EXPECT_RAISES(NDArray::Empty({int64_t{1} << 40, int64_t{1} << 40}, kFloat32, kCpu), "too large");
  EXPECT_RAISES(NDArray::Empty({1}, kFloat32, (DLDevice{kDLVPI, 0})), "no support for device vpi(0)");
}

TEST(views_keep_the_memory_and_stay_inside) {
  NDArray view;
  {
    NDArray array = Floats({1, 2, 3, 4});
    view = array.CreateView({2}, kFloat32, 8);
    EXPECT_RAISES(array.CreateView({3}, kFloat32, 8), "would occupy bytes");
    EXPECT_RAISES(array.CreateView({1}, kFloat32, uint64_t{1} << 63), "would occupy bytes");
  }
  EXPECT(ValuesOf(view) == (std::vector<float>{3, 4}));
}

TEST(arrays_cross_dlpack_and_are_freed_once) {
  DLManagedTensor* managed = Floats({5, 6}).ToDLPack();
  {
    NDArray array = NDArray::FromDLPack(managed);
    EXPECT(ValuesOf(array) == (std::vector<float>{5, 6}));
  }
  managed = Floats({7}).ToDLPack();
  managed->deleter(managed);
}

TEST(arrays_in_c) {
  int64_t shape[] = {2, 2};
  TVMArrayHandle array;
  EXPECT_EQ(TVMArrayAlloc(shape, 2, kDLFloat, 32, 1, kDLCPU, 0, &array), 0);
  float values[] = {1, 2, 3, 4};
  float found[4];
  EXPECT_EQ(TVMArrayCopyFromBytes(array, values, sizeof(values)), 0);
  EXPECT_EQ(TVMArrayCopyToBytes(array, found, sizeof(found)), 0);
  EXPECT_EQ(found[3], 4.0f);
  EXPECT_EQ(TVMArrayCopyFromBytes(array, values, 3), -1);
  EXPECT_EQ(TVMArrayFree(array), 0);
}

TEST(workspaces_are_used_again) {
  void* first = TVMBackendAllocWorkspace(kDLCPU, 0, 1000, kDLFloat, 32);
  void* second = TVMBackendAllocWorkspace(kDLCPU, 0, 9000, kDLFloat, 32);
  EXPECT(first != second);
  EXPECT_EQ(TVMBackendFreeWorkspace(kDLCPU, 0, second), 0);
  EXPECT_EQ(TVMBackendFreeWorkspace(kDLCPU, 0, first), 0);
  EXPECT(TVMBackendAllocWorkspace(kDLCPU, 0, 1000, kDLFloat, 32) == first);
  EXPECT_EQ(TVMBackendFreeWorkspace(kDLCPU, 0, first), 0);
  EXPECT_EQ(TVMBackendFreeWorkspace(kDLCPU, 0, first), -1);
  EXPECT(TVMBackendAllocWorkspace(kDLCPU, 0, uint64_t{1} << 62, kDLFloat, 32) == nullptr);
  EXPECT(std::string(TVMGetLastError()).find("out of memory") != std::string::npos);
}

TEST(each_thread_has_workspaces_of_its_own) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int k = 1; k < 200; ++k) {
        auto* data = static_cast<char*>(TVMBackendAllocWorkspace(kDLCPU, 0, 100 * k, kDLFloat, 32));
        data[0] = data[100 * k - 1] = 1;
        TVMBackendFreeWorkspace(kDLCPU, 0, data);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}
