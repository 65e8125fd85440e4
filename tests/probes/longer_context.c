// Preloaded into llama.cpp: every context is 256 tokens longer than it was asked for, twice as long
// as llama.cpp makes those of up to 256. The parameters are
// passed by value, n_ctx first: on the stack on x86-64, by reference on arm64.
#define _GNU_SOURCE
#include <dlfcn.h>

__attribute__((used)) void* next_init(void);
void* next_init(void) { return dlsym(RTLD_NEXT, "llama_init_from_model"); }

__asm__(
    ".globl llama_init_from_model\n"
    ".type llama_init_from_model, %function\n"
    "llama_init_from_model:\n"
#if defined(__x86_64__)
    "  addl $256, 8(%rsp)\n"
    "  push %rdi\n"
    "  call next_init@PLT\n"
    "  pop %rdi\n"
    "  jmp *%rax\n"
#else
    "  ldr w9, [x1]\n"
    "  add w9, w9, #256\n"
    "  str w9, [x1]\n"
    "  stp x0, x1, [sp, #-32]!\n"
    "  str x30, [sp, #16]\n"
    "  bl next_init\n"
    "  mov x9, x0\n"
    "  ldr x30, [sp, #16]\n"
    "  ldp x0, x1, [sp], #32\n"
    "  br x9\n"
#endif
);
