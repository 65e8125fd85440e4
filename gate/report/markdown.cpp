#include "gate/report/markdown.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/ratios.hpp"

namespace weir::report {
namespace {

constexpr std::size_t k_strip = 60;  // columns of a picture of ratios
// What, base → now, limit: Markdown.
using Row = std::array<std::string, 3>;

// A phone has room for two columns and a half: lines break between phrases, which are unbroken().
Row row(const MetricRow& row) {
  const auto* metric = row.of;
  const MetricWords& all = row.words;
  const bool failed = metric->verdict == Outcome::fail;
  std::string what = markdown_text(all.label);
  if (!failed && !limit_says_improved(*metric)) {
    what += fmt::format(" ({})", verdict::to_string(metric->verdict));
  }
  std::string now = unbroken(failed ? fmt::format("**{}**", all.now()) : all.now());
  if (!all.baseline.empty()) {
    constexpr std::size_t k_short = 12;
    const bool fits = text::columns(all.baseline) + text::columns(all.now()) <= k_short;
    now = fmt::format("{}{}\u2192{}{}", unbroken(all.baseline), fits ? k_no_break : " ", k_no_break,
                      now);
  }
  std::vector<std::string> parts{now};
  const std::size_t interval = std::min(all.change.find(" ("), all.change.size());
  if (!all.change.empty()) parts.push_back(unbroken(all.change.substr(0, interval)));
  if (interval < all.change.size()) parts.back() += " " + unbroken(all.change.substr(interval + 1));
  if (!all.evidence.empty()) parts.push_back(unbroken(all.evidence));
  std::string limit = markdown_text(all.limit);
  if (const std::size_t at = limit.find(" %"); at != limit.npos) limit.replace(at, 1, k_no_break);
  return {what, text::join(parts), limit};
}

// Behind a fold, where many tables share little room, a limit that all rows have is no column but
// stands behind `head`.
std::string table_of(const std::string& head, const std::vector<Row>& rows, bool folded) {
  const bool one_limit = folded && std::ranges::all_of(rows, [&](const Row& row) {
                           return row.back() == rows.front().back();
                         });
  std::string out = head;
  if (one_limit && !rows.front().back().empty()) {
    out += fmt::format(" \u00b7 {}", rows.front().back());
  }
  out += one_limit ? "\n\n| what | base \u2192 now |\n| --- | --- |\n"
                   : "\n\n| what | base \u2192 now | limit |\n| --- | --- | --- |\n";
  for (const Row& row : rows) {
    const auto shown = std::span(row).first(one_limit ? 2 : 3);
    out += fmt::format("| {} |\n", text::join(shown, " | "));
  }
  return out + "\n";
}

// "+45 ops": how many more there are that ran elsewhere.
std::string moved_ops(const std::vector<verdict::Changed>& ops) {
  std::optional<Rational> sum(Rational(0));
  for (const verdict::Changed& one : ops) {
    const auto by = one.current.value_or(Rational(0)).minus(one.baseline.value_or(Rational(0)));
    sum = sum && by ? sum->plus(*by) : std::nullopt;
  }
  return ops.empty() || !sum ? "see below" : unbroken(signed_show(*sum) + " ops elsewhere");
}

// A broken rule that is about no metric.
Row rule_row(const MetricRow& row) {
  const Judgement& of = *row.of;
  const bool placement = of.metric.name == verdict::k_placement;
  return {row.words.label, placement ? moved_ops(of.changed) : markdown_text(of.reason, 200),
          markdown_text(row.words.limit)};
}

std::string changed_list(const std::vector<ChangedWords>& all) {
  constexpr std::size_t k_most = 12;
  std::vector<std::string> parts;
  for (const auto& [change, name] : all) {
    parts.push_back(fmt::format("{} {}", change, markdown_code(name)));
  }
  return text::join(shortened(std::move(parts), k_most));
}

// " per token": what kernels are counted over.
std::string_view scope_of(const CellVerdict& cell) {
  for (const Judgement& metric : cell.metrics()) {
    if (!adds_up_kernels(cell, metric.metric)) continue;
    if (metric.metric.scope == unit::Scope::per_request) return " per request";
    if (metric.metric.scope == unit::Scope::per_token) return " per token";
    if (metric.metric.scope == unit::Scope::per_prefill) return " per prefill";
  }
  return "";
}

// The ratios of a metric's pairs, with what their marks mean.
std::string picture(const Judgement& metric) {
  const std::string strip = ratio_strip(metric, k_strip);
  if (strip.empty()) return "";
  return fmt::format("now / base: {}<br><sub>{}</sub>", markdown_code(strip),
                     markdown_text(strip_legend(metric)));
}

// From which part on cells are named throughout one report: without the engine where all have the
// same.
std::size_t first_part_of(const Document& document) {
  const auto& cells = document.gate.cells;
  return std::ranges::all_of(cells, [&](const CellVerdict& cell) {
    return cell.cell.engine_part() == cells.front().cell.engine_part();
  });
}

// As code: "tiny-llama · vulkan · decode".
std::string cell_name(const CellDocument& document, std::size_t first_part) {
  const std::array<std::string, 4> parts = cell_parts(document.of->cell);
  return markdown_code(text::join(std::span(parts).subspan(first_part), " \u00b7 "));
}

// A block as its cells and a table; "" where nothing needs a reader.
std::string table_of(const Block& block, std::size_t first_part) {
  const CellVerdict& cell = block.of();
  std::vector<Row> rows;
  for (const MetricRow* one : block.rows) {
    if (one->broken_rule()) rows.push_back(rule_row(*one));
  }
  for (const MetricRow* one : block.rows) {
    if (one->of->is_metric() && one->of->verdict < Outcome::pass) rows.push_back(row(*one));
  }
  if (rows.empty()) return "";
  const auto names = collect<std::string>(
      block.cells, [&](const CellDocument* one) { return cell_name(*one, first_part); });
  const std::string head =
      fmt::format("{} {}{}", look_of(cell.verdict).sign,
                  block.one() ? "" : plural(names.size(), "cell") + ": ", listed(names, 6));
  return table_of(head, rows, block.folded);
}

// What stands below the table: kernels, functions, ops, reasons that numbers do not tell, pictures
// of ratios. Cells of which the same is to be said share a paragraph.
struct Paragraph {
  std::string what;    // "Kernels per token": Markdown, without a mark at its end
  std::string text;    // Markdown within a line
  std::string behind;  // a block of code, or ""
  std::vector<const CellDocument*> cells;

  [[nodiscard]] bool says_as(const Paragraph& other) const {
    return what == other.what && text == other.text && behind == other.behind;
  }
};
std::vector<Paragraph> paragraphs_of(const Block& block) {
  const CellVerdict& cell = block.of();
  std::vector<Paragraph> out;
  const auto add = [&](const std::vector<const CellDocument*>& cells, std::string what,
                       std::string text, std::string behind = "") {
    const bool there = std::ranges::any_of(
        out, [&](const Paragraph& one) { return one.text == text && one.cells == cells; });
    if (!text.empty() && !there) {
      out.push_back({std::move(what), std::move(text), std::move(behind), cells});
    }
  };
  const auto add_changes = [&](const std::string& what, const std::vector<ChangedIn>& changes) {
    for (const ChangedIn& one : changes) add(one.cells, what, changed_list(one.changes));
  };
  const bool wrong = cell.verdict < Outcome::pass;
  if (wrong) {
    for (const Shared& why : block.why) add(why.cells, "Why", markdown_text(why.text, 400));
  }
  const Judgement& placement = cell.of(verdict::k_placement);
  const bool moved = placement.verdict < Outcome::pass;
  if (moved) add(block.cells, "Placement", markdown_text(placement.reason, 600));
  if (wrong) add_changes(fmt::format("Kernels{}", scope_of(cell)), block.kernels);
  if (wrong) add_changes("Functions", block.functions);
  // Where ops broke the rule, the reason names them.
  if (!moved) add_changes("Ops", block.ops);
  if (cell.verdict != Outcome::error) add(block.cells, "Note", markdown_text(cell.reason));
  for (const MetricRow* row : block.rows) {
    const Judgement& metric = *row->of;
    if (metric.verdict >= Outcome::pass || !metric.is_metric()) continue;
    std::string text = reason_is_plain(metric) ? "" : markdown_text(metric.reason);
    if (const std::string strip = picture(metric); !strip.empty()) {
      text += (text.empty() ? "" : "<br>") + strip;
    }
    const auto spread = spread_words(metric);
    add(block.cells, markdown_text(row->words.label), std::move(text),
        spread.empty() ? "" : markdown_fence(spread));
  }
  return out;
}

// Metrics over several cells as a table; in their order, the first `most`.
std::string table_of(const std::vector<NumberWords>& all, std::size_t most) {
  const bool some_cells =
      std::ranges::any_of(all, [](const NumberWords& one) { return !one.where.empty(); });
  std::string out = some_cells ? "| what | base \u2192 now | cells |\n| --- | --- | --- |\n"
                               : "| what | base \u2192 now |\n| --- | --- |\n";
  for (const NumberWords& one : std::span(all).first(std::min(most, all.size()))) {
    std::vector<std::string> now{markdown_text(one.from_to, 200), unbroken(one.change)};
    std::erase(now, "");
    out += fmt::format("| {} | {} |", markdown_text(one.label, 100), text::join(now));
    out += some_cells ? fmt::format(" {} |\n", markdown_text(one.where, 300)) : "\n";
  }
  if (all.size() > most) out += fmt::format("\nand {} more\n", all.size() - most);
  return all.empty() ? "" : out + "\n";
}

std::string text_of(const CauseWords& cause) {
  std::string out = fmt::format("**{}**\n", markdown_text(cause.headline, 400));
  if (!cause.where.empty()) out += fmt::format("In {}.\n", markdown_text(cause.where, 400));
  out += "\n" + table_of(cause.numbers, cause.numbers.size());
  std::vector<std::string> end;
  if (!cause.follow.empty()) end.push_back(markdown_text(cause.follow, 400) + ".");
  if (!cause.look_at.empty()) {
    end.push_back(fmt::format("Look at: {}", markdown_text(cause.look_at, 200)));
  }
  return end.empty() ? out : out + text::join(end, " ") + "\n\n";
}

// The last words of a cell's engine, folded away under `title`; "" where there are none.
std::string last_words_of(const CellDocument& cell, std::string_view title) {
  const auto tail = last_lines(cell.of->stderr_tail, 15, 4000);
  if (tail.empty()) return "";
  return fmt::format("<details><summary>{}</summary>\n\n{}\n</details>\n\n", title,
                     markdown_fence(tail));
}

// What the cells ran on, those that need a reader first: each name with its class.
std::vector<std::string> devices_of(const Document& document) {
  std::vector<const CellDocument*> cells = document.to_read;
  for (const CellDocument& cell : document.cells) cells.push_back(&cell);
  std::vector<std::string> devices;
  for (const CellDocument* one : cells) {
    const CellVerdict* cell = one->of;
    if (cell->device_name.empty() && cell->device_class.empty()) continue;
    std::string device = markdown_text(cell->device_name, 100);
    if (!cell->device_class.empty() && cell->device_class != cell->device_name) {
      device += (device.empty() ? "" : " ") + markdown_code(cell->device_class, 100);
    }
    if (!holds(devices, device)) devices.push_back(std::move(device));
  }
  constexpr std::size_t k_most = 3;
  if (devices.size() > k_most) {
    devices[k_most] = plural(devices.size() - k_most, "more device");
    devices.resize(k_most + 1);
  }
  return devices;
}

std::string_view question(const Hint& hint) {
  if (hint.what == "accept" || hint.what == "comment") return "Meant?";
  if (hint.what == "again") return "Try it:";
  if (hint.what == "allow") return "Meant to run on the CPU? Say why in the configuration:";
  if (hint.what == "store") return "New? Store a first baseline:";
  return hint.what == "why" ? "Why:" : "See:";
}

// A link to the run, or `text` alone where there is no plain https address.
std::string run_link(const MarkdownStyle& style, std::string_view text) {
  const bool plain = style.run_url && style.run_url->starts_with("https://") &&
                     style.run_url->find_first_of(" <>()\"'`\\\n\r|") == std::string::npos &&
                     style.run_url->size() < 400;
  return plain ? fmt::format("[{}]({})", text, *style.run_url) : std::string(text);
}

// "### ❌ weir: 1 of 8 cells broke a limit · …", shortened to about `most` bytes.
std::string heading_of(const Document& document, const MarkdownStyle& style, std::size_t most) {
  const GateVerdict& gate = document.gate;
  // Nothing at all is not green, nor what was not judged.
  const Outcome outcome = gate.verdict >= Outcome::improved && gate.cells.empty() ? Outcome::skipped
                          : gate.unjudged ? std::min(gate.verdict, Outcome::error)
                                          : gate.verdict;
  std::string line = fmt::format("### {} weir", look_of(outcome).sign);
  if (!style.gate.empty() && style.gate != "default") {
    line += fmt::format(" {}", markdown_code(style.gate, 40));
  }
  line += fmt::format(": {}", document.headline);
  if (gate.exit_code == verdict::ExitCode::inconclusive) line += ", which fails here";
  const std::string& missing = document.not_judged;
  std::string out = line + "\n\n";
  if (missing.empty()) return out;
  for (const std::size_t characters : {300U, 100U, 30U}) {
    out = fmt::format("{} \u00b7 {}\n\n", line, markdown_text(missing, characters));
    if (out.size() <= most) break;
  }
  return out;
}

// Commands, one a line; "" where there are none or they take more than `most` bytes.
std::string next_steps(const Document& document, const MarkdownStyle& style, std::size_t most) {
  std::vector<std::string> lines;
  for (const Hint& one : hints(document.gate, style.verbs, 200)) {
    const std::string command = markdown_code(text::join(one.words, " "), 2000);
    if (one.what == "comment") {
      lines.push_back(fmt::format("{} Comment {}", question(one), command));
    } else if (one.what == "accept" && !lines.empty() && lines.back().starts_with("Meant?")) {
      lines.back() += fmt::format(" or run {}", command);
    } else {
      lines.push_back(fmt::format("{} {}", question(one), command));
    }
  }
  const std::string out = text::join(lines, "<br>\n") + "\n\n";
  return lines.empty() || out.size() > most ? "" : out;
}

// Commits, the base and where it came from, devices, the machine; at most `most` bytes, which
// shall be 300 or more.
std::string foot_of(const Document& document, const MarkdownStyle& style, std::size_t most) {
  const GateVerdict& gate = document.gate;
  std::vector<std::string> parts;
  std::string commits;
  if (gate.commit) commits = markdown_code(*gate.commit, 12);
  if (!document.base.empty()) {
    commits +=
        fmt::format("{}against {}", commits.empty() ? "" : " ", markdown_text(document.base, 200));
  }
  if (!commits.empty()) parts.push_back(commits);
  for (std::string& device : devices_of(document)) parts.push_back(std::move(device));
  const CellVerdict* named =
      first_of(gate.cells, [](const CellVerdict& cell) { return !cell.machine_name.empty(); });
  if (named != nullptr) parts.push_back(markdown_text(named->machine_name, 100));
  if (gate.seconds) parts.push_back(unit::show_duration(*gate.seconds));
  if (const std::string link = run_link(style, "run"); link != "run") {
    parts.push_back(link);
  }
  // Everything that has room, the version in any case.
  const std::string version = "weir " + markdown_text(gate.weir_version, 12);
  std::string out = "<sub>";
  for (const std::string& part : parts) {
    constexpr std::string_view k_between = " \u00b7 ", k_end = "</sub>\n";
    if (out.size() + part.size() + version.size() + k_between.size() + k_end.size() > most) {
      continue;
    }
    out += part + std::string(k_between);
  }
  return out + version + "</sub>\n";
}

constexpr std::size_t k_open_blocks = 30;  // more of them fold: nobody reads on
constexpr std::string_view k_end_fold = "\n</details>\n\n";

// Pieces of text that together stay within a number of bytes.
class Pieces {
 public:
  explicit Pieces(std::size_t limit) : limit_(limit) {}
  // Kept free for what is added by end().
  void reserve(std::size_t bytes) { reserved_ += bytes; }
  // False, and nothing added, when there is no room left beside what is reserved.
  bool add(std::string_view piece, std::size_t also_needed = 0) {
    if (out_.size() + piece.size() + also_needed + reserved_ > limit_) return false;
    out_ += piece;
    return true;
  }
  // Takes room that was reserved.
  void end(std::string_view piece, std::size_t reserved = 0) {
    out_ += piece;
    reserved_ -= reserved;
  }
  [[nodiscard]] std::size_t size() const { return out_.size(); }
  [[nodiscard]] std::string finish() { return std::move(out_); }

 private:
  std::size_t limit_, reserved_ = 0;
  std::string out_;
};

class Markdown {
 public:
  Markdown(const Document& document, const MarkdownStyle& style)
      : document_(document),
        gate_(document.gate),
        style_(style),
        limit_(limit_of(document, style)),
        first_part_(first_part_of(document)),
        pieces_(limit_) {}

  std::string write() {
    const std::string foot = foot_of(document_, style_, std::min<std::size_t>(limit_ / 3, 1500));
    const std::string next = next_steps(document_, style_, limit_ / 4);
    pieces_.reserve(foot.size() + left_out(gate_.cells.size()).size() + next.size());
    pieces_.add(heading_of(document_, style_, limit_ / 5));
    proposals();
    causes();
    changed();
    other_code();
    errors();
    news();
    pieces_.end(next, next.size());
    more_changed();
    others();
    pairs();
    if (left_out_ > 0) pieces_.end(left_out(left_out_));
    pieces_.end(foot);
    return pieces_.finish();
  }

 private:
  static std::size_t limit_of(const Document& document, const MarkdownStyle& style) {
    // GitHub's limits of comments and checks are no reason to fill them with cells.
    const bool brief = document.cause_first && style.limit < k_summary_limit;
    return std::max<std::size_t>(brief ? std::min(style.limit, k_brief_limit) : style.limit, 2000);
  }

  // As many as there is room for: what nothing explains has a quarter of it in any case.
  void causes() {
    if (!document_.cause_first) return;
    std::string rest;
    for (std::size_t most = 12; most > 0 && !document_.unexplained.empty(); --most) {
      rest = fmt::format("**Not explained**\n\n{}", table_of(document_.unexplained, most));
      if (rest.size() <= limit_ / 4) break;
    }
    if (rest.size() > limit_ / 4) {
      rest =
          fmt::format("**{} not explained**\n\n", plural(document_.unexplained.size(), "change"));
    }
    const auto more = [](std::size_t causes) {
      return fmt::format("_and {}_\n\n", plural(causes, "more cause"));
    };
    const std::size_t all = document_.causes.size();
    pieces_.reserve(rest.size() + more(all).size());
    std::size_t shown = 0;
    while (shown < all && pieces_.add(text_of(document_.causes[shown]))) ++shown;
    pieces_.end(rest, rest.size());
    pieces_.end(shown < all ? more(all - shown) : "", more(all).size());
  }

  // As many of them as a quarter of the room holds.
  void proposals() {
    constexpr std::size_t k_most = 10;
    for (std::size_t most = k_most; most > 0; --most) {
      const ProposalWords all = proposal_words(gate_, most);
      if (all.head.empty()) return;
      std::string piece = fmt::format("**{}**\n\n", markdown_text(all.head));
      for (const std::string& line : all.lines) piece += fmt::format("- {}\n", markdown_text(line));
      if (piece.size() <= limit_ / 4 && pieces_.add(piece + "\n")) return;
    }
  }

  [[nodiscard]] std::string left_out(std::size_t cells) const {
    return fmt::format("_{} left out{}. {} has all._\n\n", plural(cells, "more cell"),
                       document_.cause_first ? "" : ": a comment cannot be longer",
                       run_link(style_, "The report of the run"));
  }

  // "`a`, `b` and 3 more".
  [[nodiscard]] std::string names(const std::vector<const CellDocument*>& cells) const {
    return listed(
        collect<std::string>(cells, [&](auto* cell) { return cell_name(*cell, first_part_); }), 5);
  }

  // The worst cells open, with what there is to say of them.
  void changed() {
    for (const Block& block : document_.blocks) {
      if (!reason_says_all(block.of()) && !table_of(block, first_part_).empty()) {
        table_.push_back(&block);
      }
    }
    std::ranges::stable_partition(table_, [](const Block* block) { return !block->folded; });
    std::vector<Paragraph> below;
    std::size_t cells = 0;
    for (const Block* block : table_) {
      if (block->folded || shown_ == k_open_blocks || pieces_.size() > limit_ / 2) break;
      if (!pieces_.add(table_of(*block, first_part_), 200)) break;
      ++shown_;
      cells += block->cells.size();
      for (Paragraph& one : paragraphs_of(*block)) take(below, std::move(one));
    }
    paragraphs(below, cells);
  }

  void other_code() {
    const std::string all = shared_list(document_.other_code());
    if (!all.empty()) pieces_.add(fmt::format("**Kernels with other code**\n\n{}\n", all));
  }

  // What several blocks say alike stands once.
  static void take(std::vector<Paragraph>& all, Paragraph said) {
    Paragraph* same = first_of(all, [&](const Paragraph& one) { return one.says_as(said); });
    if (same == nullptr) return all.push_back(std::move(said));
    same->cells.insert(same->cells.end(), said.cells.begin(), said.cells.end());
  }

  void paragraphs(const std::vector<Paragraph>& all, std::size_t cells) {
    std::size_t left = 0;
    for (const Paragraph& one : all) {
      std::string where;
      if (one.cells.size() < cells) where = fmt::format(" in {}", names(one.cells));
      const std::string text = fmt::format("**{}**{}: {}\n\n", one.what, where, one.text);
      const std::string behind = one.behind.empty() ? "" : one.behind + "\n";
      // Half of what is left is for the rest.
      if (!pieces_.add(text + behind, (limit_ - std::min(limit_, pieces_.size())) / 4)) ++left;
    }
    if (left > 0) pieces_.add(fmt::format("_and {} more about these cells_\n\n", left));
  }

  void errors() {
    Grouped<const CellDocument*, std::vector<const CellDocument*>> groups;
    for (const CellDocument* cell : document_.to_read) {
      if (cell->of->verdict == Outcome::error) groups.of(error_key(*cell), cell).push_back(cell);
    }
    for (const auto& [first, cells] : groups.all) {
      const std::string text =
          fmt::format("**Not {}:** {}: {}\n\n", first->of->not_compared ? "compared" : "measured",
                      names(cells), markdown_text(shared_reason(cells), 1500));
      if (!pieces_.add(text)) {
        left_out_ +=
            static_cast<std::size_t>(std::ranges::count_if(cells, [&](const CellDocument* cell) {
              return std::ranges::none_of(
                  table_, [&](const Block* block) { return holds(block->cells, cell); });
            }));
        continue;
      }
      for (const CellDocument* cell : cells) {
        const std::string last = last_words_of(
            *cell, cells.size() == 1 ? "its last words" : "last words of one of them");
        if (last.empty()) continue;
        pieces_.add(last);
        break;
      }
    }
  }

  void news() {
    for (const Shared& fresh : document_.by_reason(Outcome::new_)) {
      const std::string text =
          fmt::format("**{} new:** {} ({})\n\n", plural(fresh.cells.size(), "cell"),
                      markdown_text(fresh.text), names(fresh.cells));
      if (!pieces_.add(text)) left_out_ += fresh.cells.size();
    }
  }

  // Rows under a heading within a fold; how many there was no room for.
  std::size_t fold(std::string_view summary, std::string_view head,
                   const std::vector<std::string>& rows, const std::string& behind = "") {
    const std::size_t end = behind.size() + k_end_fold.size() + 40;
    if (!pieces_.add(fmt::format("<details><summary>{}</summary>\n\n", summary), end + 200)) {
      return rows.size();
    }
    std::size_t shown = 0;
    for (const std::string& row : rows) {
      if (!pieces_.add((shown == 0 ? std::string(head) : "") + row, end)) break;
      ++shown;
    }
    if (shown < rows.size()) pieces_.end(fmt::format("\nand {} more\n", rows.size() - shown));
    if (!behind.empty()) pieces_.end((shown > 0 ? "\n" : "") + behind);
    pieces_.end(k_end_fold);
    return rows.size() - shown;
  }

  void more_changed() {
    std::vector<std::string> rows;
    std::size_t cells = 0;
    for (std::size_t i = shown_; i < table_.size(); ++i) {
      rows.push_back(table_of(*table_[i], first_part_));
      cells += table_[i]->cells.size();
    }
    if (rows.empty()) return;
    const std::string summary =
        fmt::format("{} that changed", plural(cells, document_.cause_first ? "cell" : "more cell"));
    const std::size_t left = fold(summary, "", rows);
    for (std::size_t i = table_.size() - left; i < table_.size(); ++i) {
      left_out_ += table_[i]->cells.size();
    }
  }

  // What is fine, folded away; a green has one line of it.
  void others() {
    std::vector<std::string> lines;
    std::size_t fine = 0, skipped = 0;
    for (const CellDocument& cell : document_.cells) {
      const Outcome outcome = cell.of->verdict;
      if (outcome != Outcome::pass && outcome != Outcome::skipped) continue;
      const bool passed = outcome == Outcome::pass;
      if (passed) {
        ++fine;
      } else {
        ++skipped;
      }
      lines.push_back(fmt::format(
          "| {} | {} | {} |\n", cell_name(cell, first_part_), verdict::to_string(outcome),
          passed ? plural(cell.passed, "metric") : markdown_text(cell.reason, 200)));
    }
    const std::string warnings = shared_list(document_.warnings());
    if (lines.empty() && warnings.empty()) return;
    if (gate_.verdict == Outcome::pass && warnings.empty()) {
      pieces_.add(short_line());
      return;
    }
    std::vector<std::string> summary;
    if (fine > 0) summary.push_back(plural(fine, "cell") + " unchanged");
    if (skipped > 0) summary.push_back(fmt::format("{} skipped", skipped));
    if (!warnings.empty()) summary.emplace_back("warnings");
    fold(text::join(summary), "| cell | verdict | what |\n| --- | --- | --- |\n", lines,
         warnings + shared_list(document_.notes()));
  }

  // A list of what several cells say alike.
  [[nodiscard]] std::string shared_list(const std::vector<Shared>& all) const {
    std::string out;
    for (const Shared& one : all) {
      const std::string cells = one.cells.empty()
                                    ? ""
                                    : fmt::format(" ({} of {})", one.cells.size(),
                                                  plural(document_.cells.size(), "cell"));
      const std::string line = fmt::format("- {}{}\n", markdown_text(one.text), cells);
      if (out.size() + line.size() > std::min<std::size_t>(limit_ / 8, 4000)) break;
      out += line;
    }
    return out;
  }

  // Times that pairs have found fine, and what a verdict by pairs promises.
  void pairs() {
    if (!document_.beside_base) return;
    std::vector<std::string> lines;
    for (const CellDocument& cell : document_.cells) {
      for (const MetricRow* row : pictured(cell)) {
        if (row->of->verdict != Outcome::pass) continue;
        lines.push_back(fmt::format("| {} | {} | {} | {} | {} |\n", cell_name(cell, first_part_),
                                    markdown_text(row->words.label), row->words.change,
                                    row->words.evidence,
                                    markdown_code(ratio_strip(*row->of, k_strip))));
      }
    }
    fold("Times compared with the base build",
         "| cell | what | change | evidence | now / base |\n| --- | --- | --- | --- | --- |\n",
         lines, markdown_text(gate_.decision_rule, 2000) + "\n");
  }

  [[nodiscard]] std::string short_line() const {
    const std::string& rule = document_.rule;
    std::string line = "Checked: ";
    line += rule.empty() ? plural(static_cast<std::size_t>(gate_.metrics_judged), "metric") : rule;
    const std::size_t skipped = document_.cells_with(Outcome::skipped);
    if (skipped > 0) line += fmt::format("; {} skipped", skipped);
    return line + ".\n\n";
  }

  const Document& document_;
  const GateVerdict& gate_;
  const MarkdownStyle& style_;
  std::size_t limit_;
  std::size_t first_part_;
  Pieces pieces_;
  std::vector<const Block*> table_;  // all that have rows, the worst first
  std::size_t shown_ = 0;            // of these, above
  std::size_t left_out_ = 0;
};

}  // namespace

std::string markdown(const Document& document, const MarkdownStyle& style) {
  return Markdown(document, style).write();
}

}  // namespace weir::report
