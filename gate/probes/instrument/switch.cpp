// The switch, and who is told what at the end.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gate/probes/inject/writer/system.h"
#include "gate/probes/instrument/state.h"

#define WEIR_EXPORT extern "C" __attribute__((visibility("default")))

WEIR_EXPORT uint32_t weir_profile_flags;
uint32_t weir_profile_flags = 0;
// What `weir doctor` looks for in a program that has the library inside it.
WEIR_EXPORT const char weir_instrument_marker[];
__attribute__((used)) const char weir_instrument_marker[] = "weir-instrument-abi-1";

namespace weir_probe {
namespace {

constexpr const char* k_variable = "WEIR_PROFILE";
constexpr uint32_t k_most_warnings = 64;
uint64_t g_warned[k_most_warnings];
uint32_t g_warnings;
bool g_dump_at_end;

// cb needs the counts it belongs to, dispatch the buffers.
uint32_t whole(uint32_t flags) {
  flags &= WEIR_PROFILE_COUNTS | WEIR_PROFILE_OPS | WEIR_PROFILE_CB | WEIR_PROFILE_DISPATCH;
  if ((flags & WEIR_PROFILE_DISPATCH) != 0) flags |= WEIR_PROFILE_CB;
  if ((flags & WEIR_PROFILE_CB) != 0) flags |= WEIR_PROFILE_COUNTS;
  return flags;
}

uint32_t flags_of(const char* text) {
  static constexpr struct {
    const char* word;
    uint32_t flags;
  } k_words[] = {
      {"counts", WEIR_PROFILE_COUNTS},
      {"ops", WEIR_PROFILE_OPS},
      {"cb", WEIR_PROFILE_CB},
      {"dispatch", WEIR_PROFILE_DISPATCH},
  };
  uint32_t flags = 0;
  while (*text != '\0') {
    const size_t length = strcspn(text, ",");
    bool known = length == 0;
    for (const auto& one : k_words) {
      if (strlen(one.word) == length && strncmp(text, one.word, length) == 0) {
        flags |= one.flags;
        known = true;
      }
    }
    if (!known) weir_warn_once("WEIR_PROFILE knows the words counts, ops, cb and dispatch alone");
    text += length;
    if (*text == ',') ++text;
  }
  return whole(flags);
}

__attribute__((constructor)) void look_at_environment() {
  const char* wanted = environment(k_variable);
  if (wanted == nullptr || wanted[0] == '\0') return;
  const char* folder = environment(WEIR_PROBE_DIR_VARIABLE);
  g.attached = folder != nullptr && folder[0] != '\0';
  g_dump_at_end = !g.attached;
  g.timed = !g.attached;
  weir_profile_flags = flags_of(wanted);
}

__attribute__((destructor)) void tell_at_end() {
  if (!__atomic_load_n(&g.ready, __ATOMIC_ACQUIRE)) return;
  // What ended after the last token belongs to none.
  pthread_mutex_lock(&g.lock);
  take_boundary(0);
  pthread_mutex_unlock(&g.lock);
  if (g_dump_at_end) weir_profile_dump(2);
}

}  // namespace
}  // namespace weir_probe

using namespace weir_probe;

WEIR_EXPORT uint32_t weir_instrument_abi(void) { return WEIR_INSTRUMENT_ABI; }

WEIR_EXPORT int32_t weir_profile_is_enabled(uint32_t flags) {
  return (weir_profile_flags & flags) != 0;
}

WEIR_EXPORT void weir_profile_enable(uint32_t flags) {
  // By the program itself: it asks for the dump when it wants one.
  if (!g.attached) g.timed = true;
  flags = whole(flags);
  if (((flags ^ weir_profile_flags) & WEIR_PROFILE_OPS) != 0) {
    __atomic_add_fetch(&g.epoch, 1, __ATOMIC_RELAXED);
  }
  weir_profile_flags = flags;
}

WEIR_EXPORT uint64_t weir_now(void) { return now_nanoseconds(); }

WEIR_EXPORT void weir_warn_once(const char* text) {
  if (text == nullptr) return;
  const uint64_t hash = hash_text(text, 0);
  pthread_mutex_lock(&g.lock);
  bool known = g_warnings == k_most_warnings;
  for (uint32_t i = 0; i < g_warnings; ++i) known = known || g_warned[i] == hash;
  if (!known) g_warned[g_warnings++] = hash;
  pthread_mutex_unlock(&g.lock);
  if (!known) print(2, "weir: %.400s\n", text);
}
