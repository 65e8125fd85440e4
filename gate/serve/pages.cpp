#include "gate/serve/pages.hpp"

#include "gate/base/text.hpp"
#include "gate/history/changes.hpp"
#include "gate/report/escape.hpp"
#include "gate/sys/paths.hpp"

namespace weir::serve {

namespace {

constexpr std::size_t k_longest_label = 60;        // characters
constexpr double k_character = 6.6, k_margin = 6;  // pixels, of 11-pixel Verdana

std::string escaped(std::string_view text) {
  constexpr report::Replacement k_spaces[] = {{'\n', " "}, {'\t', " "}};
  return report::replace_each(report::xml_text(text), k_spaces);
}

// Whole characters of UTF-8.
std::string shortened(std::string_view text, std::size_t characters) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (begins && ++seen > characters) return std::string(text.substr(0, i)) + "…";
  }
  return std::string(text);
}

// By BadgeState. Red is for broken limits alone. Each colour has 4.5 : 1 at least against white. Of
// several states the lowest rank counts: as verdicts rank them, what says nothing last.
struct Look {
  std::string_view word, colour;
  int rank;
};
constexpr Look k_looks[] = {
    {"passing", "#2a6f3c", 3},      {"failing", "#b3261e", 0}, {"undecided", "#8a5a00", 2},
    {"not measured", "#5f6368", 1}, {"unknown", "#5f6368", 4},
};
const Look& look_of(BadgeState state) { return k_looks[static_cast<std::size_t>(state)]; }

constexpr std::uint64_t k_largest_file = std::uint64_t{16} << 20;
constexpr std::size_t k_most_kept = std::size_t{64} << 20;  // of a snapshot's documents
constexpr const char* k_script = "text/javascript; charset=utf-8";
// What was added to a run that is known shows in no revision.
constexpr double k_longest_unchanged = 600;  // seconds

std::string type_of(const std::string& name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return k_script;
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "application/octet-stream";
}

}  // namespace

std::string_view to_string(BadgeState state) { return look_of(state).word; }

BadgeState state_of(verdict::Outcome outcome) {
  using verdict::Outcome;
  if (outcome == Outcome::fail) return BadgeState::failing;
  if (outcome == Outcome::error) return BadgeState::unmeasured;
  if (outcome == Outcome::inconclusive) return BadgeState::undecided;
  const bool passing =
      outcome == Outcome::improved || outcome == Outcome::accepted || outcome == Outcome::pass;
  return passing ? BadgeState::passing : BadgeState::unknown;
}

std::optional<BadgeState> state_of(const verdict::GateVerdict& verdict, const BadgeWanted& wanted) {
  if (wanted.cell.empty() && wanted.metric.empty()) return state_of(verdict.verdict);
  std::optional<BadgeState> state;
  const auto note = [&](verdict::Outcome outcome) {
    const BadgeState one = state_of(outcome);
    if (!state || look_of(one).rank < look_of(*state).rank) state = one;
  };
  for (const verdict::CellVerdict& cell : verdict.cells) {
    if (!wanted.cell.empty() && !text::glob_match(wanted.cell, cell.cell.str())) continue;
    if (wanted.metric.empty()) note(cell.verdict);
    for (const verdict::Judgement& metric : cell.metrics()) {
      if (!wanted.metric.empty() && text::glob_match(wanted.metric, metric.metric.name)) {
        note(metric.verdict);
      }
    }
  }
  // What it does not have it judges even less: the one before it says nothing of now.
  if (!state && verdict.unjudged) return BadgeState::unmeasured;
  return state;
}

std::string badge_svg(std::string_view label, BadgeState state) {
  const std::string shown = shortened(text::printable(label), k_longest_label);
  const std::string_view word = to_string(state);
  const auto width = [](std::string_view text) {
    return static_cast<double>(text::columns(text)) * k_character + 2 * k_margin;
  };
  const double left = width(shown), right = width(word), all = left + right;
  const std::string name = escaped(fmt::format("{}: {}", shown, word));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"20\" "
      "viewBox=\"0 0 {0:.0f} 20\" role=\"img\" aria-label=\"{1}\"><title>{1}</title>"
      "<rect width=\"{0:.0f}\" height=\"20\" rx=\"3\" fill=\"#3c4043\"/>"
      "<path d=\"M{2:.1f} 0H{3:.1f}a3 3 0 0 1 3 3v14a3 3 0 0 1 -3 3H{2:.1f}z\" fill=\"{4}\"/>",
      all, name, left, all - 3, look_of(state).colour);
  const auto words = [&](double middle, std::string_view text) {
    return fmt::format("<text x=\"{:.1f}\" y=\"14\" textLength=\"{:.1f}\">{}</text>", middle,
                       static_cast<double>(text::columns(text)) * k_character, escaped(text));
  };
  svg +=
      "<g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\" "
      "text-anchor=\"middle\" aria-hidden=\"true\">" +
      words(left / 2, shown) + words(left + right / 2, word) + "</g></svg>\n";
  return svg;
}

Result<std::unique_ptr<Pages>> Pages::load(const sys::Files& files, PageOptions options) {
  std::unique_ptr<Pages> pages(new Pages(std::move(options)));
  const std::string& folder = pages->options_.folder;
  if (folder.empty()) return pages;
  const auto load = [&](const std::string& name) -> Result<void> {
    WEIR_TRY(std::string text, files.read(sys::join_path(folder, name), k_largest_file));
    pages->files_["/" + name] = text_answer(200, type_of(name), std::move(text));
    return {};
  };
  WEIR_CHECK(load("index.html"));
  pages->files_["/"] = pages->files_["/index.html"];
  WEIR_TRY(const std::vector<std::string> names, files.list(sys::join_path(folder, "assets")));
  for (const std::string& name : names) WEIR_CHECK(load("assets/" + name));
  return pages;
}

Result<void> Pages::renew(history::ServiceStore& store, double now) {
  if (options_.folder.empty()) return {};
  WEIR_TRY(std::string revision, store.revision());
  {
    const std::lock_guard lock(mutex_);
    if (snapshot_.site && snapshot_.revision == revision &&
        now - snapshot_.made_at < k_longest_unchanged) {
      return {};
    }
  }
  site::SiteModel model;
  model.title = options_.title;
  model.repo_url = options_.repo_url;
  WEIR_TRY(history::ChangedHistory read, history::read_changes(store.history(), {}, order(), {}));
  model.changes = site::site_changes(read.history, read.changes);
  model.history = std::move(read.history);
  WEIR_TRY(model.verdicts, store.history().verdicts({}));
  if (options_.subjects) model.subjects = options_.subjects(model.history);
  Snapshot made{std::make_shared<const site::Site>(std::move(model)), std::make_shared<Documents>(),
                std::move(revision), now};
  const std::lock_guard lock(mutex_);
  std::swap(snapshot_, made);
  return {};
}

std::optional<Response> Pages::find(const std::string& path, Making making) const {
  if (const auto file = files_.find(path); file != files_.end()) return file->second;
  if (files_.empty() || !path.starts_with("/data/")) return std::nullopt;
  std::shared_ptr<const site::Site> site;
  std::shared_ptr<Documents> known;
  {
    const std::lock_guard lock(mutex_);
    site = snapshot_.site;
    known = snapshot_.documents;
  }
  if (known) {
    const std::lock_guard lock(known->mutex);
    const auto found = known->by_path.find(path);
    if (found != known->by_path.end()) return Response{200, k_script, {}, found->second};
  }
  if (making == Making::no) return std::nullopt;
  if (!site) return later_answer(503, "the pages are being made", 1);
  // Two that ask at once for what is not kept may both make it.
  auto made = site->text(std::string_view(path).substr(1));
  if (!made) return std::nullopt;
  auto text = std::make_shared<const std::string>(*std::move(made));
  const std::lock_guard lock(known->mutex);
  if (known->bytes + text->size() <= k_most_kept) {
    const auto [place, is_new] = known->by_path.emplace(path, text);
    if (is_new) known->bytes += text->size();
    text = place->second;
  }
  return Response{200, k_script, {}, std::move(text)};
}

std::optional<double> Pages::made_at() const {
  const std::lock_guard lock(mutex_);
  return snapshot_.site ? std::optional(snapshot_.made_at) : std::nullopt;
}

}  // namespace weir::serve
