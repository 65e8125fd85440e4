// A host such as Python or Node: opens the libraries named after the scene privately, each with a
// ggml of its own, and plays the scene in every one.
#include <cstdio>

#include <dlfcn.h>

int main(int count, char** arguments) {
  using Play = int (*)(const char*);
  Play plays[8] = {};
  for (int i = 2; i < count && i < 10; ++i) {
    void* library = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 4;
    }
    plays[i - 2] = reinterpret_cast<Play>(dlsym(library, "scene_main"));
  }
  for (Play play : plays) {
    if (play == nullptr) break;
    if (const int status = play(arguments[1]); status != 0) return status;
  }
  return 0;
}
