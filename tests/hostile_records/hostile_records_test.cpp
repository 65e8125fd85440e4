// Judges records that a pull request could write so that judging takes as much as it can, and shows
// traces of very many names. Each has to end within 10 s of processor time and 256 MiB, whatever
// its verdict is.
//
//   WEIR_HOSTILE_RECORDS=10000 build/tests/hostile_records/hostile_records_test    so many records
//   WEIR_HOSTILE_SEED=7 build/tests/hostile_records/hostile_records_test           one, in detail
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/app/program.hpp"
#include "gate/sys/world.hpp"

#include "tests/hostile_records/draw.hpp"

namespace weir::hostile {
namespace {

namespace fs = std::filesystem;

constexpr double k_max_seconds = 10;  // of processor time
constexpr long k_max_kib = 256 << 10;
constexpr int k_default_records = 100;

// Exit code of a process that was ended by a signal: 128 and its number, as in a shell.
constexpr int k_signalled = 128;

// What a process took until it ended.
struct Use {
  int exit_code = 0;
  double seconds = 0;  // of processor time
  long kib = 0;        // most memory at once
};

// Runs `work` in a process of its own, which ends with what that returns.
Use run_apart(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    int code = k_signalled;
    try {
      code = work();
    } catch (const std::exception& error) {
      std::cerr << error.what() << '\n';
    }
    _exit(code);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child) std::abort();
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : k_signalled + WTERMSIG(status),
          seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss};
}

int run_program(std::vector<std::string> words) {
  const Use use = run_apart([&] {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execvp(argv.front(), argv.data());
    return k_signalled;
  });
  return use.exit_code;
}

// A folder with a repository whose branch main has the rules that judge runs of others.
class Scene {
 public:
  Scene() {
    std::string pattern = (fs::temp_directory_path() / "weir-hostile-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    folder_ = pattern;
    std::ofstream(folder_ / "weir.yaml")
        << "version: 1\n"
           "engines: {ea: {command: [./bench, '{model}', '{tokens}'], output: llama-bench}}\n"
           "models: {ma: m.gguf}\n"
           "backends: {cpu: {}, vulkan: {}}\n"
           "prompts: {pa: {tokens: 8}}\n"
           "limits: [{metrics: 'kernel_calls:*', exact: true}, {metrics: 'op_calls:*', max: 9}]\n";
    fs::current_path(folder_);
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"git", "init", "-q", "-b", "main"},
          {"git", "add", "weir.yaml"},
          {"git", "-c", "user.name=w", "-c", "user.email=w@w", "commit", "-q", "-m", "rules"}}) {
      if (run_program(words) != 0) std::abort();
    }
  }
  ~Scene() {
    if (std::getenv("WEIR_HOSTILE_KEEP") != nullptr) {
      std::cout << "kept in " << folder_ << '\n';
      return;
    }
    fs::current_path("/");
    fs::remove_all(folder_);
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  // Replaces the files of the record before.
  void put(const DrawnRecord& drawn) const {
    for (const char* run : {"run", "base", "reports"}) fs::remove_all(folder_ / run);
    fs::create_directories(folder_ / "reports");
    for (const auto& [path, text] : drawn.files) {
      fs::create_directories((folder_ / path).parent_path());
      std::ofstream(folder_ / path, std::ios::binary) << text;
    }
  }

 private:
  fs::path folder_;
};

std::vector<const char*> words_of(Command command) {
  std::vector<const char*> words{"weir"};
  if (command == Command::compare) {
    words.insert(words.end(), {"compare", "base", "run"});
  } else {
    words.insert(words.end(), {"gate", "--from", "run"});
  }
  if (command == Command::from_rules) words.insert(words.end(), {"--rules-from", "main"});
  words.insert(words.end(), {"--json", "reports/json", "--markdown", "reports/markdown", "--html",
                             "reports/html", "--junit", "reports/junit", "--openmetrics",
                             "reports/openmetrics"});
  return words;
}

int run_weir(const std::vector<const char*>& words) {
  sys::RealWorld real;
  return app::Program(real.world()).run(static_cast<int>(words.size()), words.data());
}

// Judges the record in the scene, and writes all reports of it.
int judge(Command command) { return run_weir(words_of(command)); }

// Ends this process where it takes far more than a record may.
void limit_this_process() {
  const rlim_t seconds = static_cast<rlim_t>(3 * k_max_seconds);
  const rlimit time{seconds, seconds + 1};
  setrlimit(RLIMIT_CPU, &time);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlim_t bytes = rlim_t{1} << 31;
  const rlimit memory{bytes, bytes};
  setrlimit(RLIMIT_AS, &memory);
#endif
}

void discard_output() {
  const int nowhere = open("/dev/null", O_WRONLY);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, stream);
}

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The worst records of a kind.
struct Worst {
  double seconds = 0;
  long kib = 0;
  std::uint64_t slowest = 0, largest = 0;  // seeds
  std::string slowest_families, largest_families;
};

TEST(HostileRecords, AreJudgedWithinTenSecondsAnd256MiB) {
  if (std::getenv("WEIR_HOSTILE_SEED") != nullptr) GTEST_SKIP() << "one record was asked for";
  const Scene scene;
  const std::uint64_t first = number_of("WEIR_HOSTILE_FIRST", 0);
  const std::uint64_t records = number_of("WEIR_HOSTILE_RECORDS", k_default_records);
  Worst worst;
  std::map<int, std::uint64_t> exit_codes;
  double seconds = 0;
  for (std::uint64_t seed = first; seed < first + records; ++seed) {
    // Drawn apart too, so that this process stays small: what it has is counted for its children.
    int drawn[2];
    ASSERT_EQ(pipe(drawn), 0);
    const Use drawing = run_apart([&] {
      const DrawnRecord record = draw_record(seed);
      scene.put(record);
      const std::string line =
          fmt::format("{} {}", static_cast<int>(record.command), record.families);
      return write(drawn[1], line.data(), line.size()) < 0 ? 1 : 0;
    });
    close(drawn[1]);
    std::string line(256, '\0');
    const auto bytes = read(drawn[0], line.data(), line.size());
    close(drawn[0]);
    ASSERT_EQ(drawing.exit_code, 0) << "seed " << seed;
    ASSERT_GE(bytes, 2) << "seed " << seed;
    line.resize(static_cast<std::size_t>(bytes));
    const auto command = static_cast<Command>(line.front() - '0');
    const std::string families = line.substr(2);
    const Use use = run_apart([&] {
      limit_this_process();
      discard_output();
      return judge(command);
    });
    EXPECT_LT(use.exit_code, k_signalled) << "seed " << seed << ": " << families;
    EXPECT_LE(use.seconds, k_max_seconds) << "seed " << seed << ": " << families;
    EXPECT_LE(use.kib, k_max_kib) << "seed " << seed << ": " << families;
    ++exit_codes[use.exit_code];
    seconds += use.seconds;
    if (std::getenv("WEIR_HOSTILE_LIST") != nullptr) {
      std::cout << fmt::format("{}\t{:.2f}\t{}\t{}\t{}\n", seed, use.seconds, use.kib / 1024,
                               use.exit_code, families)
                << std::flush;
    }
    if (use.seconds > worst.seconds) {
      worst.seconds = use.seconds;
      worst.slowest = seed;
      worst.slowest_families = families;
    }
    if (use.kib > worst.kib) {
      worst.kib = use.kib;
      worst.largest = seed;
      worst.largest_families = families;
    }
  }
  std::cout << fmt::format(
      "{} records took {:.1f} s; the most: {:.2f} s (seed {}: {}), {} MiB (seed {}: {})\n", records,
      seconds, worst.seconds, worst.slowest, worst.slowest_families, worst.kib / 1024,
      worst.largest, worst.largest_families);
  for (const auto& [code, times] : exit_codes) {
    std::cout << fmt::format("exit code {}: {}\n", code, times);
  }
}

// Writes a trace of 200 000 events, each of another name, which gzip packs into 2 MiB.
int write_trace(const std::string& file, char letter) {
  std::ofstream trace(file);
  trace << R"({"traceEvents": [{})";
  for (int i = 0; i < 200'000; ++i) {
    trace << fmt::format(
        R"(,{{"ph": "X", "name": "{}{}", "cat": "kernel", "pid": 1, "tid": 1, "ts": {}, "dur": 1}})",
        std::string(180, letter), i, i);
  }
  trace << "]}\n";
  return trace.good() ? 0 : 1;
}

TEST(HostileTraces, OfManyNamesAreShownWithinTenSecondsAnd256MiB) {
  if (std::getenv("WEIR_HOSTILE_SEED") != nullptr) GTEST_SKIP() << "one record was asked for";
  const Scene scene;
  for (const char letter : {'a', 'b'}) {
    const std::string file = fmt::format("{}.json", letter);
    ASSERT_EQ(run_apart([&] { return write_trace(file, letter); }).exit_code, 0);
    ASSERT_EQ(run_program({"gzip", file}), 0);
  }
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"weir", "profile", "a.json.gz", "--json", "profile.json"},
        {"weir", "compare", "a.json.gz", "b.json.gz", "--json", "compare.json"}}) {
    const Use use = run_apart([&] {
      limit_this_process();
      discard_output();
      return run_weir(words);
    });
    EXPECT_EQ(use.exit_code, 0) << words[1];
    EXPECT_LE(use.seconds, k_max_seconds) << words[1];
    EXPECT_LE(use.kib, k_max_kib) << words[1];
  }
}

// Judges one record in this process, for a profiler.
TEST(HostileRecords, OneThatIsAskedForIsJudgedHere) {
  if (std::getenv("WEIR_HOSTILE_SEED") == nullptr) return;
  const Scene scene;
  const DrawnRecord record = draw_record(number_of("WEIR_HOSTILE_SEED", 0));
  scene.put(record);
  std::cout << record.families << '\n';
  for (const auto& [path, text] : record.files) {
    std::cout << fmt::format("{}: {} bytes\n", path, text.size());
  }
  if (std::getenv("WEIR_HOSTILE_KEEP") != nullptr) return;
  std::cout << fmt::format("exit code {}\n", judge(record.command));
  for (const auto& entry : fs::recursive_directory_iterator(fs::current_path())) {
    if (entry.is_regular_file() && entry.path().string().find(".git/") == std::string::npos) {
      std::cout << fmt::format("{}: {} bytes\n", entry.path().string(), entry.file_size());
    }
  }
}

}  // namespace
}  // namespace weir::hostile
