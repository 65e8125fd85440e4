// What valgrind's callgrind writes: instructions by function. Pure; the text is hostile.
//
// The format is the one of callgrind's manual ("Callgrind Format Specification"), of which names
// are written once and referred to by number, and positions relative to the line before.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "gate/base/result.hpp"
#include "gate/profile/reach.hpp"

namespace weir::probes {

struct Callgrind {
  std::uint64_t total = 0;  // instructions of the process
  // What each function took itself, without what it called; sums up to `total`. Functions that have
  // no symbol are one for each library: "(no symbol) in libggml-cpu.so". Printable, at most 200
  // bytes each.
  std::map<std::string, std::uint64_t> self;
  // The source files of which an instruction ran, inlined ones too, where debug information names
  // them (`fl=`, `fi=`, `fe=`), and programs and libraries (`ob=`) that have none.
  profile::Executed executed{};
};

// Fails with Code::data naming the line on anything that is not a whole, consistent file: no
// instructions among its events, names that were never given, sums that do not agree, a file that
// ends before its totals. Limits: lines of 1 MiB, 1 000 000 functions.
[[nodiscard]] Result<Callgrind> read_callgrind(std::string_view text);

}  // namespace weir::probes
