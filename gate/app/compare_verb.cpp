// weir compare A B: judges run B against run A, with the limits of B's configuration; of any other
// two profiles it tells what differs, and judges nothing.
#include <memory>

#include "gate/app/command_line.hpp"
#include "gate/app/explaining.hpp"
#include "gate/app/judging.hpp"
#include "gate/app/two_sides.hpp"
#include "gate/app/veiled.hpp"
#include "gate/base/text.hpp"
#include "gate/explain/compare.hpp"
#include "gate/explain/explain.hpp"
#include "gate/report/formats.hpp"
#include "gate/report/texts.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

using explain::Compared;
using explain::Comparison;

struct CompareOptions {
  CommonOptions common;
  ReportFiles files;
  std::string base, candidate;
  std::size_t top = 10;
  bool top_given = false;
};

// --- two runs ----------------------------------------------------------------------------------

Result<ExitCode> compare_runs(const CompareOptions& options) {
  if (options.top_given) return fail(Code::usage, "--top is for profiles: these are runs");
  sys::RealFiles files;
  WEIR_TRY(const Measured base, read_measured(options.common, options.base, files));
  WEIR_TRY(Measured candidate, read_measured(options.common, options.candidate, files));
  verdict::GateVerdict verdict = judge_against(candidate, base, policy_of(candidate, false));
  verdict.run.reset();  // a comparison is not the run's own verdict
  // What either side calls private stays so.
  return publish(options.common, options.files, veiled(verdict, base.veil), candidate.veil, files);
}

// --- two profiles ------------------------------------------------------------------------------

// What has a verdict in it can be made of runs alone.
Result<void> refuse_reports(const CompareOptions& options) {
  const std::pair<const std::optional<std::string>*, const char*> judged[] = {
      {&options.files.junit, "--junit"},
      {&options.files.html, "--html"},
      {&options.files.open_metrics, "--openmetrics"}};
  for (const auto& [file, name] : judged) {
    if (!*file) continue;
    return fail(Code::usage,
                "{} is for two runs: profiles are not judged\n"
                "  --json and --markdown write what differs",
                name);
  }
  return {};
}

std::string name_of_side(const std::string& path, const sys::Files& files) {
  std::string_view trimmed = path;
  while (trimmed.size() > 1 && trimmed.ends_with('/')) trimmed.remove_suffix(1);
  const std::string name = sys::file_name_of(std::string(trimmed));
  if (files.kind(path) != sys::Kind::folder) return name;
  // Of a folder of probe files the one around it says more; where both lie is nobody's business.
  const std::string around = sys::file_name_of(sys::folder_of(std::string(trimmed)));
  return around.empty() || around == "." ? name : around + "/" + name;
}

template <class Profile>
Comparison comparison_of(const std::pair<std::string, std::string>& names, const Profile& a,
                         const Profile& b, const explain::Options& settings) {
  Comparison made = explain::compare({names.first, &a}, {names.second, &b});
  made.findings = explain::explain(explain::evidence_of(a, b), nullptr, settings).findings;
  return made;
}

// The one profile of a side that stands beside what a profiler wrote.
Result<const profile::Profile*> only_profile(const CompareOptions& options, const ProfileFile& side,
                                             const std::string& path) {
  const profile::Profile* only = nullptr;
  for (const profile::Profile& one : side.profiles) {
    if (!cell_wanted(options.common, one.cell.str())) continue;
    if (only != nullptr) {
      return fail(Code::usage,
                  "{} holds several cells, and the other side is one profile:\n"
                  "  --cell selects one of them, such as {}",
                  path, text::shell_word(only->cell.str()));
    }
    only = &one;
  }
  if (only == nullptr) return fail(Code::usage, "{} has no cell that --cell selects", path);
  return only;
}

Result<std::vector<Comparison>> comparisons_of(const CompareOptions& options, const ProfileFile& a,
                                               const ProfileFile& b,
                                               const explain::Options& settings) {
  const sys::RealFiles files;
  const std::pair names{name_of_side(options.base, files), name_of_side(options.candidate, files)};
  std::vector<Comparison> all;
  if (a.observed && b.observed) {
    all.push_back(comparison_of(names, *a.observed, *b.observed, settings));
    return all;
  }
  if (a.observed || b.observed) {
    const bool first = a.observed.has_value();
    WEIR_TRY(const profile::Profile* profile,
             only_profile(options, first ? b : a, first ? options.candidate : options.base));
    const observed::Observed& observed = first ? *a.observed : *b.observed;
    all.push_back(first ? explain::compare({names.first, &observed}, {names.second, profile})
                        : explain::compare({names.first, profile}, {names.second, &observed}));
    return all;
  }
  for (const auto& [before, after] : cell_pairs(a, b, options.common)) {
    all.push_back(comparison_of(names, *before, *after, settings));
  }
  if (all.empty()) {
    return fail(Code::usage, "{} and {} have no cell in common{}", options.base, options.candidate,
                options.common.cells.empty() ? "" : " that --cell selects");
  }
  return all;
}

Result<ExitCode> compare_profiles(const CompareOptions& options) {
  sys::RealFiles files;
  WEIR_CHECK(refuse_reports(options));
  std::optional<Measured> run_a, run_b;
  WEIR_TRY(const ProfileFile a, read_side(options.common, options.base, files, run_a));
  WEIR_TRY(const ProfileFile b, read_side(options.common, options.candidate, files, run_b));
  const explain::Options settings =
      run_b ? explain_options(*run_b->settings) : explain::Options{explain::default_bands(), {}};
  WEIR_TRY(auto all, comparisons_of(options, a, b, settings));
  for (Comparison& one : all) {
    if (run_a) one = veiled(std::move(one), run_a->veil);
    if (run_b) one = veiled(std::move(one), run_b->veil);
  }
  const int stream = answer_stream(options.common);
  answer(options.common, report::compare_text(all, {.color = colored(options.common, stream),
                                                    .width = width_of(stream),
                                                    .most_rows = options.top}));
  WEIR_CHECK(write_json(options.common, dump_json(report::compare_json(all), 1) + "\n"));
  if (options.files.markdown) {
    WEIR_CHECK(
        files.write_atomic(*options.files.markdown,
                           report::compare_markdown(all, options.top, report::k_comment_limit)));
  }
  return ExitCode::pass;
}

Result<ExitCode> compare(const CompareOptions& options) {
  const sys::RealFiles files;
  const bool runs = holds_run(options.base, files) && holds_run(options.candidate, files);
  return runs ? compare_runs(options) : compare_profiles(options);
}

}  // namespace

void add_compare(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("compare", "Judge run B against run A, or say how two profiles differ");
  auto options = std::make_shared<CompareOptions>();
  verb->add_option("A", options->base,
                   "The base: a run's folder or run.jsonl; or a file of weir run --json, a folder\n"
                   "of probe files, or what an engine or profiler wrote")
      ->required();
  verb->add_option("B", options->candidate, "The other side, which is judged where both are runs")
      ->required();
  verb->add_option("--top", options->top, "Rows of each section, of profiles")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  add_common(*verb, options->common, Takes::runs);
  refuse_option(*verb, "-c,--config", "the limits are those of B's own configuration, kept in it");
  refuse_option(*verb, "--out", "A and B are given with their folders");
  refuse_option(*verb, "--baselines", "A takes the place of stored baselines");
  add_report_files(*verb, options->files);
  verb->footer(
      "Two runs are judged, and the exit code is the verdict. Other profiles are not: the exit\n"
      "code is 0 whatever differs.\n\n"
      "Examples:\n"
      "  weir compare weir-out/20261120-0930 weir-out/20261120-1015\n"
      "  weir compare before.json after.json          as weir run --json wrote them\n"
      "  weir compare q8.stderr.txt q4.stderr.txt     as GGML_VK_PERF_LOGGER=1 prints it");
  set_action(*verb, [verb, options] {
    options->top_given = verb->count("--top") != 0;
    return compare(*options);
  });
}

}  // namespace weir::app
