// Functions of the dynamic loader, as older systems have them.
//
// glibc 2.34 moved these into libc under a new version; the old one is still there and is what
// older systems have. To be included by each file that calls them, behind <dlfcn.h>.
#pragma once

#include <dlfcn.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#define WEIR_OLD_SYMBOL(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
#elif defined(__GLIBC__) && defined(__aarch64__)
#define WEIR_OLD_SYMBOL(name) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#endif
#ifdef WEIR_OLD_SYMBOL
WEIR_OLD_SYMBOL(dlsym);
WEIR_OLD_SYMBOL(dlopen);
WEIR_OLD_SYMBOL(dladdr);
#endif
