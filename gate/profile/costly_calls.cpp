// Lists the functions that cost a step much more than a call.
#include "gate/profile/costly_calls.hpp"

#include <algorithm>
#include <iterator>

namespace weir::profile {
namespace {

// The most telling first: a log line takes locks and writes, and a wait takes a lock.
constexpr std::string_view k_functions[] = {
    "time.sleep",
    "asyncio.tasks.sleep",
    "logging.Logger._log",
    "copy.deepcopy",
    "torch._C.TensorBase.item",
    "torch._C.TensorBase.tolist",
    "torch._C.TensorBase.cpu",
    "torch._C.TensorBase.numpy",
    "torch._C._cuda_synchronize",
    "gc.collect",
    "subprocess.Popen.__init__",
    "queue.Queue.get",
    "queue.Queue.put",
    "threading.Thread.start",
    "threading.start",
    "threading.Event.wait",
    "threading.Condition.wait",
    // A module that was imported before is no such call.
    "_frozen_importlib._find_and_load",
    "importlib._bootstrap._find_and_load",
    "json.dumps",
    "pickle.dumps",
    "_pickle.dumps",
    "_pickle.loads",
    "print",
    "io.open",
    "_io.open",
    "_io.TextIOWrapper.write",
    "_io.TextIOWrapper.flush",
    "_io.BufferedWriter.flush",
    "_io.FileIO.write",
    "select.select",
    "select.poll.poll",
    "select.epoll.poll",
    "_signal.pause",
    "_signal.sigtimedwait",
    "_signal.sigwait",
    "_signal.sigwaitinfo",
    "posix.fsync",
    "posix.fdatasync",
    "posix.sync",
    "posix.sched_yield",
    "posix.system",
    "posix.wait",
    "posix.wait4",
    "posix.waitid",
    "posix.waitpid",
    "fcntl.flock",
    "fcntl.lockf",
    "mmap.mmap.flush",
    "marshal.dumps",
    "_socket.socket.accept",
    "_socket.socket.connect",
    "_socket.socket.recv",
    "_socket.socket.recv_into",
    "_socket.socket.send",
    "_socket.socket.sendall",
    "_multiprocessing.SemLock.acquire",
    "_queue.SimpleQueue.get",
    "_thread.start_joinable_thread",
    "_thread.start_new_thread",
    "_thread._ThreadHandle.join",
    "_thread.RLock.acquire",
    "_thread.lock.acquire",
    "ctypes.clock_nanosleep",
    "ctypes.epoll_wait",
    "ctypes.fdatasync",
    "ctypes.fsync",
    "ctypes.nanosleep",
    "ctypes.poll",
    "ctypes.ppoll",
    "ctypes.pselect",
    "ctypes.pthread_create",
    "ctypes.pthread_join",
    "ctypes.sched_yield",
    "ctypes.select",
    "ctypes.sem_wait",
    "ctypes.sigtimedwait",
    "ctypes.sigwait",
    "ctypes.sleep",
    "ctypes.sync",
    "ctypes.syscall",
    "ctypes.usleep",
};

}  // namespace

std::optional<std::size_t> rank_costly_call(std::string_view function) {
  const auto place = std::ranges::find(k_functions, function);
  if (place == std::end(k_functions)) return std::nullopt;
  return static_cast<std::size_t>(place - std::begin(k_functions));
}

bool waits_for_threads(std::string_view function) {
  constexpr std::string_view k_modules[] = {"_multiprocessing.", "_queue.",   "_thread.", "queue.",
                                            "select.",           "threading."};
  return std::ranges::any_of(k_modules,
                             [&](std::string_view module) { return function.starts_with(module); });
}

}  // namespace weir::profile
