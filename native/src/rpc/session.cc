// The table of this process's sessions.
#include "session.h"

#include <mutex>
#include <vector>

#include "../fork.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

constexpr size_t kMaxSessions = 4096;

struct Table {
  ForkMutex mutex;
  std::vector<std::weak_ptr<Session>> sessions;
  static Table& Global() {
    static auto* table = new Table();  // outlives every static destructor
    return *table;
  }
};

}  // namespace

void Session::Enter(const std::shared_ptr<Session>& session) {
  Table& table = Table::Global();
  std::lock_guard<ForkMutex> lock(table.mutex);
  size_t index = 0;
  while (index < table.sessions.size() && !table.sessions[index].expired()) ++index;
  if (index == kMaxSessions) ThrowError("there are ", kMaxSessions, " RPC sessions in this process, which is the most");
  if (index == table.sessions.size()) table.sessions.emplace_back();
  table.sessions[index] = session;
  session->table_index_ = static_cast<int>(index);
}

std::shared_ptr<Session> Session::At(int table_index) {
  Table& table = Table::Global();
  std::lock_guard<ForkMutex> lock(table.mutex);
  std::shared_ptr<Session> found;
  if (table_index >= 0 && static_cast<size_t>(table_index) < table.sessions.size()) found = table.sessions[table_index].lock();
  if (found == nullptr) ThrowError("the RPC session ", table_index, " of this device has ended");
  return found;
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
