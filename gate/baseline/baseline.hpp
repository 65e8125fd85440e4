// A stored baseline: one file for each cell and device class, and which one may judge a candidate.
//
// The file (weir.baseline/1) has sorted keys, one number a line, no dates and no logs in it, so
// that diffs read well and merges do not conflict. Pure: text in, text out.
#pragma once

#include "gate/profile/profile.hpp"

namespace weir::baseline {

inline constexpr std::string_view k_schema = "weir.baseline/1";

// One accepted set of timed samples of one engine build on one machine class.
struct Session {
  std::string engine_build;                            // "" if the engine does not report it
  std::map<std::string, std::vector<double>> samples;  // metric name -> one number a process
  std::optional<profile::Reference> reference{};  // run beside these processes; absent without one
  std::string run{};  // as Provenance::timed_run; "" in files of an older weir
};

struct Baseline {
  std::string cell;  // CellKey::str()
  std::string fingerprint;
  std::map<std::string, std::string> fingerprint_parts;
  std::string reason{};  // why these counts were accepted, one line; "": no reason was given
  std::string preset{};  // preset of its engine when it was made: "llama-bench 1"; "": none
  std::string device_class;
  std::string device_name;
  // Lengths of the counted pass: empty without one, one number where the engine counts by itself,
  // else three, rising, from 1 to 4096.
  std::vector<std::int64_t> lengths;
  std::map<std::string, profile::Measurement> counts;  // by metric name; exact or nearly exact
  std::optional<profile::KernelSet> kernels;
  // With kernels, as in Profile.
  std::optional<profile::KernelSet> codes{}, code_groups{};
  std::map<std::string, profile::CodeFacts> code_facts{};
  std::string compiler{};
  std::optional<profile::KernelSet> graph_ops{};  // with kernels; explain, are never gated
  std::optional<profile::KernelSet> functions{};  // with instructions; explains, is never gated
  profile::Placement placement;
  profile::WorkDone work;
  // machine class -> sessions, oldest first; at most k_sessions_kept of one engine build.
  std::map<std::string, std::vector<Session>> sessions;
};
inline constexpr std::size_t k_sessions_kept = 20;
// Begins BaselineChoice::reason where the cell's arguments, model or prompt are others.
inline constexpr std::string_view k_other_settings =
    "the baselines were stored with other settings";

[[nodiscard]] std::string to_text(const Baseline& baseline);
[[nodiscard]] Result<Baseline> parse(std::string_view text);

// One line that is shown as it is, at most 1000 bytes.
[[nodiscard]] bool valid_reason(std::string_view text);
// Fit to be a file name: [A-Za-z0-9_][A-Za-z0-9._-]*, at most 128 characters.
[[nodiscard]] bool valid_class(std::string_view name);
// "llama.cpp/tiny-llama/vulkan/decode/vulkan-10005-….json", relative to the baselines folder. Every
// part is a valid name, so no path leaves it. Fails with Code::data on a bad cell or class.
[[nodiscard]] Result<std::string> path_of(const profile::CellKey& cell,
                                          std::string_view device_class);

// Makes the baseline that `accept` stores: counts, kernels and (with timed samples) one more
// session. `old` is the stored one. `metric_globs` empty: everything, else only those metrics
// change. Another engine build starts a new set of sessions for that machine class. Another
// fingerprint or device class starts a new baseline. Kernels go with any dispatch count that is
// accepted, functions with instructions, which stay as they were where this machine cannot count
// them. A run that counted nothing leaves the stored counts alone, one without timed samples the
// sessions. A reason that was given before stays until anything but times is another.
[[nodiscard]] Baseline accept(const profile::Profile& measured, const std::optional<Baseline>& old,
                              std::span<const std::string> metric_globs,
                              const std::string& reason = "");

// Which of a cell's stored baselines judges the candidate.
struct BaselineChoice {
  enum class Match {
    none,         // nothing stored for this cell
    fingerprint,  // stored, but of another fingerprint: another cell
    other_class,  // stored, but for other device classes that are not comparable
    nearest,      // same API and device in another version: equal counts pass
    same,         // the same device class
  };
  Match match = Match::none;
  std::optional<Baseline> baseline;  // for nearest and same; for the others, the one to show
  std::string reason;                // one line for people; "" for same
  bool base_failed = false;          // there was a base to measure, and it could not be
  bool devices_differ = false;       // the base ran beside the candidate, on another device
  bool is_run = false;               // counted by a run, not stored
  std::size_t processes = 0;         // of that run, each length; 0: not known
};
[[nodiscard]] BaselineChoice choose_baseline(const profile::Profile& candidate,
                                             std::span<const Baseline> stored);

// Another run's profile of the same cell as something to judge by: compared whatever its
// fingerprint, with what differs in the reason. None where it could not be measured.
[[nodiscard]] BaselineChoice choose_run(const profile::Profile& candidate,
                                        const profile::Profile& base);

// The three lengths at which a counted pass is to run so that it can be compared: those of the
// baseline that would judge `cell` on this device, else of another one with the same fingerprint
// (also while the device class is not known yet); empty where none is stored.
[[nodiscard]] std::vector<std::int64_t> comparable_lengths(const profile::CellKey& cell,
                                                           const profile::Provenance& from,
                                                           std::span<const Baseline> stored);

// The fewest values that are stored of a count that varies, in baselines of this fingerprint: one a
// process. Absent if no count varies.
[[nodiscard]] std::optional<std::size_t> fewest_varying_values(const profile::Provenance& from,
                                                               std::span<const Baseline> stored);

}  // namespace weir::baseline
