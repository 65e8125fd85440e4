// Regressions of the host's path, put into the unmodified llama-bench by LD_PRELOAD: WEIR_PLANT
// says which. None of them changes what is computed.
//
//   call    a system call for each token, as a sampler that looks at a file would make
//   futex   a wait for another thread for each token
//   lock    a lock that goes to another thread and back for each op of a token
//   busy    a thread that spins
#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr int k_ops = 61;  // ops per token of tiny-llama

bool planted(const char* what) {
  const char* plant = std::getenv("WEIR_PLANT");
  return plant != nullptr && std::strcmp(plant, what) == 0;
}

std::atomic<int> g_turn{0};

void wait_while(int value) {
  while (g_turn.load() == value) {
    syscall(SYS_futex, &g_turn, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
  }
}

void give(int value) {
  g_turn.store(value);
  syscall(SYS_futex, &g_turn, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// To the other thread and back.
void hand_over() {
  static const bool k_started = [] {
    std::thread([] {
      for (;;) {
        wait_while(0);
        give(0);
      }
    }).detach();
    return true;
  }();
  (void)k_started;
  give(1);
  wait_while(1);
}

}  // namespace

struct llama_batch_as_passed {
  long words[7];  // a structure of this size is passed in memory, whatever is in it
};

extern "C" int llama_decode(void* context, llama_batch_as_passed batch) {
  static const auto k_next =
      reinterpret_cast<int (*)(void*, llama_batch_as_passed)>(dlsym(RTLD_NEXT, "llama_decode"));
  static const bool k_busy = planted("busy");
  if (static std::atomic<bool> begun{false}; k_busy && !begun.exchange(true)) {
    std::thread([] {
      for (volatile long spins = 0;; spins = spins + 1) {
      }
    }).detach();
  }
  if (planted("call")) syscall(SYS_getppid);
  const int times = planted("lock") ? k_ops : planted("futex") ? 1 : 0;
  for (int i = 0; i < times; ++i) hand_over();
  return k_next(context, batch);
}
