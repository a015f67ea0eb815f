// The imported modules of a library as bytes: what __tvm_dev_mblob holds after its length.
//
// All exportable modules become the library itself ("_lib"); the others are written one after the other, then
// the tree of imports between them, and a checksum, which readers that do not know it leave alone:
//
//     magic (16 bytes), u64 checksum of all before
#include "module_pack.h"

#include <dmlc/memory_io.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_map>

#include "checksum.h"
#include "library.h"

namespace tvm {
namespace runtime {
namespace {

constexpr char kMagic[17] = "\x7fTVM modules 1\n\0";
constexpr size_t kMagicSize = 16;
constexpr size_t kStampSize = kMagicSize + sizeof(uint64_t);

uint64_t ChecksumOf(const char* data, size_t size) {
  Checksum checksum;
  checksum.Add(data, size);
  return checksum.Value();
}

bool IsExportable(ModuleNode* node) { return (node->GetPropertyMask() & kDSOExportable) != 0; }

class ModulePacker {
 public:
  explicit ModulePacker(const Module& root) { Visit(root.node()); }

  std::string Pack() {
    std::string bytes;
    dmlc::MemoryStringStream stream(&bytes);
    bool only_library = groups_.size() == 1 && IsExportable(groups_[0][0]);
    bool has_tree = !only_library;
    stream.Write<uint64_t>(groups_.size() + (has_tree ? 1 : 0));
    for (const auto& group : groups_) {
      if (IsExportable(group[0])) {
        stream.Write(std::string("_lib"));
        continue;
      }
      stream.Write(std::string(group[0]->type_key()));
      group[0]->SaveToBinary(&stream);
    }
    if (has_tree) WriteTree(&stream);
    uint64_t checksum = ChecksumOf(bytes.data(), bytes.size());
    stream.Write(kMagic, kMagicSize);
    stream.Write(&checksum, sizeof(checksum));
    return bytes;
  }

 private:
  void Visit(ModuleNode* node) {
    if (group_of_.count(node)) return;
    if (IsExportable(node) && library_group_ >= 0) {
      groups_[library_group_].push_back(node);
      group_of_[node] = library_group_;
    } else {
      group_of_[node] = groups_.size();
      if (IsExportable(node)) library_group_ = static_cast<int>(groups_.size());
      groups_.push_back({node});
    }
    for (Module& import : node->imports()) Visit(import.node());
  }

  void WriteTree(dmlc::Stream* stream) {
    std::vector<uint64_t> row_ptr{0};
    std::vector<uint64_t> children;
    for (size_t i = 0; i < groups_.size(); ++i) {
      std::vector<uint64_t> row;
      for (ModuleNode* node : groups_[i]) {
        for (Module& import : node->imports()) {
          uint64_t child = group_of_.at(import.node());
          if (child != i && std::find(row.begin(), row.end(), child) == row.end()) row.push_back(child);
        }
      }
      children.insert(children.end(), row.begin(), row.end());
      row_ptr.push_back(children.size());
    }
    stream->Write(std::string("_import_tree"));
    stream->Write(row_ptr);
    stream->Write(children);
  }

  std::vector<std::vector<ModuleNode*>> groups_;
  std::unordered_map<ModuleNode*, uint64_t> group_of_;
  int library_group_{-1};
};

}  // namespace

bool CheckPackedModules(const char* data, size_t size) {
  if (size < kStampSize || !AreChecksumsVerified()) return false;
  const char* stamp = data + size - kStampSize;
  if (std::memcmp(stamp, kMagic, kMagicSize) != 0) return false;
  uint64_t expected;
  std::memcpy(&expected, stamp + kMagicSize, sizeof(expected));
  if (ChecksumOf(data, size - kStampSize) != expected) {
    ThrowValueError("the library's embedded modules are damaged: their checksum is wrong (TVM_CHECKSUM=0 loads them all the same)");
  }
  return true;
}

TVM_REGISTER_GLOBAL("runtime.ModulePackImports").set_body([](TVMArgs args, TVMRetValue* rv) {
  Module module = args[0];
  if (!module.defined()) ThrowTypeError("expected Module, got None");
  std::string bytes = ModulePacker(module).Pack();
  *rv = TVMByteArray{bytes.data(), bytes.size()};
});

}  // namespace runtime
}  // namespace tvm
