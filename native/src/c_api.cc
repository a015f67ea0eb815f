// C entry points for functions.
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

using namespace tvm::runtime;

namespace {

// Holds the text of the last call's result for its caller.
thread_local TVMRetValue last_text;

void MoveToCaller(TVMRetValue rv, TVMValue* ret_val, int* ret_type_code) {
  rv.MoveToCHost(ret_val, ret_type_code);
  if (*ret_type_code == kTVMStr || *ret_type_code == kTVMBytes) last_text = std::move(rv);
}

class ForeignFunc : public PackedFuncObj {
 public:
  ForeignFunc(TVMPackedCFunc func, void* resource, TVMPackedCFuncFinalizer fin)
      : func_(func), resource_(resource), fin_(fin) {
    caller = [](PackedFuncObj* obj, TVMArgs args, TVMRetValue* rv) {
      auto* self = static_cast<ForeignFunc*>(obj);
      int rc = self->func_(const_cast<TVMValue*>(args.values), const_cast<int*>(args.type_codes), args.num_args, rv,
                           self->resource_);
      if (rc != 0) ThrowLastError();
    };
  }
  ~ForeignFunc() {
    if (fin_) fin_(resource_);
  }

 private:
  TVMPackedCFunc func_;
  void* resource_;
  TVMPackedCFuncFinalizer fin_;
};

}  // namespace

int TVMFuncFree(TVMFunctionHandle func) { return TVMObjectFree(func); }

int TVMFuncCall(TVMFunctionHandle handle, TVMValue* arg_values, int* type_codes, int num_args, TVMValue* ret_val,
                int* ret_type_code) {
  TVM_API_BEGIN();
  auto* func = FromHandle<PackedFuncObj>(handle);
  if (func == nullptr || func->caller == nullptr) ThrowNullReference("a function");
  if (func->direct != nullptr) {
    ret_val->v_handle = nullptr;
    *ret_type_code = kTVMNullptr;
    return func->direct(arg_values, type_codes, num_args, ret_val, ret_type_code, nullptr);
  }
  TVMRetValue rv;
  try {
    func->caller(func, TVMArgs(arg_values, type_codes, num_args), &rv);
  } catch (const ArgumentError& error) {
    if (func->name.empty()) throw;
    throw error.In(func->name);
  }
  MoveToCaller(std::move(rv), ret_val, ret_type_code);
  TVM_API_END();
}

int TVMCFuncSetReturn(TVMRetValueHandle ret, TVMValue* value, int* type_code, int num_ret) {
  TVM_API_BEGIN();
  if (num_ret != 1) ThrowValueError("a packed function returns one value, got ", num_ret);
  static_cast<TVMRetValue*>(ret)->Assign(value[0], type_code[0]);
  TVM_API_END();
}

int TVMCbArgToReturn(TVMValue* value, int* code) {
  TVM_API_BEGIN();
  TVMRetValue rv;
  rv.Assign(*value, *code);
  MoveToCaller(std::move(rv), value, code);
  TVM_API_END();
}

int TVMFuncCreateFromCFunc(TVMPackedCFunc func, void* resource_handle, TVMPackedCFuncFinalizer fin,
                           TVMFunctionHandle* out) {
  TVM_API_BEGIN();
  *out = ObjectPtr<Object>(make_object<ForeignFunc>(func, resource_handle, fin)).release();
  TVM_API_END();
}

int TVMFuncRegisterGlobal(const char* name, TVMFunctionHandle f, int override) {
  TVM_API_BEGIN();
  Registry::Set(name, PackedFunc(ObjectPtr<PackedFuncObj>(FromHandle<PackedFuncObj>(f))), override != 0);
  TVM_API_END();
}

int TVMFuncGetName(TVMFunctionHandle func, const char** out) {
  *out = FromHandle<PackedFuncObj>(func)->name.c_str();
  return 0;
}

int TVMFuncGetGlobal(const char* name, TVMFunctionHandle* out) {
  TVM_API_BEGIN();
  *out = ObjectPtr<Object>(Registry::Find(name).get_mutable()).release();
  TVM_API_END();
}

int TVMFuncListGlobalNames(int* out_size, const char*** out_array) {
  TVM_API_BEGIN();
  static thread_local std::vector<std::string> names;
  static thread_local std::vector<const char*> pointers;
  names = Registry::ListNames();
  pointers.clear();
  for (const std::string& name : names) pointers.push_back(name.c_str());
  *out_size = static_cast<int>(pointers.size());
  *out_array = pointers.data();
  TVM_API_END();
}

int TVMFuncRemoveGlobal(const char* name) {
  TVM_API_BEGIN();
  if (!Registry::Remove(name)) ThrowValueError("no global function is called '", name, "'");
  TVM_API_END();
}

int TVMByteArrayFree(TVMByteArray*) { return 0; }

int TVMModLoadFromFile(const char* file_name, const char* format, TVMModuleHandle* out) {
  TVM_API_BEGIN();
  *out = ObjectPtr<Object>(Module::LoadFromFile(file_name, format ? format : "").get_mutable()).release();
  TVM_API_END();
}

int TVMModImport(TVMModuleHandle mod, TVMModuleHandle dep) {
  TVM_API_BEGIN();
  FromHandle<ModuleNode>(mod)->Import(Module(ObjectPtr<ModuleNode>(FromHandle<ModuleNode>(dep))));
  TVM_API_END();
}

int TVMModGetFunction(TVMModuleHandle mod, const char* func_name, int query_imports, TVMFunctionHandle* out) {
  TVM_API_BEGIN();
  PackedFunc func = FromHandle<ModuleNode>(mod)->GetFunction(func_name, query_imports != 0);
  *out = ObjectPtr<Object>(func.get_mutable()).release();
  TVM_API_END();
}

int TVMModFree(TVMModuleHandle mod) { return TVMObjectFree(mod); }

int TVMBackendGetFuncFromEnv(void* mod_node, const char* func_name, TVMFunctionHandle* out) {
  TVM_API_BEGIN();
  *out = static_cast<Object*>(FromHandle<ModuleNode>(mod_node)->GetFuncFromEnv(func_name));
  TVM_API_END();
}

int TVMBackendAnyListSetPackedArg(void* anylist, int index, TVMValue* args, int* type_codes, int arg_offset) {
  TVM_API_BEGIN();
  TVMArgsSetter(args, type_codes)(arg_offset, static_cast<TVMRetValue*>(anylist)[index]);
  TVM_API_END();
}

int TVMBackendAnyListResetItem(void* anylist, int index) {
  TVM_API_BEGIN();
  static_cast<TVMRetValue*>(anylist)[index] = nullptr;
  TVM_API_END();
}

int TVMBackendAnyListMoveFromPackedReturn(void* anylist, int index, TVMValue* args, int* type_codes, int ret_offset) {
  TVM_API_BEGIN();
  static_cast<TVMRetValue*>(anylist)[index] = TVMRetValue::MoveFromCHost(args[ret_offset], type_codes[ret_offset]);
  TVM_API_END();
}

int TVMBackendRunOnce(void** handle, int (*f)(void*), void* cdata, int nbytes) {
  (void)nbytes;
  if (*handle != nullptr) return 0;
  *handle = reinterpret_cast<void*>(1);
  return f(cdata);
}
