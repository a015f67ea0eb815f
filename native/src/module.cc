// Modules in general: look-up of functions, imports, loading and packing.
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <mutex>
#include <unordered_set>

#include "fork.h"
#include "library.h"

namespace tvm {
namespace runtime {
namespace {

bool Imports(ModuleNode* from, ModuleNode* target) {
  std::unordered_set<ModuleNode*> seen;
  std::function<bool(ModuleNode*)> reaches = [&](ModuleNode* node) {
    if (node == target) return true;
    if (!seen.insert(node).second) return false;
    return std::any_of(node->imports().begin(), node->imports().end(), [&](const Module& m) { return reaches(m.node()); });
  };
  return reaches(from);
}

// Held while compiled code looks up a function, which it does once for each place of a call.
ForkMutex& LookupMutex() {
  static auto* mutex = new ForkMutex();
  return *mutex;
}

std::string FormatOf(const std::string& path, const std::string& format) {
  if (!format.empty()) return format;
  size_t dot = path.rfind('.');
  size_t slash = path.rfind('/');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return "";
  std::string suffix = path.substr(dot + 1);
  return suffix == "dll" || suffix == "dylib" || suffix == "dso" ? "so" : suffix;
}

// 0 for what is no kind of device.
int DeviceTypeOf(const std::string& name) {
  for (int type = kDLCUDA; type <= kDLHexagon; ++type) {
    if (name == DeviceName(type)) return type;
  }
  return 0;
}

}  // namespace

PackedFunc Module::GetFunction(const std::string& name, bool query_imports) const {
  return node()->GetFunction(name, query_imports);
}

void Module::Import(Module other) const { node()->Import(std::move(other)); }

Module Module::LoadFromFile(const std::string& path, const std::string& format) {
  std::string suffix = FormatOf(path, format);
  if (!std::ifstream(path).good()) ThrowValueError("cannot load module: there is no readable file ", path);
  PackedFunc load = Registry::Find("runtime.module.loadfile_" + suffix);
  if (!load.defined()) ThrowValueError("cannot load module ", path, ": no loader for format '", suffix, "'");
  return load(path, suffix);
}

void ModuleNode::SaveToFile(const String&, const String&) {
  ThrowError("a module of type '", type_key(), "' cannot be saved to a file");
}

void ModuleNode::SaveToBinary(dmlc::Stream*) { ThrowError("a module of type '", type_key(), "' cannot be serialised"); }

String ModuleNode::GetSource(const String&) {
  ThrowError("a module of type '", type_key(), "' has no source");
}

bool ModuleNode::ImplementsFunction(const String& name, bool query_imports) {
  if (GetFunction(name, ObjectPtr<Object>(this)).defined()) return true;
  return query_imports && std::any_of(imports_.begin(), imports_.end(),
                                      [&](Module& import) { return import->ImplementsFunction(name, true); });
}

PackedFunc ModuleNode::GetFunction(const String& name, bool query_imports) {
  PackedFunc func = GetFunction(name, ObjectPtr<Object>(this));
  if (func.defined() || !query_imports) return func;
  for (Module& import : imports_) {
    func = import->GetFunction(name, true);
    if (func.defined()) return func;
  }
  return PackedFunc();
}

void ModuleNode::Import(Module other) {
  if (!other.defined()) ThrowValueError("import_module needs a module, got None");
  if (Imports(other.node(), this)) ThrowValueError("import_module would make a module import itself");
  imports_.push_back(std::move(other));
}

PackedFuncObj* ModuleNode::GetFuncFromEnv(const String& name) {
  std::lock_guard<ForkMutex> lock(LookupMutex());
  PackedFunc func;
  auto it = imported_funcs_.find(name);
  if (it != imported_funcs_.end()) return it->second.func();
  for (Module& import : imports_) {
    func = import->GetFunction(name, true);
    if (func.defined()) return imported_funcs_.emplace(name, func).first->second.func();
  }
  func = Registry::Find(name);
  // code of another compiler may have been linked with this; without an owner, or it would keep itself alive
  if (!func.defined()) func = GetFunction(name, ObjectPtr<Object>());
  if (!func.defined()) {
    ThrowValueError("compiled code calls the function '", name, "', which is neither imported nor registered");
  }
  // the result is borrowed, so a function that was replaced meanwhile must live on
  bool known = std::any_of(global_funcs_.begin(), global_funcs_.end(), [&](const PackedFunc& f) { return f.same_as(func); });
  if (!known) global_funcs_.push_back(func);
  return func.func();
}

TVM_REGISTER_GLOBAL("runtime.ModuleGetTypeKey").set_body_typed([](Module m) { return std::string(m->type_key()); });
TVM_REGISTER_GLOBAL("runtime.ModuleGetFormat").set_body_typed([](Module m) { return m->GetFormat(); });
TVM_REGISTER_GLOBAL("runtime.ModuleGetSource").set_body_typed([](Module m, std::string format) {
  return m->GetSource(format);
});
TVM_REGISTER_GLOBAL("runtime.ModuleSaveToFile").set_body_typed([](Module m, std::string path, std::string format) {
  m->SaveToFile(path, format);
});
TVM_REGISTER_GLOBAL("runtime.ModuleGetPropertyMask").set_body_typed([](Module m) { return m->GetPropertyMask(); });
TVM_REGISTER_GLOBAL("runtime.ModuleImportsSize").set_body_typed([](Module m) {
  return static_cast<int64_t>(m->imports().size());
});
TVM_REGISTER_GLOBAL("runtime.ModuleGetImport").set_body_typed([](Module m, int64_t i) {
  if (i < 0 || i >= static_cast<int64_t>(m->imports().size())) {
    ThrowValueError("the module has ", m->imports().size(), " imports, got index ", i);
  }
  return m->imports()[i];
});
TVM_REGISTER_GLOBAL("runtime.ModuleClearImports").set_body_typed([](Module m) { m->ClearImports(); });
TVM_REGISTER_GLOBAL("runtime.ModuleLoadFromFile").set_body_typed([](std::string path, std::string format) {
  return Module::LoadFromFile(path, format);
});
TVM_REGISTER_GLOBAL("runtime.ModuleImplementsFunction").set_body_typed([](Module m, std::string name, bool imports) {
  return m->ImplementsFunction(name, imports);
});
TVM_REGISTER_GLOBAL("runtime.RuntimeEnabled").set_body_typed([](std::string target) {
  for (const char* name : {"cpu", "llvm", "c", "system-lib", "ext_dev", "rpc"}) {
    if (target == name) return true;
  }
  int type = target == "nvptx" ? kDLCUDA : DeviceTypeOf(target);
  if (type == 0) return Registry::Find("device_api." + target).defined();
  TVMRetValue exists;
  exists = 0;
  DLDevice device{static_cast<DLDeviceType>(type), 0};
  if (DeviceAPI* api = DeviceAPI::Get(device, true)) api->GetAttr(device, kExist, &exists);
  return static_cast<int>(exists) != 0;
});

}  // namespace runtime
}  // namespace tvm
