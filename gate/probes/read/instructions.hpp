// Counts the CPU instructions of an engine.
//
// With perf events (sys/perf_events.hpp) the engine runs at its own speed and the count is one
// number. With valgrind, which needs no counters in the processor, it runs some fifty times slower
// and each function has a count. Counts of the two differ and are never compared.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/profile/counts.hpp"
#include "gate/profile/reach.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/perf_events.hpp"

namespace weir::probes {

inline constexpr const char* k_by_perf = "perf";  // ProbeCounts::probe
inline constexpr const char* k_by_valgrind = "valgrind";
// Time-outs are multiplied by this under valgrind.
inline constexpr double k_valgrind_is_slower = 50;

// The command line that runs `argv` under callgrind, which writes into `folder`. Children are
// counted too. The user's own settings (VALGRIND_OPTS, .valgrindrc) are ignored.
[[nodiscard]] std::vector<std::string> under_valgrind(const std::string& valgrind,
                                                      const std::string& folder,
                                                      const std::vector<std::string>& argv);

// Sums callgrind's files in `folder` over processes. Functions with at least 1/50 000 of all
// instructions keep their names, at most 300 of them; the rest is "(other)". Fails with Code::data
// or Code::io when one of the files cannot be read: the count would be too low.
[[nodiscard]] Result<profile::ProbeCounts> collect_valgrind(const sys::Files& files,
                                                            const std::string& folder);
// The source files that ran in any process, where the engine has debug information. Fails as
// collect_valgrind() does.
[[nodiscard]] Result<profile::Executed> collect_executed(const sys::Files& files,
                                                         const std::string& folder);
// Valgrind's own log, for an engine that failed under it; cut after some 16 KiB.
[[nodiscard]] std::string valgrind_log(const sys::Files& files, const std::string& folder);

// Fails with Code::data where other programs shared the counter, or where it overflowed.
[[nodiscard]] Result<profile::ProbeCounts> perf_counts(const sys::PerfCount& count);

// The counts of one callgrind file ("Callgrind Format Specification" in valgrind's manual). Pure;
// the text is hostile.
struct Callgrind {
  std::uint64_t total = 0;  // instructions of the process
  // Instructions of each function without its callees; their sum is `total`. Functions without a
  // symbol are one entry for each library: "(no symbol) in libggml-cpu.so". Names are printable, at
  // most 200 bytes each.
  std::map<std::string, std::uint64_t> self;
  // Source files of which an instruction ran, also inlined (`fl=`, `fi=`, `fe=`); programs and
  // libraries (`ob=`) without debug information.
  profile::Executed executed{};
  std::set<std::string> described{};  // programs and libraries with debug information
};

// Fails with Code::data and the line's number unless the file is complete and consistent: it counts
// instructions, defines each name before its use, and its functions add up to its totals. Limits:
// lines of 1 MiB, 1 000 000 functions.
[[nodiscard]] Result<Callgrind> read_callgrind(std::string_view text);

}  // namespace weir::probes
