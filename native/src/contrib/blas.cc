// Products of matrices by a BLAS library, opened when it is first used: any for tvm.contrib.cblas, MKL for tvm.contrib.mkl.
#include <dlfcn.h>
#if defined(__linux__)
#include <link.h>
#endif
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "../arguments.h"

namespace tvm {
namespace runtime {
namespace {

// numbers of the C interface to BLAS
constexpr int kRowMajor = 101;
constexpr int kPlain = 111;
constexpr int kTransposed = 112;

template <class T, class Int>
using Gemm = void (*)(int, int, int, Int, Int, Int, T, const T*, Int, const T*, Int, T, T*, Int);

// How libraries call their functions, and how wide their integers are.
struct Naming {
  const char* prefix;
  const char* suffix;
  bool is_wide;
};
constexpr std::array<Naming, 4> kNamings{{{"cblas_", "", false}, {"scipy_cblas_", "", false}, {"scipy_cblas_", "64_", true}, {"cblas_", "64_", true}}};

class Blas {
 public:
  // Raises if none of the libraries is there; `with_loaded` also takes one that this process has loaded already.
  Blas(const std::string& who, const std::vector<std::string>& names, bool with_loaded, const std::string& hint) {
    for (const std::string& name : names) {
      if (TryOpen(name, RTLD_NOW | RTLD_LOCAL)) return;
    }
    if (with_loaded) {
      for (const std::string& path : LoadedLibraries()) {
        if (TryOpen(path, RTLD_NOW | RTLD_NOLOAD)) return;
      }
    }
    std::string tried;
    for (const std::string& name : names) tried += (tried.empty() ? "" : ", ") + name;
    ThrowError(who, " requires a BLAS library, none was found of ", tried, "; ", hint);
  }

  void Multiply(float* c, const float* a, const float* b, bool transa, bool transb, int64_t m, int64_t n, int64_t k) const {
    Call<float>(single_, c, a, b, transa, transb, m, n, k);
  }
  void Multiply(double* c, const double* a, const double* b, bool transa, bool transb, int64_t m, int64_t n, int64_t k) const {
    Call<double>(double_, c, a, b, transa, transb, m, n, k);
  }

 private:
  static std::vector<std::string> LoadedLibraries() {
    std::vector<std::string> found;
#if defined(__linux__)
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* result) {
          if (std::strstr(info->dlpi_name, "blas") != nullptr) static_cast<std::vector<std::string>*>(result)->push_back(info->dlpi_name);
          return 0;
        },
        &found);
#endif
    return found;
  }

  bool TryOpen(const std::string& name, int mode) {
    void* handle = dlopen(name.c_str(), mode);
    if (handle == nullptr) return false;
    for (const Naming& naming : kNamings) {
      auto find = [&](const char* function) { return dlsym(handle, (std::string(naming.prefix) + function + naming.suffix).c_str()); };
      single_ = find("sgemm");
      double_ = find("dgemm");
      is_wide_ = naming.is_wide;
      if (single_ != nullptr && double_ != nullptr) return true;  // it stays open
    }
    dlclose(handle);
    return false;
  }

  template <class T>
  void Call(void* gemm, T* c, const T* a, const T* b, bool transa, bool transb, int64_t m, int64_t n, int64_t k) const {
    is_wide_ ? CallAs<T, int64_t>(gemm, c, a, b, transa, transb, m, n, k) : CallAs<T, int>(gemm, c, a, b, transa, transb, m, n, k);
  }
  template <class T, class Int>
  static void CallAs(void* gemm, T* c, const T* a, const T* b, bool transa, bool transb, int64_t m, int64_t n, int64_t k) {
    auto width = [](int64_t extent) { return static_cast<Int>(extent == 0 ? 1 : extent); };
    reinterpret_cast<Gemm<T, Int>>(gemm)(kRowMajor, transa ? kTransposed : kPlain, transb ? kTransposed : kPlain, static_cast<Int>(m),
                                         static_cast<Int>(n), static_cast<Int>(k), T(1), a, width(transa ? m : k), b,
                                         width(transb ? k : n), T(0), c, width(n));
  }

  void* single_{nullptr};
  void* double_{nullptr};
  bool is_wide_{false};
};

#if defined(__APPLE__)
const std::vector<std::string> kAnyBlas = {"libopenblas.dylib", "/System/Library/Frameworks/Accelerate.framework/Accelerate"};
#else
const std::vector<std::string> kAnyBlas = {"libopenblas.so.0", "libopenblas.so", "libcblas.so.3", "libblas.so.3", "libmkl_rt.so.2"};
#endif

const Blas& AnyBlas() {
  static const auto* blas = new Blas("tvm.contrib.cblas", kAnyBlas, true, "Debian's libopenblas0 is one");
  return *blas;
}

const Blas& Mkl() {
  static const auto* blas = new Blas("tvm.contrib.mkl", {"libmkl_rt.so.2", "libmkl_rt.so.1", "libmkl_rt.so"}, false,
                                     "install MKL (`pip install mkl`), and name its folder in LD_LIBRARY_PATH");
  return *blas;
}

// The arguments of a product: (a, b, c, transa, transb), of 2 axes, or 3 with a batch before them.
struct Product {
  const DLTensor* a;
  const DLTensor* b;
  const DLTensor* c;
  bool transa, transb;
  int64_t batch{1}, m, n, k;

  Product(const char* who, TVMArgs args, int rank)
      : a(&TensorIn(args[0])), b(&TensorIn(args[1])), c(&TensorIn(args[2])), transa(args[3]), transb(args[4]) {
    for (const DLTensor* tensor : {a, b, c}) {
      bool is_real = TypeMatch(tensor->dtype, kDLFloat, 32) || TypeMatch(tensor->dtype, kDLFloat, 64);
      if (tensor->ndim != rank || !is_real || !TypeEqual(tensor->dtype, a->dtype) || !IsContiguous(*tensor)) {
        ThrowValueError(who, " takes contiguous tensors of one type, float32 or float64, with ", rank, " axes, got ",
                        DLDataType2String(tensor->dtype), " of shape ", ShapeText(tensor->shape, tensor->ndim));
      }
    }
    const int64_t *left = a->shape + rank - 2, *right = b->shape + rank - 2, *result = c->shape + rank - 2;
    m = left[transa];
    k = left[!transa];
    n = right[!transb];
    if (rank == 3) batch = c->shape[0];
    bool fits = right[transb] == k && result[0] == m && result[1] == n;
    for (const DLTensor* tensor : {a, b}) fits = fits && (rank == 2 || tensor->shape[0] == batch || tensor->shape[0] == 1);
    if (fits) return;
    ThrowValueError(who, ": the product of ", ShapeText(a->shape, rank), transa ? " transposed" : "", " and ", ShapeText(b->shape, rank),
                    transb ? " transposed" : "", " has no shape ", ShapeText(c->shape, rank));
  }

  template <class T>
  void ComputeAs(const Blas& blas) const {
    auto data = [](const DLTensor* tensor) { return reinterpret_cast<T*>(static_cast<char*>(tensor->data) + tensor->byte_offset); };
    for (int64_t i = 0; i < batch; ++i) {
      int64_t in_a = a->ndim == 3 && a->shape[0] > 1 ? i : 0, in_b = b->ndim == 3 && b->shape[0] > 1 ? i : 0;
      blas.Multiply(data(c) + i * m * n, data(a) + in_a * m * k, data(b) + in_b * k * n, transa, transb, m, n, k);
    }
  }
  void Compute(const Blas& blas) const { a->dtype.bits == 32 ? ComputeAs<float>(blas) : ComputeAs<double>(blas); }
};

void Register(const char* name, int rank, const Blas& (*blas)()) {
  Registry::Register(name).set_body([name, rank, blas](TVMArgs args, TVMRetValue*) { Product(name, args, rank).Compute(blas()); });
}

const bool is_registered = [] {
  Register("tvm.contrib.cblas.matmul", 2, AnyBlas);
  Register("tvm.contrib.cblas.batch_matmul", 3, AnyBlas);
  Register("tvm.contrib.cblas.batch_matmul_iterative", 3, AnyBlas);
  Register("tvm.contrib.mkl.matmul", 2, Mkl);
  Register("tvm.contrib.mkl.batch_matmul", 3, Mkl);
  Register("tvm.contrib.mkl.batch_matmul_iterative", 3, Mkl);
  return true;
}();

}  // namespace
}  // namespace runtime
}  // namespace tvm
