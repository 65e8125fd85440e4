// Whatever an engine or a profiler wrote -> Observed: which format it is, and what it says.
//
// A format is one file (read_*.cpp) and one line in the table (reading.cpp). All of them take text
// that is coloured, has CR/LF, log lines in between, either decimal mark, or ends in the middle:
// what was whole is read, and a warning says that the rest is missing. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/adapters/printed.hpp"
#include "gate/base/result.hpp"
#include "gate/observed/observed.hpp"

namespace weir::adapters {

struct Format {
  std::string_view name;  // "agave"
  std::string_view what;  // one line for people
  // How sure the text is of this format: 0 not at all, 100 it says so itself.
  int (*recognises)(const Printed& printed);
  // Fails with Code::data when there is nothing of it in the text.
  Result<observed::Observed> (*read)(const Printed& printed);
};

[[nodiscard]] const std::vector<Format>& formats();
[[nodiscard]] const Format* find_format(std::string_view name);

// The most text that is read at once. A Chrome trace may be longer (chrome_trace_reader.hpp).
constexpr std::size_t k_most_read = std::size_t{64} << 20;

// Fails with Code::data: nothing recognises it (the message names what weir reads), it is empty or
// too long, or its format finds nothing in it.
[[nodiscard]] Result<observed::Observed> read_any(const Document& document);
// As one format, whatever the text looks like. Fails with Code::usage on an unknown name.
[[nodiscard]] Result<observed::Observed> read_as(std::string_view format, const Document& document);
// The formats that recognise it, surest first.
[[nodiscard]] std::vector<const Format*> recognised(const Printed& printed);

}  // namespace weir::adapters
