// Values that a program reads back to decide how it goes on, and that a kernel would have written.
// No kernel runs on a twin: what it would have written is known by a rule, or it is what was there
// before.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/probes/inject/writer/system.h"
#include "gate/probes/twin/blob.h"
#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {
namespace {

// Answers reads of what a kernel wrote last whose name contains `word`: with `value`, or with 0 but
// for the read number `nth`.
struct Rule {
  char word[64];
  unsigned long value;  // a number
  unsigned long nth;    // from 1 on; 0: each
  unsigned long reads;  // atomic; that were answered
};
constexpr size_t k_most_rules = 16, k_largest_number = 8;
Rule g_rules[k_most_rules];
size_t g_rule_count;
Once g_once;

void add_rule(const char* word, size_t length, unsigned long value, unsigned long nth) {
  if (g_rule_count == k_most_rules || length >= sizeof Rule::word) return;
  Rule& rule = g_rules[g_rule_count];
  ++g_rule_count;
  memcpy(rule.word, word, length);
  rule.value = value;
  rule.nth = nth;
}

// Reads the user's rules for values that programs read: "word:value:nth;…". `word` is a part of a
// kernel's name. The value is for its nth read, or for all without `nth`.
void read_rules() {
  const char* position = getenv(WEIR_TWIN_READS_VARIABLE);
  while (position != nullptr && *position != 0) {
    const size_t length = strcspn(position, ":");
    const char* word = position;
    position += length;
    unsigned long numbers[2] = {};
    for (unsigned long& number : numbers) {
      if (*position != ':') break;
      char* end = nullptr;
      number = strtoul(position + 1, &end, 10);
      position = end;
    }
    add_rule(word, length, numbers[0], numbers[1]);
    position += strcspn(position, ";");
    if (*position == ';') ++position;
  }
  // torch's reductions of a boolean tensor: all() of a mask is true, any() of what is unusual is
  // not.
  add_rule("and_kernel", strlen("and_kernel"), 1, 0);
  add_rule("or_kernel", strlen("or_kernel"), 0, 0);
}

// Answers a read if the rule is for it.
bool answer(Rule* rule, const char* kernel, char* to, size_t bytes) {
  if (strstr(kernel, rule->word) == nullptr) return false;
  const unsigned long read = __atomic_add_fetch(&rule->reads, 1, __ATOMIC_RELAXED);
  const uint64_t value = rule->nth == 0 || rule->nth == read ? rule->value : 0;
  memcpy(to, &value, bytes);
  return true;
}

// Ends the program after 5000 equal reads in a row: it waits for a value that no kernel computes.
void check_loop(const char* to, size_t bytes, const char* kernel) {
  constexpr uint64_t k_max_equal_reads = 5000;
  // Atomic, all three.
  static uint64_t count;
  static const char* last_kernel;
  static uint64_t last_value;
  uint64_t value = bytes;
  memcpy(&value, to, bytes);
  const bool is_same_kernel = __atomic_exchange_n(&last_kernel, kernel, __ATOMIC_RELAXED) == kernel;
  const bool is_same_value =
      is_same_kernel && __atomic_exchange_n(&last_value, value, __ATOMIC_RELAXED) == value;
  if (!is_same_value) {
    __atomic_store_n(&count, 0, __ATOMIC_RELAXED);
    return;
  }
  if (__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) != k_max_equal_reads) return;
  print_line(
      STDERR_FILENO,
      "weir: the program read %lu times %zu bytes that a kernel should have written, and got "
      "%lu each time: no kernel runs on a twin. Give the value by reads: (docs/how-to/"
      "python.md). The kernel: %.200s\n",
      k_max_equal_reads, bytes, value, kernel);
  _exit(EXIT_FAILURE);
}

}  // namespace

void answer_read(char* to, size_t bytes, const char* kernel) {
  if (bytes > k_largest_number) return;
  g_once.run(read_rules);
  Rule* rule = g_rules;
  const Rule* end = rule + g_rule_count;
  while (rule != end && !answer(rule, kernel, to, bytes)) ++rule;
  check_loop(to, bytes, kernel);
}

}  // namespace weir_probe::runtime_twin
