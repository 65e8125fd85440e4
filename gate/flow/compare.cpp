#include "gate/explain/compare.hpp"

#include <memory>

#include "gate/base/text.hpp"
#include "gate/explain/explain.hpp"
#include "gate/flow/explain.hpp"
#include "gate/flow/job.hpp"
#include "gate/flow/judge.hpp"
#include "gate/flow/sides.hpp"
#include "gate/flow/veiled.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/formats.hpp"
#include "gate/report/texts.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

using explain::Compared;
using explain::Comparison;

// --- two runs ----------------------------------------------------------------------------------

Result<Answer> compare_runs(const Job& job, const CompareOptions& options) {
  if (options.top_given) return fail(Code::usage, "--top is for profiles: these are runs");
  WEIR_TRY(const Measured base, read_measured(job, options.base));
  WEIR_TRY(Measured candidate, read_measured(job, options.candidate));
  verdict::GateVerdict verdict =
      judge_against(candidate, base, policy_of(candidate, false), job.files());
  verdict.run.reset();  // a comparison is not the run's own verdict
  // What either side calls private stays so.
  return publish_verdict(job, options.files, veiled(verdict, base.known.veil),
                         candidate.known.veil);
}

// --- two profiles ------------------------------------------------------------------------------

// What has a verdict in it can be made of runs alone.
Result<void> refuse_reports(const CompareOptions& options) {
  for (std::size_t i = 0; i < k_report_outputs; ++i) {
    if (!options.files.files[i] || &*options.files.files[i] == &*options.files.markdown()) continue;
    return fail(Code::usage,
                "{} is for two runs: profiles are not judged\n"
                "  --json and --markdown write what differs",
                report_outputs()[i].option);
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
Result<const profile::Profile*> only_profile(const Job& job, const ProfileFile& side,
                                             const std::string& path) {
  const profile::Profile* only = nullptr;
  for (const profile::Profile& one : side.profiles) {
    if (!job.asked.wants(one.cell.str())) continue;
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

Result<std::vector<Comparison>> comparisons_of(const Job& job, const CompareOptions& options,
                                               const ProfileFile& a, const ProfileFile& b,
                                               const explain::Options& settings) {
  const std::pair names{name_of_side(options.base, job.files()),
                        name_of_side(options.candidate, job.files())};
  std::vector<Comparison> all;
  if (a.observed && b.observed) {
    all.push_back(comparison_of(names, *a.observed, *b.observed, settings));
    return all;
  }
  if (a.observed || b.observed) {
    const bool first = a.observed.has_value();
    WEIR_TRY(const profile::Profile* profile,
             only_profile(job, first ? b : a, first ? options.candidate : options.base));
    const observed::Observed& observed = first ? *a.observed : *b.observed;
    all.push_back(first ? explain::compare({names.first, &observed}, {names.second, profile})
                        : explain::compare({names.first, profile}, {names.second, &observed}));
    return all;
  }
  for (const auto& [before, after] : cell_pairs(a, b, job)) {
    all.push_back(comparison_of(names, *before, *after, settings));
  }
  if (all.empty()) {
    return fail(Code::usage, "{} and {} have no cell in common{}", options.base, options.candidate,
                job.asked.cells.empty() ? "" : " that --cell selects");
  }
  return all;
}

Result<Answer> compare_profiles(const Job& job, const CompareOptions& options) {
  WEIR_CHECK(refuse_reports(options));
  std::optional<Measured> run_a, run_b;
  WEIR_TRY(const ProfileFile a, read_side(job, options.base, run_a));
  WEIR_TRY(const ProfileFile b, read_side(job, options.candidate, run_b));
  const explain::Options settings = run_b ? explain_options(*run_b->known.settings)
                                          : explain::Options{explain::default_bands(), {}};
  WEIR_TRY(auto all, comparisons_of(job, options, a, b, settings));
  for (Comparison& one : all) {
    if (run_a) one = veiled(std::move(one), run_a->known.veil);
    if (run_b) one = veiled(std::move(one), run_b->known.veil);
  }
  if (const auto& file = options.files.markdown()) {
    WEIR_CHECK(job.files().write_atomic(
        *file, report::compare_markdown(all, options.top, report::k_comment_limit)));
  }
  return Answer{report::compare_text(
                    all, {.color = job.colored(), .width = job.width(), .most_rows = options.top}),
                document(report::compare_json(all))};
}

}  // namespace

Result<Answer> compare(const Job& job, const CompareOptions& options) {
  const bool runs =
      holds_run(options.base, job.files()) && holds_run(options.candidate, job.files());
  return runs ? compare_runs(job, options) : compare_profiles(job, options);
}

}  // namespace weir::flow
