// A program in the style of the classic deployment guide: a shared library, a system library, a model.
#include <dlpack/dlpack.h>
#include <dmlc/logging.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

void Verify(tvm::runtime::Module mod, std::string fname) {
  tvm::runtime::PackedFunc f = mod.GetFunction(fname);
  ICHECK(f != nullptr);
  DLTensor* x;
  DLTensor* y;
  int ndim = 1;
  int dtype_code = kDLFloat;
  int dtype_bits = 32;
  int dtype_lanes = 1;
  int device_type = kDLCPU;
  int device_id = 0;
  int64_t shape[1] = {10};
  TVMArrayAlloc(shape, ndim, dtype_code, dtype_bits, dtype_lanes, device_type, device_id, &x);
  TVMArrayAlloc(shape, ndim, dtype_code, dtype_bits, dtype_lanes, device_type, device_id, &y);
  for (int i = 0; i < shape[0]; ++i) {
    static_cast<float*>(x->data)[i] = i;
  }
  f(x, y);
  for (int i = 0; i < shape[0]; ++i) {
    ICHECK_EQ(static_cast<float*>(y->data)[i], i + 1.0f);
  }
  LOG(INFO) << "Finish verification of " << fname;
  TVMArrayFree(x);
  TVMArrayFree(y);
}

void VerifyModel(tvm::runtime::Module factory) {
  DLDevice dev{kDLCPU, 0};
  tvm::Device same_device = dev;
  tvm::runtime::Module gmod = factory.GetFunction("default")(same_device);
  tvm::runtime::PackedFunc set_input = gmod.GetFunction("set_input");
  tvm::runtime::PackedFunc get_output = gmod.GetFunction("get_output");
  tvm::runtime::PackedFunc run = gmod.GetFunction("run");
  tvm::runtime::NDArray x = tvm::runtime::NDArray::Empty({2, 2}, DLDataType{kDLFloat, 32, 1}, dev);
  tvm::runtime::NDArray y = tvm::runtime::NDArray::Empty({2, 2}, DLDataType{kDLFloat, 32, 1}, dev);
  std::vector<float> values = {1, 2, 3, 4};
  x.CopyFromBytes(values.data(), values.size() * sizeof(float));
  set_input("x", x);
  run();
  get_output(0, y);
  for (int i = 0; i < 4; ++i) {
    ICHECK_EQ(static_cast<float*>(y->data)[i], 2 * values[i]);
  }
  tvm::runtime::NDArray out = get_output(0);
  std::vector<float> copy(4);
  out.CopyToBytes(copy.data(), copy.size() * sizeof(float));
  ICHECK_EQ(copy[3], 8);
  tvm::runtime::ShapeTuple shape = out.Shape();
  ICHECK_EQ(shape.size(), 2);
  ICHECK_EQ(shape[0], 2);
}

template <typename F>
std::string ErrorOf(F f) {
  try {
    f();
  } catch (const tvm::Error& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("other: ") + e.what();
  }
  return "none";
}

void VerifyErrors() {
  using namespace tvm::runtime;
  int three = 3;
  if (three > 2)
    ICHECK_LT(three, 4) << "an else must not be taken away";
  else
    LOG(FATAL) << "unreachable";
  ICHECK_GE(three, 3);
  CHECK_NE(three, 4);
  std::string failed = ErrorOf([&] { ICHECK_EQ(three, 4) << "not four"; });
  ICHECK(failed.find("InternalError: Check failed: (three == 4)") == 0) << failed;
  ICHECK(failed.find("3 vs. 4") != std::string::npos && failed.find("not four") != std::string::npos) << failed;
  ICHECK(ErrorOf([&] { CHECK(three == 4) << "ValueError: not four"; }).find("ValueError: not four (deploy.cc:") == 0);
  ICHECK(ErrorOf([&] { LOG(FATAL) << "TypeError: broken"; }).find("TypeError: broken (deploy.cc:") == 0);
  ICHECK(ErrorOf([&] { ICHECK_NOTNULL(static_cast<int*>(nullptr)); }).find("InternalError") == 0);
  ICHECK_EQ(*ICHECK_NOTNULL(&three), 3);
  std::string missing = ErrorOf([] { Module::LoadFromFile("no/such/library.so"); });
  ICHECK(missing.find("ValueError: cannot load module") == 0) << missing;
}

int main(int argc, char** argv) {
  using tvm::runtime::Module;
  using tvm::runtime::PackedFunc;
  using tvm::runtime::Registry;
  using tvm::runtime::TypedPackedFunc;
  Module library = Module::LoadFromFile(argv[1]);
  Verify(library, "addone");
  const PackedFunc* load = Registry::Get("runtime.ModuleLoadFromFile");
  ICHECK(load != nullptr);
  Module model = (*load)(argv[2], "so");
  VerifyModel(model);
  ICHECK_EQ(std::string(model->type_key()), "GraphExecutorFactory");
  ICHECK_EQ(model->imports().size(), 1);
  ICHECK(Registry::Get("no.such.function") == nullptr);
  if (argc > 3) Verify((*Registry::Get("runtime.SystemLib"))(), "addone");
  TypedPackedFunc<int(int)> twice([](int x) { return 2 * x; });
  PackedFunc packed = twice;
  int four = packed(2);
  ICHECK_EQ(four, 4);
  VerifyErrors();
  std::puts("all is well");
  return 0;
}
