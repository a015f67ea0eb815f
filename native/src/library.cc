// Modules of compiled functions.
#include "library.h"
#include "processor.h"

#include <dlfcn.h>
#include <elf.h>
#include <tvm/runtime/registry.h>

#include <cstdio>
#include <fstream>
#include <map>

namespace tvm {
namespace runtime {
namespace {

// The processor in the header of an ELF file; 0 if it is none.
int MachineOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  unsigned char header[20] = {};
  file.read(reinterpret_cast<char*>(header), sizeof(header));
  bool is_elf = file && header[0] == 0x7f && header[1] == 'E' && header[2] == 'L' && header[3] == 'F';
  if (!is_elf) return 0;
  return header[5] == 1 ? header[18] | header[19] << 8 : header[19] | header[18] << 8;
}

std::string MachineName(int machine) {
  switch (machine) {
    case 3: return "x86";
    case 8: return "MIPS";
    case 21: return "PowerPC";
    case 40: return "Arm";
    case 62: return "x86-64";
    case 183: return "AArch64";
    case 243: return "RISC-V";
  }
  return Cat("ELF machine ", machine);
}

// The loader's own text for a foreign library is that there is no such file.
void CheckMachine(const std::string& path) {
  int machine = MachineOf(path);
  int ours = MachineOf("/proc/self/exe");
  if (machine == 0 || ours == 0 || machine == ours) return;
  ThrowError("cannot load library ", path, ": it is for ", MachineName(machine), ", and this machine is ", MachineName(ours));
}

// The loader maps the segments that the headers promise, and dies of reading past the end of a file
// that was copied in part.
void CheckLength(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  bool is_read = static_cast<bool>(file.read(reinterpret_cast<char*>(&header), sizeof(header)));
  if (!is_read || header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) return;
  file.seekg(0, std::ios::end);
  uint64_t length = file.tellg();
  file.seekg(header.e_phoff);
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    bool is_whole = static_cast<bool>(file.read(reinterpret_cast<char*>(&segment), sizeof(segment)));
    if (is_whole && (segment.p_type != PT_LOAD || (segment.p_offset <= length && segment.p_filesz <= length - segment.p_offset))) continue;
    ThrowError("cannot load library ", path, ": the file is cut off after ", length, " bytes");
  }
}

class SharedLibrary : public Library {
 public:
  explicit SharedLibrary(const std::string& path) {
    CheckMachine(path);
    if (MachineOf(path) != 0) CheckLength(path);
    handle_ = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle_ == nullptr) ThrowError("cannot load library ", path, ": ", dlerror());
    CheckProcessor(path);
  }
  ~SharedLibrary() { dlclose(handle_); }
  void* GetSymbol(const char* name) override { return dlsym(handle_, name); }
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
    std::lock_guard<std::mutex> lock(mutex_);
    auto [it, is_new] = symbols_.emplace(name, address);
    if (!is_new && it->second != address && name.compare(0, 2, "__") != 0) {
      std::fprintf(stderr, "the system library has two functions '%s'; give its models prefixes\n", name.c_str());
    }
    it->second = address;
  }
  void* Find(const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = symbols_.find(name);
    return it == symbols_.end() ? nullptr : it->second;
  }
  static RegisteredSymbols& Global() {
    static auto* symbols = new RegisteredSymbols();  // outlives every static destructor
    return *symbols;
  }

 private:
  std::mutex mutex_;
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
    std::lock_guard<std::mutex> lock(LiveMutex());
    auto it = Live().find(library_->Identity());
    if (it != Live().end() && it->second == this) Live().erase(it);
  }

  static ObjectPtr<LibraryModule> Of(ObjectPtr<Library> library, bool* is_new) {
    std::lock_guard<std::mutex> lock(LiveMutex());
    LibraryModule*& slot = Live()[library->Identity()];
    *is_new = slot == nullptr || !slot->TryIncRef();
    if (!*is_new) return ObjectPtr<LibraryModule>::Adopt(slot);
    auto module = make_object<LibraryModule>(std::move(library));
    slot = module.get();
    return module;
  }

  const char* type_key() const final { return "library"; }
  int GetPropertyMask() const final { return kRunnable; }
  PackedFunc GetFunction(const std::string& name, const ObjectPtr<Object>& self) final {
    return FindInLibrary(library_, name, self);
  }

 private:
  static std::mutex& LiveMutex() {
    static auto* mutex = new std::mutex();
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

Module LoadModuleFromBinary(const std::string& type_key, ByteReader* reader) {
  const std::string prefix = "runtime.module.loadbinary_";
  PackedFunc load = Registry::Find(prefix + type_key);
  if (!load.defined()) {
    ThrowError("the library contains a module of type '", type_key, "', which this runtime cannot load: ", prefix, type_key,
               " is not registered");
  }
  return load(static_cast<void*>(static_cast<dmlc::Stream*>(reader)));
}

Module LoadEmbeddedModules(const char* blob, const ObjectPtr<Library>& library, const Module& library_module, bool is_new) {
  ByteReader reader(blob + 8, BlobSize(blob), "the library's module blob", ObjectPtr<Object>(library));
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
      if (is_new) library_module.Import(module);
    }
    return library_module;
  }
  tree.Apply(modules, is_new ? Module() : library_module);
  if (modules.empty()) return library_module;
  return modules[0];
}

}  // namespace

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
  return blob == nullptr ? module : LoadEmbeddedModules(blob, library, module, is_new);
}

TVM_REGISTER_GLOBAL("runtime.module.loadfile_so").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = CreateModuleFromLibrary(make_object<SharedLibrary>(std::string(args[0])));
});

// (prefix): one module for each prefix and what is embedded under it; the code has one slot for its module
TVM_REGISTER_GLOBAL("runtime.SystemLib").set_body([](TVMArgs args, TVMRetValue* rv) {
  static auto* mutex = new std::mutex();
  static auto* modules = new std::map<std::pair<std::string, void*>, Module>();
  std::string prefix = args.size() == 0 ? "" : std::string(args[0]);
  auto library = make_object<SystemLibrary>(prefix);
  std::lock_guard<std::mutex> lock(*mutex);
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
