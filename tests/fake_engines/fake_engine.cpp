// An engine that behaves in one of many ways: fake_engine MODE [llama-bench's options]
//
// FAKE_ENGINE_MODE stands in for MODE where the first argument is an option, so that the same
// command line can be made to misbehave from outside. FAKE_ENGINE_LOG names a file to which each
// start appends a line "MODE PID P N R". FAKE_ENGINE_NS is how long a token takes (default 10 ms).
// The mode "held" goes on when the file that FAKE_ENGINE_HELD names is gone.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#ifdef __linux__
#include <linux/perf_event.h>
#include <sys/syscall.h>
#endif
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct Options {
  std::string mode = "ok";
  long prompt = 0, tokens = 0, repeats = 1, depth = 0, layers = 0;
  std::string model;
};

Options read_options(int argc, char** argv) {
  Options options;
  int next = 1;
  if (const char* mode = std::getenv("FAKE_ENGINE_MODE")) options.mode = mode;
  if (argc > 1 && argv[1][0] != '-') {
    options.mode = argv[1];
    next = 2;
  }
  for (; next + 1 < argc; next += 2) {
    const std::string_view name(argv[next]);
    const char* value = argv[next + 1];
    if (name == "-p") options.prompt = std::atol(value);
    if (name == "-n") options.tokens = std::atol(value);
    if (name == "-r") options.repeats = std::atol(value);
    if (name == "-d") options.depth = std::atol(value);
    if (name == "-ngl") options.layers = std::atol(value);
    if (name == "-m") options.model = value;
  }
  return options;
}

long long nanoseconds_a_token() {
  const char* ns = std::getenv("FAKE_ENGINE_NS");
  return ns != nullptr ? std::atoll(ns) : 10'000'000LL;
}

// One result as llama-bench prints it.
std::string result(const Options& options, long prompt, long tokens, const char* extra = nullptr) {
  const long long ns = nanoseconds_a_token() * (prompt + tokens);
  std::string samples_ns, samples_ts;
  for (long i = 0; i < options.repeats; ++i) {
    if (i > 0) {
      samples_ns += ", ";
      samples_ts += ", ";
    }
    samples_ns += std::to_string(ns + 1000 * i);
    samples_ts += extra != nullptr ? extra : "100.0";
  }
  return "  {\n    \"build_commit\": \"fa4e000\",\n    \"build_number\": 1,\n    \"cpu_info\": "
         "\"fake\",\n"
         "    \"gpu_info\": \"fake\",\n    \"backends\": \"CPU\",\n    \"model_filename\": \"" +
         options.model +
         "\",\n    \"model_type\": \"fake 1B F16\",\n    \"model_size\": 1000,\n    "
         "\"model_n_params\": 500,\n    \"n_gpu_layers\": " +
         std::to_string(options.layers) +
         ",\n    \"devices\": \"auto\",\n    \"n_prompt\": " + std::to_string(prompt) +
         ",\n    \"n_gen\": " + std::to_string(tokens) +
         ",\n    \"n_depth\": " + std::to_string(options.depth) +
         ",\n    \"avg_ns\": " + (extra != nullptr ? extra : std::to_string(ns)) +
         ",\n    \"stddev_ns\": 0,\n    \"avg_ts\": 100.0,\n    \"stddev_ts\": 0.0,\n"
         "    \"samples_ns\": [ " +
         samples_ns + " ],\n    \"samples_ts\": [ " + samples_ts + " ]\n  }";
}

void print_results(const Options& options, const char* extra = nullptr) {
  std::string text = "[\n";
  if (options.prompt > 0) text += result(options, options.prompt, 0, extra);
  if (options.prompt > 0 && options.tokens > 0) text += ",\n";
  if (options.tokens > 0) text += result(options, 0, options.tokens, extra);
  text += "\n]\n";
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

[[noreturn]] void wait_for_ever() {
  for (;;) pause();
}

[[noreturn]] void hang() {
  std::fputs("ready\n", stdout);
  std::fflush(stdout);
  wait_for_ever();
}

// Prints `bytes` bytes to `fd` as fast as it goes.
void flood(int fd, long long bytes) {
  const std::vector<char> block(1 << 20, 'x');
  while (bytes > 0) {
    const ssize_t written = write(fd, block.data(), block.size());
    if (written <= 0) return;
    bytes -= written;
  }
}

// A grandchild in a session of its own that would live on. With `keep_pipes` it also keeps the
// engine's output open. It has got away when this returns.
void escape(bool keep_pipes, bool ignore_term) {
  int away[2];
  if (pipe(away) != 0) _exit(1);
  if (const pid_t between = fork(); between != 0) {
    close(away[1]);
    char none = 0;
    while (read(away[0], &none, 1) < 0 && errno == EINTR) {
    }
    close(away[0]);
    waitpid(between, nullptr, 0);
    return;
  }
  close(away[0]);
  setsid();
  if (fork() != 0) _exit(0);
  if (ignore_term) signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  if (!keep_pipes) {
    close(1);
    close(2);
  }
  if (const char* path = std::getenv("FAKE_ENGINE_LOG")) {
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0644);
    dprintf(fd, "escaped %d 0 0 0\n", getpid());
    close(fd);
  }
  close(away[1]);
  wait_for_ever();
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  const std::string& mode = options.mode;
  if (const char* path = std::getenv("FAKE_ENGINE_LOG")) {
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0644);
    dprintf(fd, "%s %d %ld %ld %ld\n", mode.c_str(), getpid(), options.prompt, options.tokens,
            options.repeats);
    close(fd);
  }
  std::fprintf(stderr, "fake engine: mode %s\n", mode.c_str());

  if (mode == "ok") {
    print_results(options);
  } else if (mode == "held") {
    const char* hold_file = std::getenv("FAKE_ENGINE_HELD");
    while (hold_file != nullptr && access(hold_file, F_OK) == 0) usleep(1000);
    print_results(options);
  } else if (mode == "exit3") {
    std::fputs("fake engine: cannot open the model\n", stderr);
    return 3;
  } else if (mode == "crash") {
    std::fputs("fake engine: about to crash\n", stderr);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  } else if (mode == "hang") {
    hang();
#ifdef __linux__
  } else if (mode == "perf") {  // counts the work of the process FAKE_ENGINE_WATCHED, 0: its own
    const char* watched = std::getenv("FAKE_ENGINE_WATCHED");
    perf_event_attr event{};
    event.type = PERF_TYPE_SOFTWARE;
    event.size = sizeof event;
    event.config = PERF_COUNT_SW_TASK_CLOCK;
    event.exclude_kernel = 1;
    if (syscall(SYS_perf_event_open, &event, watched == nullptr ? 0 : std::atoi(watched), -1, -1,
                0) < 0) {
      std::perror("fake engine: perf_event_open");
      return 1;
    }
    std::puts("up");
    std::fflush(stdout);
    hang();
#endif
  } else if (mode == "ignore_term") {
    signal(SIGTERM, SIG_IGN);
    hang();
  } else if (mode == "exit_on_term") {
    signal(SIGTERM, [](int) { _exit(0); });
    hang();
  } else if (mode == "silent") {
    return 0;
  } else if (mode == "garbage") {
    std::fputs("\x1b[31m\xff\xfe not json \x01 {]\n", stdout);
  } else if (mode == "truncated_json") {
    std::fputs("[\n", stdout);
    std::string text = result(options, options.prompt, options.tokens);
    std::fputs(text.substr(0, text.size() / 2).c_str(), stdout);
  } else if (mode == "nan") {
    print_results(options, "nan");
  } else if (mode == "flood") {
    flood(STDOUT_FILENO, 1LL << 30);
  } else if (mode == "flood_stderr") {
    flood(STDERR_FILENO, 1LL << 30);
  } else if (mode == "large") {  // 15 MiB, below the default limit
    flood(STDOUT_FILENO, 15LL << 20);
  } else if (mode == "noisy") {  // a result, and much talk
    flood(STDERR_FILENO, 4LL << 20);
    print_results(options);
  } else if (mode == "fork_escape") {
    escape(false, true);
    print_results(options);
  } else if (mode == "fork_escape_pipe") {
    escape(true, true);
    print_results(options);
  } else if (mode == "fork_escape_hang") {
    escape(true, true);
    hang();
  } else if (mode == "fork_bomb") {  // many that left the group, alive when the engine ends
    for (int i = 0; i < 40; ++i) escape(false, true);
  } else if (mode == "slow") {
    usleep(300'000);
    print_results(options);
  } else if (mode == "allocate") {  // 100 MiB, touched
    std::vector<char> memory(100 << 20);
    for (std::size_t i = 0; i < memory.size(); i += 4096) memory[i] = static_cast<char>(i);
    std::fprintf(stderr, "%d\n", memory[memory.size() / 2]);
    print_results(options);
  } else if (mode == "stdin") {  // ends where it reads nothing, as from /dev/null
    char byte = 0;
    return read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 1;
  } else if (mode == "environment") {
    extern char** environ;
    for (char** entry = environ; *entry != nullptr; ++entry) std::puts(*entry);
  } else if (mode == "where") {
    char folder[4096];
    std::puts(getcwd(folder, sizeof folder) != nullptr ? folder : "?");
  } else if (mode == "descriptors") {
    for (int fd = 3; fd < 256; ++fd) {
      if (fcntl(fd, F_GETFD) >= 0) std::printf("%d\n", fd);
    }
  } else if (mode == "signals") {  // prints the inherited signal settings that are not the default
    for (int number = 1; number < 32; ++number) {
      struct sigaction action {};
      sigset_t blocked;
      sigaction(number, nullptr, &action);
      sigprocmask(SIG_BLOCK, nullptr, &blocked);
      if (action.sa_handler == SIG_IGN) std::printf("ignored %d\n", number);
      if (sigismember(&blocked, number) == 1) std::printf("blocked %d\n", number);
    }
  } else if (mode == "wrapper") {  // a script that starts the engine and waits for it
    const pid_t engine = fork();
    if (engine == 0) {
      execl("/proc/self/exe", argv[0], "ignore_term", nullptr);
      _exit(127);
    }
    int status = 0;
    waitpid(engine, &status, 0);
  } else {
    std::fprintf(stderr, "fake engine: no mode \"%s\"\n", mode.c_str());
    return 2;
  }
  return 0;
}
