// Sessions over a pair of sockets: what they compute, and what a server makes of damaged conversations.
#include <sys/socket.h>
#include <tvm/runtime/registry.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>

#include "check.h"
#include "rpc/client_session.h"
#include "rpc/serve.h"
#include "rpc/sha256.h"

using namespace tvm::runtime;
using namespace tvm::runtime::rpc;

namespace {

constexpr ServeLimits kLimits{1 << 20, 1 << 24, 5};

struct Pair {
  Descriptor ours;
  Descriptor theirs;
};

Pair Connected() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw Failure("socketpair failed");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::thread Serving(Descriptor socket) {
  return std::thread([fd = socket.Release()] {
    Channel channel{Descriptor(fd)};
    ServeSession(&channel, kLimits);
  });
}

// Hands bytes on until their end, and keeps them.
void Forward(int from, int to, std::string* kept) {
  char part[4096];
  ssize_t count;
  while ((count = read(from, part, sizeof(part))) > 0) {
    kept->append(part, count);
    for (ssize_t done = 0; done < count;) {
      ssize_t written = send(to, part + done, count - done, MSG_NOSIGNAL);
      if (written <= 0) return;
      done += written;
    }
  }
  shutdown(to, SHUT_WR);
}

// Calls functions, and moves the bytes of arrays there and back.
void Converse(Descriptor socket) {
  std::shared_ptr<Session> session =
      BeginClientSession(std::make_unique<Channel>(std::move(socket)), "the test", TVMArgs(nullptr, nullptr, 0), false);
  void* echo = session->GetFunction("testing.echo");
  EXPECT(echo != nullptr);
  EXPECT(session->GetFunction("tests.absent") == nullptr);
  TVMValue value;
  value.v_int64 = 42;
  int code = kTVMArgInt;
  int64_t answer = 0;
  session->CallFunc(echo, TVMArgs(&value, &code, 1), [&](TVMArgs result) { answer = result[1]; });
  EXPECT_EQ(answer, 42);
  DLDevice cpu{kDLCPU, 0};
  DLDataType float32{kDLFloat, 32, 1};
  void* data = session->AllocData(cpu, 16, 64, float32);
  int64_t extent = 4;
  DLTensor there{data, cpu, 1, float32, &extent, nullptr, 0};
  const float sent[4] = {1, 2, 3, 4};
  float received[4] = {0, 0, 0, 0};
  session->CopyToRemote(sent, &there, sizeof(sent));
  session->CopyFromRemote(&there, received, sizeof(received));
  EXPECT(std::memcmp(sent, received, sizeof(sent)) == 0);
  session->FreeData(cpu, data);
  session->FreeHandle(echo, kTVMPackedFuncHandle);
  CloseClientSession(session.get());
}

// The bytes that a client sends in a conversation.
std::string Recorded() {
  Pair client = Connected(), server = Connected();
  std::string sent, answered;
  std::thread serving = Serving(std::move(server.theirs));
  std::thread there(Forward, client.theirs.get(), server.ours.get(), &sent);
  std::thread back(Forward, server.ours.get(), client.theirs.get(), &answered);
  Converse(std::move(client.ours));
  for (std::thread* thread : {&serving, &there, &back}) thread->join();
  return sent;
}

void Damage(std::string* content, std::mt19937* random) {
  auto below = [&](size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(*random); };
  for (size_t change = 0; change <= below(3); ++change) {
    size_t place = below(content->size());
    switch (below(4)) {
      case 0: (*content)[place] = static_cast<char>(below(256)); break;
      case 1: content->insert(place, std::string(1 + below(8), static_cast<char>(below(256)))); break;
      case 2: content->replace(place, 8, std::string(8, static_cast<char>(below(2) * 255))); break;
      default: content->erase(place, 1 + below(8));
    }
    if (content->empty()) return;
  }
}

}  // namespace

TEST(digests_are_those_of_the_standards) {
  std::string digest = Sha256("abc"), keyed = HmacSha256("Jefe", "what do ya want for nothing?");
  EXPECT_EQ(static_cast<int>(static_cast<unsigned char>(digest[0])), 0xba);
  EXPECT_EQ(static_cast<int>(static_cast<unsigned char>(digest[31])), 0xad);
  EXPECT_EQ(static_cast<int>(static_cast<unsigned char>(keyed[0])), 0x5b);
  EXPECT_EQ(static_cast<int>(static_cast<unsigned char>(keyed[31])), 0x43);
  EXPECT(AreEqualDigests(digest, Sha256("abc")));
  EXPECT(!AreEqualDigests(digest, keyed));
}

TEST(a_session_calls_functions_and_moves_arrays) {
  Pair pair = Connected();
  std::thread serving = Serving(std::move(pair.theirs));
  Converse(std::move(pair.ours));
  serving.join();
}

TEST(several_sessions_are_served_at_once) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int k = 0; k < 10; ++k) {
        Pair pair = Connected();
        std::thread serving = Serving(std::move(pair.theirs));
        Converse(std::move(pair.ours));
        serving.join();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(damaged_conversations_end) {
  const std::string recorded = Recorded();
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    std::string content = recorded;
    Damage(&content, &random);
    Pair pair = Connected();
    std::thread serving = Serving(std::move(pair.theirs));
    std::string answers;
    std::thread reading([&, fd = pair.ours.get()] {
      char part[4096];
      ssize_t count;
      while ((count = read(fd, part, sizeof(part))) > 0) answers.append(part, count);
    });
    if (!content.empty()) (void)!send(pair.ours.get(), content.data(), content.size(), MSG_NOSIGNAL);
    shutdown(pair.ours.get(), SHUT_WR);
    serving.join();
    reading.join();
  }
}
