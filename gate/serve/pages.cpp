// Serves the pages of the trend site and draws badges.
#include "gate/serve/pages.hpp"

#include "gate/base/text.hpp"
#include "gate/history/changes.hpp"
#include "gate/report/escape.hpp"
#include "gate/sys/paths.hpp"

namespace weir::serve {

namespace {

constexpr std::size_t k_longest_label = 60;        // characters
constexpr double k_character = 6.6, k_margin = 6;  // pixels, of 11-pixel Verdana

std::string escape_xml(std::string_view text) {
  constexpr report::Replacement k_spaces[] = {{'\n', " "}, {'\t', " "}};
  return report::replace_each(report::xml_text(text), k_spaces);
}

// Cuts text after that number of UTF-8 characters and appends "…".
std::string shortened(std::string_view text, std::size_t characters) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (begins) ++count;
    if (begins && count > characters) return std::string(text.substr(0, i)) + "…";
  }
  return std::string(text);
}

// Badge styles by BadgeState. Red is only for broken limits. Each colour has a contrast of at least
// 4.5 : 1 against white. Of several states, the one with the lowest rank is shown.
struct BadgeStyle {
  std::string_view word, colour;
  int rank;
};
constexpr BadgeStyle k_badge_styles[] = {
    {"passing", "#2a6f3c", 3},      {"failing", "#b3261e", 0}, {"undecided", "#8a5a00", 2},
    {"not measured", "#5f6368", 1}, {"unknown", "#5f6368", 4},
};
const BadgeStyle& style_of(BadgeState state) {
  return k_badge_styles[static_cast<std::size_t>(state)];
}

constexpr std::uint64_t k_largest_file = std::uint64_t{16} << 20;
// Bytes of a snapshot's documents that stay in memory.
constexpr std::size_t k_max_document_bytes = std::size_t{8} << 20;
constexpr const char* k_script = "text/javascript; charset=utf-8";
// A revision does not show what was added to a known run, so pages are remade after this time.
constexpr double k_longest_unchanged = 600;  // seconds

std::string content_type(const std::string& name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return k_script;
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "application/octet-stream";
}

}  // namespace

std::string_view to_string(BadgeState state) { return style_of(state).word; }

BadgeState state_of(verdict::Outcome outcome) {
  using verdict::Outcome;
  if (outcome == Outcome::fail) return BadgeState::failing;
  if (outcome == Outcome::error) return BadgeState::unmeasured;
  if (outcome == Outcome::inconclusive) return BadgeState::undecided;
  const bool passing =
      outcome == Outcome::improved || outcome == Outcome::waived || outcome == Outcome::pass;
  return passing ? BadgeState::passing : BadgeState::unknown;
}

// Returns the worst state of the verdict's cells and metrics that match the subject's patterns; an
// empty pattern matches all. Returns nullopt if none matches, or `unmeasured` if nothing could be
// judged.
std::optional<BadgeState> state_of(const verdict::GateVerdict& verdict,
                                   const BadgeSubject& subject) {
  if (subject.cell.empty() && subject.metric.empty()) return state_of(verdict.verdict);
  std::optional<BadgeState> state;
  const auto note = [&](verdict::Outcome outcome) {
    const BadgeState badge_state = state_of(outcome);
    if (!state || style_of(badge_state).rank < style_of(*state).rank) state = badge_state;
  };
  for (const verdict::CellVerdict& cell : verdict.cells) {
    if (!subject.cell.empty() && !text::glob_match(subject.cell, cell.cell.str())) continue;
    if (subject.metric.empty()) note(cell.verdict);
    for (const verdict::Judgement& metric : cell.metrics()) {
      if (!subject.metric.empty() && text::glob_match(subject.metric, metric.metric.name)) {
        note(metric.verdict);
      }
    }
  }
  // The verdict may lack the cell because it could not be judged; older verdicts are out of date.
  if (!state && verdict.nothing_judged_reason) return BadgeState::unmeasured;
  return state;
}

// Draws a badge as SVG: the label on the left, the state's word on the right. Widths are in pixels.
std::string badge_svg(std::string_view label, BadgeState state) {
  const std::string short_label = shortened(text::printable(label), k_longest_label);
  const std::string_view state_text = to_string(state);
  const auto text_width = [](std::string_view text) {
    return static_cast<double>(text::columns(text)) * k_character + 2 * k_margin;
  };
  const double label_width = text_width(short_label), word_width = text_width(state_text),
               total_width = label_width + word_width;
  const std::string name = escape_xml(fmt::format("{}: {}", short_label, state_text));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"20\" "
      "viewBox=\"0 0 {0:.0f} 20\" role=\"img\" aria-label=\"{1}\"><title>{1}</title>"
      "<rect width=\"{0:.0f}\" height=\"20\" rx=\"3\" fill=\"#3c4043\"/>"
      "<path d=\"M{2:.1f} 0H{3:.1f}a3 3 0 0 1 3 3v14a3 3 0 0 1 -3 3H{2:.1f}z\" fill=\"{4}\"/>",
      total_width, name, label_width, total_width - 3, style_of(state).colour);
  const auto text_element = [&](double middle, std::string_view text) {
    return fmt::format("<text x=\"{:.1f}\" y=\"14\" textLength=\"{:.1f}\">{}</text>", middle,
                       static_cast<double>(text::columns(text)) * k_character, escape_xml(text));
  };
  svg +=
      "<g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\" "
      "text-anchor=\"middle\" aria-hidden=\"true\">" +
      text_element(label_width / 2, short_label) +
      text_element(label_width + word_width / 2, state_text) + "</g></svg>\n";
  return svg;
}

// Reads the site's fixed files, index.html and assets, into memory. Without a folder there are
// none.
Result<std::unique_ptr<Pages>> Pages::load(const sys::Files& files, PageOptions options) {
  std::unique_ptr<Pages> pages(new Pages(std::move(options)));
  const std::string& folder = pages->options_.folder;
  if (folder.empty()) return pages;
  const auto load = [&](const std::string& name) -> Result<void> {
    WEIR_TRY(std::string text, files.read(sys::join_path(folder, name), k_largest_file));
    pages->files_["/" + name] = text_answer(200, content_type(name), std::move(text));
    return {};
  };
  WEIR_CHECK(load("index.html"));
  pages->files_["/"] = pages->files_["/index.html"];
  WEIR_TRY(const std::vector<std::string> names, files.list(sys::join_path(folder, "assets")));
  for (const std::string& name : names) WEIR_CHECK(load("assets/" + name));
  return pages;
}

// Makes a new snapshot of the store for the pages, if the store has changed or the last snapshot is
// old. `now` is in Unix seconds.
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
  LeftOut left_out;
  {
    WEIR_TRY(history::NewestHistory newest,
             store.history().newest(options_.max_bytes, options_.max_verdict_bytes));
    left_out = {newest.runs_left_out, newest.verdicts_left_out};
    model.history = std::move(newest.history);
    model.verdicts = std::move(newest.verdicts);
  }
  history::put_in_order(model.history, order());
  history::Filter acknowledgement_filter;
  acknowledgement_filter.max_bytes = options_.max_bytes;
  WEIR_TRY(const auto acknowledged, store.history().acknowledgements(acknowledgement_filter));
  WEIR_TRY(const auto changes, history::find_changes(model.history, acknowledged, {}));
  model.changes = site::site_changes(model.history, changes);
  if (options_.subjects) model.subjects = options_.subjects(model.history);
  Snapshot snapshot{std::make_shared<const site::Site>(std::move(model)),
                    std::make_shared<Documents>(), std::move(revision), now, left_out};
  const std::lock_guard lock(mutex_);
  std::swap(snapshot_, snapshot);
  return {};
}

// Returns the answer for a path: a fixed file, or a document of the snapshot, made on first use.
// Returns nullopt if there is none, or if it is not made yet and `making` is no.
std::optional<Response> Pages::find(const std::string& path, Making making) const {
  if (const auto file = files_.find(path); file != files_.end()) return file->second;
  if (files_.empty() || !path.starts_with("/data/")) return std::nullopt;
  std::shared_ptr<const site::Site> site;
  std::shared_ptr<Documents> documents;
  {
    const std::lock_guard lock(mutex_);
    site = snapshot_.site;
    documents = snapshot_.documents;
  }
  if (documents) {
    const std::lock_guard lock(documents->mutex);
    const auto document = documents->by_path.find(path);
    if (document != documents->by_path.end()) return Response{200, k_script, {}, document->second};
  }
  if (making == Making::no) return std::nullopt;
  if (!site) return later_answer(503, "the pages are being made", 1);
  // Two simultaneous requests may both make a document that is not cached.
  auto document_text = site->text(std::string_view(path).substr(1));
  if (!document_text) return std::nullopt;
  auto text = std::make_shared<const std::string>(*std::move(document_text));
  const std::lock_guard lock(documents->mutex);
  if (documents->bytes + text->size() <= k_max_document_bytes) {
    const auto [place, is_new] = documents->by_path.emplace(path, text);
    if (is_new) documents->bytes += text->size();
    text = place->second;
  }
  return Response{200, k_script, {}, std::move(text)};
}

Pages::LeftOut Pages::left_out() const {
  const std::lock_guard lock(mutex_);
  return snapshot_.left_out;
}

std::optional<double> Pages::made_at() const {
  const std::lock_guard lock(mutex_);
  return snapshot_.site ? std::optional(snapshot_.made_at) : std::nullopt;
}

}  // namespace weir::serve
