// What the headers and static libraries of glibc 2.36 take from it that 2.31 does not have, in
// terms of what it has. Linked into programs by ci/packaging/older-glibc.
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// 2.32, for counters that need not be atomic in a program of one thread: not known, so atomic.
char __libc_single_threaded = 0;

// 2.33 (before it they were in each program). Kernel and library have one layout of it where long
// has 64 bits.
int fstatat(int folder, const char* path, struct stat* into, int flags) {
  return (int)syscall(SYS_newfstatat, folder, path, into, flags);
}
int stat(const char* path, struct stat* into) { return fstatat(AT_FDCWD, path, into, 0); }
int lstat(const char* path, struct stat* into) {
  return fstatat(AT_FDCWD, path, into, AT_SYMLINK_NOFOLLOW);
}
int fstat(int file, struct stat* into) { return (int)syscall(SYS_fstat, file, into); }
int stat64(const char* path, struct stat64* into) { return stat(path, (struct stat*)into); }
int lstat64(const char* path, struct stat64* into) { return lstat(path, (struct stat*)into); }
int fstat64(int file, struct stat64* into) { return fstat(file, (struct stat*)into); }

// 2.34.
int close_range(unsigned first, unsigned last, int flags) {
  return (int)syscall(SYS_close_range, first, last, flags);
}

// 2.36, for std::random_device.
uint32_t arc4random(void) {
  uint32_t random;
  if (getentropy(&random, sizeof random) != 0) abort();
  return random;
}

// 2.35, for exceptions: which library has the code at `pc`, and where it keeps its tables.
struct search {
  uintptr_t pc;
  struct dl_find_object* found;
};

static int look_into(struct dl_phdr_info* info, size_t size, void* data) {
  const struct search* wanted = data;
  (void)size;
  const ElfW(Phdr)* tables = NULL;
  uintptr_t start = UINTPTR_MAX, end = 0;
  int holds = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    const uintptr_t at = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) tables = part;
    if (part->p_type != PT_LOAD) continue;
    if (at < start) start = at;
    if (at + part->p_memsz > end) end = at + part->p_memsz;
    holds |= at <= wanted->pc && wanted->pc - at < part->p_memsz;
  }
  if (!holds) return 0;
  if (tables == NULL) return -1;
  memset(wanted->found, 0, sizeof *wanted->found);
  wanted->found->dlfo_map_start = (void*)start;
  wanted->found->dlfo_map_end = (void*)end;
  wanted->found->dlfo_eh_frame = (void*)(info->dlpi_addr + tables->p_vaddr);
  return 1;
}

int _dl_find_object(void* pc, struct dl_find_object* found) {
  struct search wanted = {(uintptr_t)pc, found};
  return dl_iterate_phdr(look_into, &wanted) == 1 ? 0 : -1;
}

// 2.34 runs a program's constructors by itself; before it, each program brought the function that
// does (init). A program that brings one is an old one to a new glibc, which then leaves them to
// it.
typedef void Constructor(int, char**, char**);
extern Constructor* __preinit_array_start[] __attribute__((weak, visibility("hidden")));
extern Constructor* __preinit_array_end[] __attribute__((weak, visibility("hidden")));
extern Constructor* __init_array_start[] __attribute__((weak, visibility("hidden")));
extern Constructor* __init_array_end[] __attribute__((weak, visibility("hidden")));
extern void _init(void);

static void construct(int argc, char** argv, char** environment) {
  for (Constructor** one = __preinit_array_start; one < __preinit_array_end; ++one)
    (*one)(argc, argv, environment);
  _init();
  for (Constructor** one = __init_array_start; one < __init_array_end; ++one)
    (*one)(argc, argv, environment);
}

int __real___libc_start_main(int (*)(int, char**, char**), int, char**, Constructor*,
                             void (*)(void), void (*)(void), void*);
int __wrap___libc_start_main(int (*program)(int, char**, char**), int argc, char** argv,
                             Constructor* init, void (*fini)(void), void (*loaders_fini)(void),
                             void* stack_end) {
  (void)init;
  return __real___libc_start_main(program, argc, argv, construct, fini, loaders_fini, stack_end);
}
