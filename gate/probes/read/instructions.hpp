// Instructions of an engine's CPU work: how they are counted, and what was counted.
//
// By perf events the engine runs at its own speed and the count is one number
// (sys/perf_events.hpp); by valgrind, which needs no counters in the processor, it runs some fifty
// times slower and the count is known by function. Counts of the two are not the same and never
// compared.
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
// Time-outs are for engines at their own speed.
inline constexpr double k_valgrind_is_slower = 50;

// `argv` under callgrind, which writes into `folder`. Children are counted too. Settings of the
// user's own (VALGRIND_OPTS, .valgrindrc) are left aside.
[[nodiscard]] std::vector<std::string> under_valgrind(const std::string& valgrind,
                                                      const std::string& folder,
                                                      const std::vector<std::string>& argv);

// What callgrind wrote in `folder`, all processes together. Kept by name are functions of at least
// 1/50 000 of all instructions, at most 300; the rest is "(other)". Fails with Code::data or
// Code::io when one of the files cannot be read: the count would be too low.
[[nodiscard]] Result<profile::ProbeCounts> collect_valgrind(const sys::Files& files,
                                                            const std::string& folder);
// The source files that ran, all processes together, where the engine has debug information. Errors
// as above.
[[nodiscard]] Result<profile::Executed> collect_executed(const sys::Files& files,
                                                         const std::string& folder);
// What valgrind itself had to say, for an engine that failed under it.
[[nodiscard]] std::string valgrind_log(const sys::Files& files, const std::string& folder);

// A counter that others shared or that ran over is no count: Code::data with the reason.
[[nodiscard]] Result<profile::ProbeCounts> counted_by_perf(const sys::PerfCount& count);

// What valgrind's callgrind writes: instructions by function. Pure; the text is hostile.
//
// The format is the one of callgrind's manual ("Callgrind Format Specification"), of which names
// are written once and referred to by number, and positions relative to the line before.

struct Callgrind {
  std::uint64_t total = 0;  // instructions of the process
  // What each function took itself, without what it called; sums up to `total`. Functions that have
  // no symbol are one for each library: "(no symbol) in libggml-cpu.so". Printable, at most 200
  // bytes each.
  std::map<std::string, std::uint64_t> self;
  // The source files of which an instruction ran, inlined ones too, where debug information names
  // them (`fl=`, `fi=`, `fe=`), and programs and libraries (`ob=`) that have none.
  profile::Executed executed{};
  std::set<std::string> described{};  // programs and libraries that have some
};

// Fails with Code::data naming the line on anything that is not a whole, consistent file: no
// instructions among its events, names that were never given, sums that do not agree, a file that
// ends before its totals. Limits: lines of 1 MiB, 1 000 000 functions.
[[nodiscard]] Result<Callgrind> read_callgrind(std::string_view text);

}  // namespace weir::probes
