// Modules of compiled functions.
#include "library.h"

#include <dlfcn.h>
#if defined(__linux__)
#include <link.h>
#endif
#include <tvm/runtime/registry.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <thread>

#include "elf_check.h"
#include "fork.h"
#include "module_pack.h"
#include "processor.h"

namespace tvm {
namespace runtime {
namespace {

// What follows the names of the functions that suit this processor best; empty for those without a version.
//
// Each line names a version and the features that it needs; the last that can run is the best.
std::string ChooseVersion(const char* versions) {
  const char* text = std::getenv("TVM_KERNEL_VERSION");
  std::string wanted = text == nullptr ? "" : text;
  if (wanted == "base") return "";
  std::istringstream lines(versions);
  std::string best;
  for (std::string name, note; lines >> name >> note;) {
    if (!MissingFeatures(note).empty()) continue;
    best = "." + name;
    if (name == wanted) break;
  }
  return best;
}

class SharedLibrary : public Library {
 public:
  explicit SharedLibrary(const std::string& path) {
    is_verified_ = CheckLibrary(path);
    // a bare name would be looked for in the loader's own folders
    std::string place = path.find('/') == std::string::npos ? "./" + path : path;
    // a name that nobody defines is an error here, not the end of the process at its first call
    handle_ = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) ThrowError("cannot load library ", path, ": ", dlerror());
    CheckProcessor(path);
    if (auto* versions = static_cast<const char*>(dlsym(handle_, "__tvm_versions"))) suffix_ = ChooseVersion(versions);
  }
  ~SharedLibrary() { dlclose(handle_); }
  void* GetSymbol(const char* name) override {
    void* own = suffix_.empty() ? nullptr : dlsym(handle_, (name + suffix_).c_str());
    return own != nullptr ? own : dlsym(handle_, name);
  }
  uint64_t SizeAt(void* address) override {
#if !defined(__linux__)
    return 0;
#else
    Dl_info info;
    ElfW(Sym)* symbol = nullptr;
    bool is_found = dladdr1(address, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) != 0 && info.dli_saddr == address;
    return is_found && symbol != nullptr ? symbol->st_size : 0;
#endif
  }
  bool IsVerified() override { return is_verified_; }
  void* Identity() override { return handle_; }

 private:
  // an instruction that the processor lacks would end the process
  void CheckProcessor(const std::string& path) {
    auto* note = static_cast<const char*>(dlsym(handle_, "__tvm_required_features"));
    std::string missing = note == nullptr ? "" : MissingFeatures(note);
    if (missing.empty()) return;
    dlclose(handle_);
    ThrowError("cannot load library ", path, ": it is for a processor with ", missing, ", which this one lacks");
  }

  void* handle_;
  bool is_verified_;
  std::string suffix_;  // of the functions of the version that was chosen
};

// The functions that compiled code calls through pointers of its own.
struct ContextSlot {
  const char* name;
  void* (*function)();
};
#define CONTEXT_SLOT(Name) {"__" #Name, [] { return reinterpret_cast<void*>(Name); }}
constexpr ContextSlot kContextSlots[] = {
    CONTEXT_SLOT(TVMFuncCall),
    CONTEXT_SLOT(TVMAPISetLastError),
    CONTEXT_SLOT(TVMBackendGetFuncFromEnv),
    CONTEXT_SLOT(TVMBackendAllocWorkspace),
    CONTEXT_SLOT(TVMBackendFreeWorkspace),
    CONTEXT_SLOT(TVMBackendParallelLaunch),
    CONTEXT_SLOT(TVMBackendParallelBarrier),
    CONTEXT_SLOT(TVMBackendRunOnce),
    CONTEXT_SLOT(TVMBackendPollSignals),
    CONTEXT_SLOT(TVMBackendAnyListSetPackedArg),
    CONTEXT_SLOT(TVMBackendAnyListResetItem),
    CONTEXT_SLOT(TVMBackendAnyListMoveFromPackedReturn),
};
#undef CONTEXT_SLOT

// What libraries that are linked into the program have registered.
class RegisteredSymbols {
 public:
  void Set(const std::string& name, void* address) {
    // libraries that are loaded one after the other have a slot each, and only the last is remembered
    for (const ContextSlot& slot : kContextSlots) {
      if (name == slot.name) *static_cast<void**>(address) = slot.function();
    }
    std::lock_guard<ForkMutex> lock(mutex_);
    auto [it, is_new] = symbols_.emplace(name, address);
    if (!is_new && it->second != address && name.compare(0, 2, "__") != 0) {
      std::fprintf(stderr, "the system library has two functions '%s'; give its models prefixes\n", name.c_str());
    }
    it->second = address;
  }
  void* Find(const std::string& name) {
    std::lock_guard<ForkMutex> lock(mutex_);
    auto it = symbols_.find(name);
    return it == symbols_.end() ? nullptr : it->second;
  }
  static RegisteredSymbols& Global() {
    static auto* symbols = new RegisteredSymbols();  // outlives every static destructor
    return *symbols;
  }

 private:
  ForkMutex mutex_;
  std::map<std::string, void*> symbols_;
};

// Those whose names start with a prefix, found without it, and the others.
class SystemLibrary : public Library {
 public:
  explicit SystemLibrary(std::string prefix) : prefix_(std::move(prefix)) {}
  void* GetSymbol(const char* name) override {
    void* own = prefix_.empty() ? nullptr : RegisteredSymbols::Global().Find(prefix_ + name);
    return own != nullptr ? own : RegisteredSymbols::Global().Find(name);
  }

 private:
  std::string prefix_;
};

// Code has one slot for its module, so all who load the same library share one module.
class LibraryModule : public ModuleNode {
 public:
  explicit LibraryModule(ObjectPtr<Library> library) : library_(std::move(library)) {
    FillContext(library_.get(), this);
  }
  ~LibraryModule() {
    std::lock_guard<ForkMutex> lock(LiveMutex());
    auto it = Live().find(library_->Identity());
    if (it != Live().end() && it->second == this) Live().erase(it);
  }

  static ObjectPtr<LibraryModule> Of(ObjectPtr<Library> library, bool* is_new) {
    std::unique_lock<ForkMutex> lock(LiveMutex());
    void* identity = library->Identity();
    while (LibraryModule* known = Live()[identity]) {
      *is_new = false;
      if (known->TryIncRef()) return ObjectPtr<LibraryModule>::Adopt(known);
      // its last holder lets go of it: the slots may be filled again when it has left the table
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
    *is_new = true;
    auto module = make_object<LibraryModule>(std::move(library));
    Live()[identity] = module.get();
    return module;
  }

  const char* type_key() const final { return "library"; }
  int GetPropertyMask() const final { return kRunnable; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    return FindInLibrary(library_, name, self);
  }

 private:
  static ForkMutex& LiveMutex() {
    static auto* mutex = new ForkMutex();
    return *mutex;
  }
  static std::map<void*, LibraryModule*>& Live() {
    static auto* live = new std::map<void*, LibraryModule*>();
    return *live;
  }

  ObjectPtr<Library> library_;
};

struct ImportTree {
  std::vector<uint64_t> row_ptr;
  std::vector<uint64_t> child_indices;

  // `complete` has its imports from before.
  void Apply(const std::vector<Module>& modules, const Module& complete) const {
    if (row_ptr.size() != modules.size() + 1) {
      ThrowValueError("the library's import tree has ", row_ptr.size(), " rows for ", modules.size(), " modules");
    }
    for (size_t i = 0; i < modules.size(); ++i) {
      if (row_ptr[i] > row_ptr[i + 1] || row_ptr[i + 1] > child_indices.size()) {
        ThrowValueError("the library's import tree is corrupt");
      }
      for (uint64_t j = row_ptr[i]; j < row_ptr[i + 1]; ++j) {
        if (child_indices[j] >= modules.size()) ThrowValueError("the library's import tree is corrupt");
        if (!modules[i].same_as(complete)) modules[i].Import(modules[child_indices[j]]);
      }
    }
  }
};

uint64_t BlobSize(const char* blob) {
  uint64_t size = 0;
  for (int i = 0; i < 8; ++i) size |= static_cast<uint64_t>(static_cast<unsigned char>(blob[i])) << (8 * i);
  return size;
}

thread_local dmlc::Stream* loader_stream = nullptr;  // what the loader that runs was given

Module LoadModuleFromBinary(const std::string& type_key, ByteReader* reader) {
  const std::string prefix = "runtime.module.loadbinary_";
  PackedFunc load = Registry::Find(prefix + type_key);
  if (!load.defined()) {
    ThrowError("the library contains a module of type '", type_key, "', which this runtime cannot load: ", prefix, type_key,
               " is not registered");
  }
  struct Scope {
    explicit Scope(dmlc::Stream* stream) : outer(loader_stream) { loader_stream = stream; }
    ~Scope() { loader_stream = outer; }
    dmlc::Stream* outer;
  } scope(reader);
  return load(static_cast<void*>(loader_stream));
}

Module LoadEmbeddedModules(const char* blob, const ObjectPtr<Library>& library, const Module& library_module, bool is_new) {
  ByteReader reader(blob + 8, BlobSize(blob), "the library's module blob", ObjectPtr<Object>(library));
  if (library->IsVerified() || CheckPackedModules(blob + 8, BlobSize(blob))) reader.set_verified();
  uint64_t count = reader.Read<uint64_t>();
  std::vector<Module> modules;
  ImportTree tree;
  for (uint64_t i = 0; i < count; ++i) {
    std::string type_key = reader.ReadString();
    if (type_key == "_lib") {
      modules.push_back(library_module);
    } else if (type_key == "_import_tree") {
      tree.row_ptr = reader.ReadVector<uint64_t>();
      tree.child_indices = reader.ReadVector<uint64_t>();
    } else {
      modules.push_back(LoadModuleFromBinary(type_key, &reader));
    }
  }
  if (tree.row_ptr.empty()) {  // the form before import trees: all belong to the library
    for (const Module& module : modules) {
      if (is_new && module.node() != library_module.node()) library_module.Import(module);
    }
    return library_module;
  }
  tree.Apply(modules, is_new ? Module() : library_module);
  if (modules.empty()) return library_module;
  return modules[0];
}

}  // namespace

dmlc::Stream* LoaderStream(void* argument) {
  auto* stream = static_cast<dmlc::Stream*>(argument);
  if (stream == nullptr || stream != loader_stream) ThrowTypeError("this kind of module is loaded from a library only");
  return stream;
}

PackedFunc FindInLibrary(const ObjectPtr<Library>& library, const std::string& name, const ObjectPtr<Object>& owner) {
  void* address;
  if (name == symbol::tvm_module_main) {
    auto* entry = static_cast<const char*>(library->GetSymbol(symbol::tvm_module_main));
    if (entry == nullptr) return PackedFunc();
    address = library->GetSymbol(entry);
  } else {
    address = library->GetSymbol(name.c_str());
  }
  if (address == nullptr) return PackedFunc();
  return WrapPackedCFunc(reinterpret_cast<TVMBackendPackedCFunc>(address), owner);
}

void FillContext(Library* library, ModuleNode* module) {
  for (const ContextSlot& slot : kContextSlots) {
    if (auto* address = static_cast<void**>(library->GetSymbol(slot.name))) *address = slot.function();
  }
  if (auto* context = static_cast<void**>(library->GetSymbol(symbol::tvm_module_ctx))) *context = static_cast<Object*>(module);
}

Module CreateModuleFromLibrary(ObjectPtr<Library> library) {
  bool is_new;
  Module module{ObjectPtr<ModuleNode>(LibraryModule::Of(library, &is_new))};
  auto* blob = static_cast<const char*>(library->GetSymbol(symbol::tvm_dev_mblob));
  if (blob == nullptr) return module;
  uint64_t known_size = library->SizeAt(const_cast<char*>(blob));
  if (known_size != 0 && (known_size < 8 || BlobSize(blob) > known_size - 8)) {
    ThrowError("the library's embedded modules are cut off: ", BlobSize(blob), " bytes announced, ", known_size, " there");
  }
  return LoadEmbeddedModules(blob, library, module, is_new);
}

TVM_REGISTER_GLOBAL("runtime.module.loadfile_so").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = CreateModuleFromLibrary(make_object<SharedLibrary>(std::string(args[0])));
});

// (prefix): one module for each prefix and what is embedded under it; the code has one slot for its module
TVM_REGISTER_GLOBAL("runtime.SystemLib").set_body([](TVMArgs args, TVMRetValue* rv) {
  static auto* mutex = new ForkMutex();
  static auto* modules = new std::map<std::pair<std::string, void*>, Module>();
  std::string prefix = args.size() == 0 ? "" : std::string(args[0]);
  auto library = make_object<SystemLibrary>(prefix);
  std::lock_guard<ForkMutex> lock(*mutex);
  Module& module = (*modules)[{prefix, library->GetSymbol(symbol::tvm_dev_mblob)}];
  if (!module.defined()) module = CreateModuleFromLibrary(library);
  *rv = module;
});

}  // namespace runtime
}  // namespace tvm

int TVMBackendRegisterSystemLibSymbol(const char* name, void* ptr) {
  TVM_API_BEGIN();
  tvm::runtime::RegisteredSymbols::Global().Set(name, ptr);
  TVM_API_END();
}
