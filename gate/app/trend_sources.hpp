// Where runs of a history come from: folders of runs, verdicts, baselines in git.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gate/app/command_line.hpp"
#include "gate/history/documents.hpp"
#include "gate/history/store.hpp"
#include "gate/sys/files.hpp"

namespace weir::app {

// What the command line says of what is imported; it goes before what the files say.
using TrendFacts = history::GivenFacts;

// One thing to be kept, all of it or nothing.
struct TrendPart {
  std::string from;  // "weir-out/20261120-0930", for people
  history::Batch batch;
  std::vector<std::string> warnings;
};

// A run's folder, its run.jsonl, or a verdict's file: what is private in a run's configuration has
// aliases there. A run that was cut off is Code::usage: it can be gone on with.
[[nodiscard]] Result<TrendPart> trend_part_of(const std::string& path, const TrendFacts& facts,
                                              sys::Files& files);

// All runs, verdicts and (with git's history of them) baselines below `folder`, one after the
// other. `config` is the one whose private names baselines may hold; "" looks for weir.yaml in
// `folder` and above it, up to the top of the repository. Without any, baselines are Code::config.
struct TrendFolder {
  std::string folder, config;
};
[[nodiscard]] Result<void> trend_parts_below(const TrendFolder& where, const TrendFacts& facts,
                                             sys::Files& files,
                                             const std::function<Result<void>(TrendPart)>& take,
                                             const std::function<void(const std::string&)>& warn);

// Of trend_baselines.cpp: those that git knows below `folder`.
[[nodiscard]] Result<void> trend_parts_of_baselines(
    const TrendFolder& where, const TrendFacts& facts, sys::Files& files,
    const std::function<Result<void>(TrendPart)>& take,
    const std::function<void(const std::string&)>& warn);

}  // namespace weir::app
