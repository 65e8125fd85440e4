// Instructions of an engine's CPU work: how they are counted, and what was counted.
//
// By perf events the engine runs at its own speed and the count is one number
// (sys/perf_events.hpp); by valgrind, which needs no counters in the processor, it runs some fifty
// times slower and the count is known by function. Counts of the two are not the same and never
// compared.
#pragma once

#include <string>
#include <vector>

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
// Code::io when one of the files can not be read: the count would be too low.
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

}  // namespace weir::probes
