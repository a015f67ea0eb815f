// The folder of a session: files that its client has sent. No path leads out of it.
#ifndef TVM_SRC_RPC_FOLDER_H_
#define TVM_SRC_RPC_FOLDER_H_

#include <string>

namespace tvm {
namespace runtime {
namespace rpc {

// A new folder that only this user can read.
std::string MakeSessionFolder();
// Lets the functions tvm.rpc.server.upload and their like work there.
void UseSessionFolder(const std::string& path);
// Removes a folder and all that is in it; links are removed, not followed.
void RemoveFolder(const std::string& path);

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RPC_FOLDER_H_
