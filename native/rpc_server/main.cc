// tvm_rpc: an RPC server without Python. Its options are those of python -m tvm.exec.rpc_server.
#include <signal.h>
#include <tvm/runtime/c_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr const char* kUsage =
    "usage: tvm_rpc server [options]\n"
    "\n"
    "  --host=ADDRESS         the address to listen on (127.0.0.1)\n"
    "  --port=N --port-end=N  the first free port of this range (9091 to 9199)\n"
    "  --key=KEY              the kind of machine, which clients say\n"
    "  --tracker=HOST:PORT    offer this machine at a tracker\n"
    "  --through-proxy        connect to a proxy at host and port\n"
    "  --custom-addr=ADDRESS  the address that the tracker tells clients\n"
    "  --key-file=FILE        a file with a secret that clients prove to know\n"
    "  --insecure-allow-any   let everybody who reaches the address run code here\n"
    "  --session-timeout=S    the most seconds of a session\n"
    "  --stall-timeout=S      the most seconds that a client may stall in the middle of a message (60)\n"
    "  --max-message=BYTES    the longest message (4 GiB)\n"
    "  --max-memory=BYTES     the most memory of a session's arrays (that of the machine)\n"
    "  --silent               say nothing about sessions\n";

int wake_up = -1;

void EndServer(int) {
  ssize_t ignored = write(wake_up, "", 1);
  (void)ignored;
}

std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  for (unsigned char c : text) {
    char escaped[8];
    std::snprintf(escaped, sizeof(escaped), c < 0x20 || c == '"' || c == '\\' ? "\\u%04x" : "%c", c);
    quoted += escaped;
  }
  return quoted + "\"";
}

[[noreturn]] void Fail(const std::string& text) {
  std::fprintf(stderr, "tvm_rpc: %s\n", text.c_str());
  std::exit(2);
}

// The options as the JSON object that rpc.Listen reads.
class Options {
 public:
  void Take(int argc, char** argv) {
    for (int i = 2; i < argc; ++i) {
      std::string option = argv[i], value;
      size_t equals = option.find('=');
      bool has_value = equals != std::string::npos;
      if (has_value) value = option.substr(equals + 1);
      const std::string name = option.substr(0, equals);
      if (name == "--silent") Put("silent", "1");
      else if (name == "--through-proxy") Put("is_proxy", "1");
      else if (name == "--insecure-allow-any") Put("insecure_allow_any", "1");
      else {
        if (!has_value && ++i == argc) Fail(name + " needs a value");
        TakeValue(name, has_value ? value : argv[i]);
      }
    }
  }
  void Put(const std::string& name, const std::string& json) { json_ += (json_.empty() ? "" : ", ") + Quote(name) + ": " + json; }
  std::string json() const { return "{" + json_ + "}"; }

 private:
  static std::string Number(const std::string& name, const std::string& value) {
    char* end = nullptr;
    double number = std::strtod(value.c_str(), &end);
    if (end == value.c_str() || *end != '\0' || !(number >= 0)) Fail(name + " needs a number, got " + value);
    return value;
  }

  void TakeValue(const std::string& name, const std::string& value) {
    if (name == "--tracker") {
      size_t colon = value.rfind(':');
      if (colon == std::string::npos) Fail("--tracker needs HOST:PORT, got " + value);
      Put("tracker_host", Quote(value.substr(0, colon)));
      return Put("tracker_port", Number(name, value.substr(colon + 1)));
    }
    for (const char* text : {"--host", "--key", "--custom-addr", "--key-file"}) {
      if (name == text) return Put(Field(name), Quote(value));
    }
    for (const char* number : {"--port", "--port-end", "--session-timeout", "--stall-timeout", "--max-message", "--max-memory"}) {
      if (name == number) return Put(Field(name), Number(name, value));
    }
    Fail("there is no option " + name + "; tvm_rpc --help tells those that there are");
  }

  // "--key-file" is the field key_file
  static std::string Field(const std::string& name) {
    std::string field = name.substr(2);
    for (char& c : field) c = c == '-' ? '_' : c;
    return field;
  }

  std::string json_;
};

int Listen(const std::string& options) {
  TVMFunctionHandle listen = nullptr;
  if (TVMFuncGetGlobal("rpc.Listen", &listen) != 0 || listen == nullptr) return -1;
  TVMValue values[5], result;
  int codes[5] = {kTVMStr, kTVMNullptr, kTVMNullptr, kTVMNullptr, kTVMNullptr}, result_code;
  std::memset(values, 0, sizeof(values));
  values[0].v_str = options.c_str();
  int rc = TVMFuncCall(listen, values, codes, 5, &result, &result_code);
  TVMFuncFree(listen);
  return rc;
}

bool AsksForHelp(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0 || std::strcmp(argv[i], "-h") == 0) return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  bool is_help = AsksForHelp(argc, argv);
  if (is_help || argc < 2 || std::strcmp(argv[1], "server") != 0) {
    std::fputs(kUsage, is_help ? stdout : stderr);
    return is_help ? 0 : 2;
  }
  Options options;
  options.Take(argc, argv);
  int ends[2];
  if (pipe(ends) != 0) Fail("cannot make a pipe");
  wake_up = ends[1];
  for (int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, EndServer);
  signal(SIGPIPE, SIG_IGN);
  options.Put("control", std::to_string(ends[0]));
  if (Listen(options.json()) == 0) return 0;
  std::fprintf(stderr, "tvm_rpc: %s\n", TVMGetLastError());
  return 1;
}
