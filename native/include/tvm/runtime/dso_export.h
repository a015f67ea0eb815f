// Functions of a library of one's own that load_module finds by name.
//
//     int SubOne(int x) { return x - 1; }
//     TVM_DLL_EXPORT_TYPED_FUNC(sub_one, SubOne);                     load_module("mine.so")["sub_one"](3)
//     void Count(TVMArgs args, TVMRetValue* rv) { *rv = args.size(); }
//     TVM_DLL_EXPORT_PACKED_FUNC(count, Count);
//
// Also part of packed_func.h.
#ifndef TVM_RUNTIME_DSO_EXPORT_H_
#define TVM_RUNTIME_DSO_EXPORT_H_

#include <tvm/runtime/packed_func.h>

#include <string>
#include <utility>

namespace tvm {
namespace runtime {
namespace detail {

// The end of a packed C function: hands the result to its caller.
inline void ReturnToC(TVMRetValue rv, TVMValue* ret_value, int* ret_code) {
  bool is_text = rv.is_str();
  rv.MoveToCHost(ret_value, ret_code);
  // text would vanish with `rv`: the runtime keeps it until the thread's next call
  if (is_text && TVMCbArgToReturn(ret_value, ret_code) != 0) ThrowLastError();
}

// A method of an object, which `owner` keeps alive.
template <class C, class Method>
PackedFunc BindMethod(C* object, Method method, ObjectPtr<Object> owner, std::string name) {
  return PackedFunc([object, method, owner, name](TVMArgs args, TVMRetValue* rv) {
    if constexpr (std::is_invocable<Method, C*, TVMArgs, TVMRetValue*>::value) {
      (object->*method)(args, rv);
    } else {
      auto call = [&](auto&&... values) { return (object->*method)(std::forward<decltype(values)>(values)...); };
      Signature<Method>::Call(call, name, args, rv);
    }
  });
}

}  // namespace detail

#define TVM_DLL_EXPORT_(ExportName, Call)                                                                       \
  extern "C" TVM_DLL int ExportName(TVMValue* tvm_values, int* tvm_codes, int tvm_count, TVMValue* tvm_result,  \
                                    int* tvm_result_code, void*) {                                              \
    TVM_API_BEGIN();                                                                                            \
    ::tvm::runtime::TVMArgs args(tvm_values, tvm_codes, tvm_count);                                             \
    ::tvm::runtime::TVMRetValue rv;                                                                             \
    Call;                                                                                                       \
    ::tvm::runtime::detail::ReturnToC(std::move(rv), tvm_result, tvm_result_code);                              \
    TVM_API_END();                                                                                              \
  }                                                                                                             \
  static_assert(true, "takes the semicolon")

#define TVM_DLL_EXPORT_PACKED_FUNC(ExportName, Function) TVM_DLL_EXPORT_(ExportName, Function(args, &rv))
#define TVM_DLL_EXPORT_TYPED_FUNC(ExportName, Function) \
  TVM_DLL_EXPORT_(ExportName, auto function = Function; ::tvm::runtime::detail::Signature<decltype(function)>::Call(function, #ExportName, args, &rv))

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_DSO_EXPORT_H_
