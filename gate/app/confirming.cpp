#include "gate/app/confirming.hpp"

#include <algorithm>
#include <set>

#include "gate/app/veiled.hpp"
#include "gate/base/text.hpp"
#include "gate/source/base.hpp"
#include "gate/sys/paths.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::app {
namespace {

std::string folder_of_pairs(const Measured& first) {
  return sys::join_path(first.folder, "confirm");
}

std::optional<std::string> base_ref(const ConfirmOptions& confirm, const Measured& first,
                                    const sys::Files& files) {
  if (confirm.ref) return confirm.ref;
  if (first.settings->gate.confirm) return first.settings->gate.confirm;
  const source::PullRequest pull = source::read_pull_request(files);
  if (pull.base_branch.empty()) return std::nullopt;
  return "origin/" + pull.base_branch;
}

// A suspected line over depths is looked at at all of its depths.
std::vector<config::Cell> chosen(std::vector<config::Cell> cells,
                                 const std::vector<profile::CellKey>& suspected) {
  std::set<std::string> names;
  for (const profile::CellKey& key : suspected) names.insert(key.str());
  std::erase_if(cells, [&](const config::Cell& cell) {
    return !names.contains(cell.key.str()) && !names.contains(cell.key.line().str());
  });
  return cells;
}

// What was allowed, and by which rules, is the whole gate's to say, once.
Measured alone(Measured pairs) {
  pairs.allowed.reset();
  pairs.rules.reset();
  return pairs;
}

}  // namespace

Result<Pairs> pairs_of_suspected(const CommonOptions& options, const ConfirmOptions& confirm,
                                 const Measured& first, const verdict::GateVerdict& verdict,
                                 sys::Files& files) {
  Pairs pairs;
  const std::vector<profile::CellKey> suspected = verdict::suspected(verdict.cells);
  if (suspected.empty() || confirm.off) return pairs;
  if (!confirm.ref && !first.settings->gate.confirms) return pairs;
  CommonOptions inner = options;
  inner.out = folder_of_pairs(first);
  inner.cells.clear();
  const std::vector<std::string> earlier = run::list_runs(files, inner.out);
  constexpr std::string_view k_alone =
      "held to stored samples alone; weir gate --confirm REF looks at such drops in pairs beside a "
      "base program before they fail";
  if (confirm.read_only) {
    if (earlier.empty()) {
      pairs.why_not = k_alone;
      return pairs;
    }
    auto read = read_measured(inner, earlier.back(), files);
    if (!read) {
      pairs.why_not = "their pairs can not be read: " + text::first_line(read.error().message);
    } else if (!read->interrupted.empty()) {
      pairs.why_not = "their pairs were interrupted: weir gate --resume goes on with them";
    } else {
      pairs.measured = alone(std::move(*read));
    }
    return pairs;
  }
  if (first.shard && first.shard->index > 0) {
    pairs.why_not = "a shard is not confirmed by pairs of its own: gate the joined run";
    return pairs;
  }
  const std::optional<std::string> ref = base_ref(confirm, first, files);
  if (!ref) {
    pairs.why_not = k_alone;
    return pairs;
  }
  WEIR_TRY(Loaded loaded, load_config(options, files));
  loaded.cells = chosen(std::move(loaded.cells), suspected);
  talk(options, fmt::format("{} cell{} slower than stored samples: pairs beside {} will tell",
                            suspected.size(), suspected.size() == 1 ? " is" : "s are", *ref));
  MeasureOptions wanted;
  wanted.plan.counts = false;
  wanted.against = AgainstWanted{.spec = *ref, .command = {}, .own = false, .other_commit = true};
  // A run that was interrupted in its pairs goes on with these, where they are of the same cells.
  if (!earlier.empty()) wanted.resume = earlier.back();
  const config::Veil veil = loaded.veil;
  auto measured = measure_loaded(std::move(loaded), inner, wanted, files);
  if (!measured && measured.error().code == Code::usage && wanted.resume) {
    WEIR_TRY(loaded, load_config(options, files));
    loaded.cells = chosen(std::move(loaded.cells), suspected);
    wanted.resume.reset();
    measured = measure_loaded(std::move(loaded), inner, wanted, files);
  }
  if (measured) {
    pairs.measured = alone(std::move(*measured));
    return pairs;
  }
  const Error error = veiled(std::move(measured).error(), veil);
  if (error.code == Code::interrupted) {
    return fail(Code::interrupted,
                "interrupted in the pairs that were to confirm a drop; go on with: --resume {}",
                first.folder);
  }
  pairs.why_not =
      "could not be confirmed beside a base program: " + text::first_line(error.message);
  return pairs;
}

}  // namespace weir::app
