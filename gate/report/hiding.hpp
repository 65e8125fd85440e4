// Takes what is private out of what an engine or a profiler wrote: before it becomes a page, or the
// JSON that goes to others. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gate/observed/observed.hpp"
#include "gate/report/shown_command.hpp"

namespace weir::report {

class Hiding {
 public:
  // `places`: texts that are to appear nowhere, but for the last part of a path.
  Hiding(std::vector<std::string> places, Private privacy);

  // Of ops, kernels and shapes, which have slashes of their own: paths stay where they may be part
  // of a name ("/model/layers.0/MatMul"), unless a profiler's category says that it is a place in
  // a source.
  [[nodiscard]] std::string name(std::string_view text, std::string_view category = "") const;
  // Of anything that was said, threads and counters among it.
  [[nodiscard]] std::string words(std::string_view text) const;
  // Of a process, which may be called by its command line. Secrets are hidden always.
  [[nodiscard]] std::string process(std::string_view text) const;
  [[nodiscard]] std::string command(std::string_view line) const;
  // Of facts under the document's own names. Secrets are hidden always.
  [[nodiscard]] bool fact_is_private(std::string_view fact, std::string_view value) const;

 private:
  Private privacy_;
  std::vector<std::pair<std::string, std::string>> places_;  // and what stands there instead
};

// All of it without what is private; without context.places. Shown: without secrets alone.
[[nodiscard]] observed::Observed without_private(observed::Observed observed, Private privacy);

}  // namespace weir::report
