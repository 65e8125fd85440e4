// How many rounds of a long test are made.
#pragma once

namespace weir::tests {

// A sanitizer makes a round some twenty times as slow: one of so many is made under it. ci/fuzz
// makes as many as there is time for.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // macros of GCC
inline constexpr int k_one_of = 10;
#else
inline constexpr int k_one_of = 1;
#endif

}  // namespace weir::tests
