// Standing in front of methods, by selector, on whatever classes objects turn out to have.
//
// Each method that is hooked gets a function of its own, out of a fixed number: it knows its
// original without asking the runtime, and a method that calls its superclass's finds that one's.
#pragma once

#include "gate/probes/inject/metal/objc.h"

namespace weir_probe::metal {

// Classes that implement one selector: drivers of several GPUs, and debug layers over them.
constexpr uint32_t k_slots = 8;

// A method on its way: calling it goes on to what the program asked for.
template <class R, class... A>
struct Call {
  using Real = R (*)(id, SEL, A...);
  id self;
  SEL selector;
  Real real;
  R operator()(A... arguments) const { return real(self, selector, arguments...); }
};

// The outermost hooked call of this thread: what Metal's own methods call within it (their
// superclass, the object that a debug layer stands in front of) is no call of the program's. Told
// by stack frames: an exception passes through here without unwinding a mark.
extern thread_local const char* t_outermost;

class Within {
 public:
  explicit Within(void* frame) {
    const char* here = static_cast<const char*>(frame);
    outermost_ = t_outermost == nullptr || here >= t_outermost;
    if (outermost_) t_outermost = here;
  }
  ~Within() {
    if (outermost_) t_outermost = nullptr;
  }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;
  [[nodiscard]] bool outermost() const { return outermost_; }

 private:
  bool outermost_;
};

// The functions that stand in front of one selector. `tag` keeps those apart that are counted
// alike.
template <auto around, int tag>
struct Around;
template <class R, class... A, R (*around)(const Call<R, A...>&, A...), int tag>
struct Around<around, tag> {
  using Real = typename Call<R, A...>::Real;
  static inline Real originals[k_slots];
  static inline Method methods[k_slots];
  static inline uint32_t used;

  template <uint32_t slot>
  static R stand_in(id self, SEL selector, A... arguments) {
    Real real = nullptr;
    // There before the first call, but perhaps not yet for this processor.
    while (real == nullptr) real = __atomic_load_n(&originals[slot], __ATOMIC_ACQUIRE);
    const Call<R, A...> call{self, selector, real};
    const Within within(__builtin_frame_address(0));
    return within.outermost() ? around(call, arguments...) : call(arguments...);
  }
  static constexpr Real stand_ins[k_slots] = {stand_in<0>, stand_in<1>, stand_in<2>, stand_in<3>,
                                              stand_in<4>, stand_in<5>, stand_in<6>, stand_in<7>};
};

struct Hook {
  const char* selector;
  const void* stand_ins;  // functions, as are the originals; all arrays of k_slots
  void* originals;
  Method* methods;
  uint32_t* used;
};
#define WEIR_HOOK(selector, around)                                                     \
  {                                                                                     \
    selector, Around<around, __LINE__>::stand_ins, Around<around, __LINE__>::originals, \
        Around<around, __LINE__>::methods, &Around<around, __LINE__>::used              \
  }

struct Hooks {
  const Hook* first;
  size_t count;
};
template <size_t count>
constexpr Hooks hooks_of(const Hook (&all)[count]) {
  return {all, count};
}

// Puts them on the class of `object`, each method once, inherited ones where they are. The caller
// holds a lock. False where a selector has more classes than there is room for.
bool put_hooks(const Hooks& hooks, id object);

}  // namespace weir_probe::metal
