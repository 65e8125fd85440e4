// Keeps engines on a device twin from loading a whole mapped file ahead: nobody reads the weights
// there, and a large model with holes in their place would take minutes. Pages that are read are
// loaded when they are.
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gate/probes/inject/ggml/state.h"

using weir_probe::is_on_twin;

namespace {

void* map(void* at, size_t bytes, int protection, int flags, int file, long offset) {
  if (file >= 0 && (flags & MAP_POPULATE) != 0 && is_on_twin()) flags &= ~MAP_POPULATE;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}

}  // namespace

WEIR_EXPORTED void* mmap(void* at, size_t bytes, int protection, int flags, int file,
                         off_t offset) noexcept {
  return map(at, bytes, protection, flags, file, offset);
}
WEIR_EXPORTED void* mmap64(void* at, size_t bytes, int protection, int flags, int file,
                           off64_t offset) noexcept {
  return map(at, bytes, protection, flags, file, offset);
}
WEIR_EXPORTED int posix_madvise(void* at, size_t bytes, int advice) noexcept {
  if (advice == POSIX_MADV_WILLNEED && is_on_twin()) return 0;
  // Like glibc, which ignores this advice.
  if (advice == POSIX_MADV_DONTNEED) return 0;
  return syscall(SYS_madvise, at, bytes, advice) == 0 ? 0 : errno;
}
