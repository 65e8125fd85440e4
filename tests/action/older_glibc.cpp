// A program of what moved in glibc, or came to it, since 2.31: constructors, threads, exceptions
// through them, opened libraries, files, random numbers. Linked as releases are
// (ci/packaging/older-glibc), it prints what package_test.mjs has.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <future>
#include <random>
#include <stdexcept>
#include <vector>

#include <dlfcn.h>
#include <sys/stat.h>

namespace {

struct Global {
  Global() { std::puts("constructed"); }
  ~Global() { std::puts("destroyed"); }
} g_global;
thread_local std::vector<int> t_local{1, 2, 3};

std::size_t throws(int value) {
  t_local.push_back(value);
  if (value > 0) throw std::runtime_error("thrown in a thread");
  return t_local.size();
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::future<std::size_t>> answers;
  for (int i = 0; i < 3; ++i) answers.push_back(std::async(std::launch::async, throws, i));
  for (auto& answer : answers) {
    try {
      std::printf("%zu\n", answer.get());
    } catch (const std::exception& error) {
      std::fprintf(stdout, "%s\n", error.what());
    }
  }
  try {
    std::printf("%d\n", static_cast<int>(std::filesystem::file_size("/nowhere")));
  } catch (const std::filesystem::filesystem_error& error) {
    std::printf("%s\n", error.code().message().c_str());
  }
  struct stat file {
  }, output{};
  const bool has_status = lstat(argv[0], &file) == 0 && fstat(1, &output) == 0;
  std::printf("%d\n", has_status && static_cast<std::uintmax_t>(file.st_size) ==
                                        std::filesystem::file_size(argv[0]));
  std::random_device random;
  std::printf("%d %g\n", random() != random() || random() != random(),
              std::hypot(3.0 * argc, 4.0 * argc));
  void* const library = dlopen("libm.so.6", RTLD_NOW);
  std::printf("%d\n", library != nullptr && dlsym(library, "cos") != nullptr);
}
