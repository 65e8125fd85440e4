// The files that a gate's report can be written to.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "gate/report/document.hpp"
#include "gate/report/hints.hpp"

namespace weir::report {

// Settings of a report file besides the verdict.
struct ReportContext {
  Verbs verbs{};                       // commands this build has; no other is named
  std::optional<std::string> run_url;  // https://…: where the run is shown
  std::string figures{};               // script that draws the figures of a page (html.hpp), or ""
};

// A file that a gate's report can be written to.
struct ReportFormat {
  const char* option;  // "--markdown", which takes the file's name
  const char* about;   // the option's help
  std::string (*render)(const Document& document, const ReportContext& context);
  bool is_page =
      false;  // with figures, and machine code of changed kernels (verdict::KernelChange)
};
// All of them, in the order of a help text. Another one is a file here and a line of this table.
[[nodiscard]] std::span<const ReportFormat> report_formats();

}  // namespace weir::report
