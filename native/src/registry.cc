// The table of global functions.
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <unordered_map>

#include "fork.h"

namespace tvm {
namespace runtime {
namespace {

struct Table {
  ForkMutex mutex;
  std::unordered_map<std::string, PackedFunc> functions;
  static Table& Global() {
    static auto* table = new Table();  // outlives every static destructor
    return *table;
  }
};

}  // namespace

void Registry::Set(const std::string& name, PackedFunc func, bool override) {
  if (!func.defined()) ThrowValueError("global function '", name, "' needs a function, got none");
  Table& table = Table::Global();
  PackedFunc previous;  // dropped after the lock: its finalizer may run foreign code
  std::lock_guard<ForkMutex> lock(table.mutex);
  PackedFunc& slot = table.functions[name];
  if (slot.defined() && !override) {
    ThrowValueError("global function '", name, "' is already registered; pass override=True to replace it");
  }
  previous = slot;
  if (func.func()->name.empty()) func.func()->name = name;
  slot = std::move(func);
}

Registry& Registry::set_body(PackedFunc func) {
  if (on_taken_ == OnTaken::kKeep && Find(name_).defined()) {
    std::fprintf(stderr, "global function '%s' is already registered; that of the library being loaded is left out\n",
                 name_.c_str());
  } else {
    Set(name_, std::move(func), on_taken_ == OnTaken::kReplace);
  }
  return *this;
}

const PackedFunc* Registry::Get(const std::string& name) {
  Table& table = Table::Global();
  std::lock_guard<ForkMutex> lock(table.mutex);
  auto it = table.functions.find(name);
  return it == table.functions.end() ? nullptr : &it->second;
}

PackedFunc Registry::Find(const std::string& name) {
  Table& table = Table::Global();
  std::lock_guard<ForkMutex> lock(table.mutex);
  auto it = table.functions.find(name);
  return it == table.functions.end() ? PackedFunc() : it->second;
}

bool Registry::Remove(const std::string& name) {
  Table& table = Table::Global();
  PackedFunc previous;
  std::lock_guard<ForkMutex> lock(table.mutex);
  auto it = table.functions.find(name);
  if (it == table.functions.end()) return false;
  previous = it->second;
  table.functions.erase(it);
  return true;
}

std::vector<std::string> Registry::ListNames() {
  Table& table = Table::Global();
  std::lock_guard<ForkMutex> lock(table.mutex);
  std::vector<std::string> names;
  for (const auto& entry : table.functions) names.push_back(entry.first);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace runtime
}  // namespace tvm
