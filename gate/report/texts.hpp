// What verbs print beside verdicts and profiles. Pure; names from outside are made inert.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/baseline/baseline.hpp"
#include "gate/explain/compare.hpp"
#include "gate/explain/explain.hpp"
#include "gate/profile/profile.hpp"
#include "gate/report/formats.hpp"
#include "gate/verdict/calibration.hpp"

namespace weir::report {

struct TextStyle {
  int width = 80;
  bool color = false;
};

// Stored baselines as text: what `weir baseline list` and `show` print. Pure.

// A table: cell, device class, how many counts, how many timed sessions on how many machines.
[[nodiscard]] std::string baseline_list(std::span<const baseline::Baseline> baselines,
                                        int width = 80);
// All of one: counts, kernels, sessions by machine class.
[[nodiscard]] std::string baseline_show(const baseline::Baseline& baseline, int width = 80);

// What `weir calibrate` found, for people. Pure.

// The answer first, then a block a cell, then how sure that is. Names are made inert here.
[[nodiscard]] std::string calibration_text(const verdict::Calibration& calibration,
                                           const TextStyle& style);

// Two profiles beside each other, for people: what is new, gone, slower, called more often. Judges
// nothing. Pure.

struct CompareStyle {
  bool color = false;
  int width = 80;
  std::size_t most_rows = 10;  // of each section
};

// No line is wider than `width` (at least 60). Names from outside are made printable.
[[nodiscard]] std::string compare_text(std::span<const explain::Comparison> comparisons,
                                       const CompareStyle& style);

// The same as GitHub Markdown, inert as markdown.hpp has it, at most `limit` bytes.
[[nodiscard]] std::string compare_markdown(std::span<const explain::Comparison> comparisons,
                                           std::size_t most_rows, std::size_t limit);

// {"schema": "weir.comparison/1", "comparisons": [...]}
[[nodiscard]] Json compare_json(std::span<const explain::Comparison> comparisons);

// Descriptions of GPUs as people read them: the list of `weir device list`, the sheet of `weir
// device show`. Pure. Names and sources come from files: they are made inert here.

struct DeviceLine {
  std::string name, title, source;
  std::string error;                // why it could not be read; then title and source are empty
  std::vector<std::string> apis{};  // "vulkan", "cuda": what it is described for
};

// A table by name; what could not be read stands below it.
[[nodiscard]] std::string device_list_text(const std::vector<DeviceLine>& devices, int width);
[[nodiscard]] std::string device_list_json(const std::vector<DeviceLine>& devices);

struct DeviceSheet {
  std::string name, title, source;
  std::vector<std::string> assumed, warnings;
  // Subject and what is so; an empty subject goes on with the one before it.
  std::vector<std::pair<std::string, std::string>> facts;
};
[[nodiscard]] std::string device_text(const DeviceSheet& sheet, int width);

// What one engine does on several devices, side by side: counts and kernels, as text and as a page.
// Pure.
//
// Devices that do the same are one column. Names come from files and engines: hostile text.

// `profiles`: cells whose backend is the device. Those of one engine, model and prompt make one
// table; cells with errors are told below it. With `all`, rows that are the same everywhere stand
// there too.
[[nodiscard]] std::string device_matrix_text(std::span<const profile::Profile> profiles, bool all,
                                             int width);
// The same, all rows, as one self-contained page without scripts.
[[nodiscard]] std::string device_matrix_html(std::span<const profile::Profile> profiles);

// What `weir doctor` found, as text and as JSON (weir.doctor/1). Pure.
//
// What is wrong stands first, each with its cure. Names and reasons come from files and drivers:
// they are made inert here.

enum class Health { worse, note };

struct DoctorFinding {
  std::string subject;  // "governor"
  Health health = Health::note;
  std::string what, cure;
};

// How one probe gets on with one engine.
struct DoctorFit {
  std::string probe;
  std::string state;  // "sees", "perhaps", "blind", "absent", "unused"
  std::string how, cure;
  bool asked_for = false;  // weir.yaml attaches it to this engine
};

struct DoctorEngine {
  std::string name;   // as asked for: a path, or an engine of weir.yaml
  std::string path;   // of the program; "" where none was found
  std::string error;  // why it could not be looked at; then there is nothing else
  std::vector<DoctorFit> fits;
  std::vector<DoctorFinding> findings;  // missing libraries and the like
};

struct DoctorDevice {
  std::string api;                 // "vulkan"
  std::string name, type, driver;  // "llvmpipe (…)", "cpu", "llvmpipe"; type and driver may be ""
};

struct Diagnosis {
  std::string weir_version;
  std::string machine;  // "AMD EPYC 9654 96-Core Processor, 2 cores, 24 GiB, debian 12"
  std::vector<DoctorFinding> findings;     // of the machine, the heaviest first
  std::vector<std::string> fine, unknown;  // subjects
  std::vector<std::string> probes;         // installed
  std::string probes_error;                // why there are none
  std::vector<DoctorDevice> devices;
  std::vector<std::pair<std::string, std::string>> device_errors;  // API and why it has no device
  std::vector<std::string> always_layers;  // Vulkan layers that nobody has to ask for
  std::vector<std::string> layers;         // the other ones
  std::vector<DoctorEngine> engines;
};

// How many findings make times worse, probes that weir.yaml asks for cannot see, or engines could
// not be looked at.
[[nodiscard]] std::size_t problems(const Diagnosis& diagnosis);

[[nodiscard]] std::string doctor_text(const Diagnosis& diagnosis, const TextStyle& style);
[[nodiscard]] std::string doctor_json(const Diagnosis& diagnosis);

// Why cells changed, as people read it in a terminal. Pure.

struct ExplainStyle {
  bool color = false;
  int width = 80;
  bool checklist = false;  // the checklist for slow engines, and counts outside of the usual
};

// No line is wider than `width` (at least 40). Names from outside are made printable.
[[nodiscard]] std::string explain_text(std::span<const explain::Explanation> explanations,
                                       const ExplainStyle& style);

// Findings alone, numbered.
[[nodiscard]] std::string findings_text(std::span<const explain::Finding> findings,
                                        const ExplainStyle& style);

// {"schema": "weir.explanation/1", "findings": [...], "cells": [...]}: findings of all cells, each
// with the name of its cell; the same again cell by cell, with totals, hints and checklist.
[[nodiscard]] Json explain_json(std::span<const explain::Explanation> explanations);

// A plan of shards for people, for GitHub's matrix and for Slurm. Pure.

struct ShardsText {
  struct Shard {
    std::vector<std::string> runner;  // labels; empty: any
    std::vector<std::string> cells;   // as they are shown
    double seconds = 0;
  };
  std::vector<Shard> shards;
  std::string plan_file, config, out;
  std::vector<std::string> cells;  // --cell, which the shards need as well
  bool counts_only = false;
  std::size_t cells_in_all = 0, known = 0;  // of which the time was known
};

// Number, runner, cells and minutes of each shard, and how even they are.
[[nodiscard]] std::string shards_text(const ShardsText& plan, std::size_t width);

// {"include": [{"shard": "1/16", "runner": ["ubuntu-latest"], "cells": 12, "minutes": 3}, …]}: one
// line, for fromJSON() in a job's strategy.matrix. Shards that any machine can measure get
// "ubuntu-latest".
[[nodiscard]] std::string shards_for_github(const ShardsText& plan);

// A script for sbatch: an array job of one task a shard, which goes on with what it had when it is
// requeued. Runners become --constraint; an array has one for all, so where shards differ the text
// says how to plan them apart.
[[nodiscard]] std::string shards_for_slurm(const ShardsText& plan);

}  // namespace weir::report
