// Writes a gate's verdict as GitHub Markdown within a number of bytes.
#include "gate/report/markdown.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/compose.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/ratios.hpp"

namespace weir::report {
namespace {

constexpr std::size_t k_strip = 60;  // columns of a picture of ratios
constexpr std::string_view k_end_fold = "\n</details>\n\n";

// Returns the spans as one line of Markdown: code in backquotes, other text escaped.
std::string marked_up(const Words& words, std::size_t max_columns = 600) {
  std::string out;
  for (const Span& span : words) {
    if (span.text.starts_with(' ')) out += ' ';
    out += span.code ? markdown_code(span.text) : markdown_text(span.text, max_columns);
    if (span.text.ends_with(' ')) out += ' ';
  }
  return out;
}

// Returns the bold head of a part: "**Kernels per token** in 1 of 3 (…): ". Without a head, only
// the cells it is about.
std::string head_text(const Part& part) {
  if (part.head.empty()) return markdown_text(part.in);
  const std::string_view in = part.in;
  const std::string cells = markdown_text(in.substr(0, in.rfind(':')));
  return fmt::format("**{}**{}: ", marked_up(part.head), text::prefix_if_any(" ", cells));
}

// Returns the table cell with values, change and evidence: "65 → **77**, +12", or the reason if
// there are none. Lines break only between these phrases, because a phone has room for 2.5 columns.
std::string value_cell(const Number& number) {
  const bool is_bold = number.outcome == Outcome::fail && !number.candidate.empty();
  std::vector<std::string> parts;
  std::string values =
      without_breaks(is_bold ? fmt::format("**{}**", number.candidate) : number.candidate);
  if (!number.base.empty()) {
    constexpr std::size_t k_short = 12;
    const bool fits = text::columns(number.base) + text::columns(number.candidate) <= k_short;
    const std::string_view space = fits ? k_no_break : " ";
    values = fmt::format("{}{}\u2192{}{}", without_breaks(number.base), space, k_no_break, values);
  }
  const std::size_t interval = std::min(number.change.find(" ("), number.change.size());
  std::string change = without_breaks(number.change.substr(0, interval));
  if (interval < number.change.size())
    change += " " + without_breaks(number.change.substr(interval + 1));
  for (std::string& part : std::array{values, change, without_breaks(number.evidence)}) {
    if (!part.empty()) parts.push_back(std::move(part));
  }
  return parts.empty() ? markdown_text(number.why, 200) : text::join(parts);
}

std::string limit_cell(const Number& number) {
  std::string limit = markdown_text(number.limit);
  if (const std::size_t at = limit.find(" %"); at != limit.npos) limit.replace(at, 1, k_no_break);
  return limit;
}

// Returns a row's label; an outcome that the rest of the row does not show follows in brackets.
std::string label_cell(const Number& number) {
  const bool outcome_is_clear = !number.outcome || *number.outcome == Outcome::fail ||
                                *number.outcome == Outcome::pass ||
                                number.limit.starts_with("improved");
  const std::string label = markdown_text(number.label, 100);
  if (outcome_is_clear) return label;
  return fmt::format("{} ({})", label, verdict::to_string(*number.outcome));
}

std::string table_line(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

// Returns the head of a Markdown table. Columns whose title begins with '#' hold numbers, which are
// aligned to the right.
std::string table_head(const std::vector<std::string>& columns) {
  std::vector<std::string> titles, marks;
  for (const std::string& title : columns) {
    const bool number = title.starts_with('#');
    titles.push_back(number ? title.substr(1) : title);
    marks.emplace_back(number ? "---:" : "---");
  }
  return table_line(titles) + table_line(marks);
}

// The parts of a report as Markdown, each within a number of bytes.
class Writer {
 public:
  explicit Writer(std::size_t limit) : limit_(limit) {}

  // Returns the part in at most `room` bytes; "" if it doesn't fit. Counts cells that are left out.
  std::string fit(const Part& part, std::size_t room, bool top = false) {
    if ((part.readers & k_comment) == 0) return "";
    if (part.kind == Part::Kind::section || part.kind == Part::Kind::fold) {
      return container(part, room);
    }
    std::string out;
    if (part.kind == Part::Kind::table) {
      out = table(part, room);
    } else if (part.kind == Part::Kind::numbers) {
      out = numbers(part, room);
    } else {
      out = block(part, top);
    }
    return out.size() > room ? "" : out;
  }

  [[nodiscard]] std::size_t cells_left_out() const { return left_out_; }

 private:
  // Returns true if a comment shows rows of numbers of any of these parts.
  static bool has_rows(const Parts& parts) {
    return std::ranges::any_of(parts, [](const Part& part) {
      return std::ranges::any_of(
          part.numbers, [](const Number& number) { return (number.readers & k_comment) != 0; });
    });
  }

  // Returns the title of a section, with the sign of its outcome; other outcomes than fail and pass
  // are named as well.
  static std::string title(const Part& part) {
    if (!part.outcome) return fmt::format("**{}**\n\n", marked_up(part.head));
    const OutcomeLook& look = outcome_look(*part.outcome);
    const bool sign_is_clear = *part.outcome == Outcome::fail || *part.outcome == Outcome::pass;
    return fmt::format("{} {}{}\n\n", look.sign, sign_is_clear ? "" : fmt::format("{}: ", look.tag),
                       marked_up(part.head));
  }

  // Returns a section or fold with those of its parts that fit, and "_and 3 more causes_" for the
  // others. "" if none fits.
  std::string container(const Part& part, std::size_t room) {
    constexpr std::size_t k_more = 60;  // bytes reserved for that line
    const bool shut = part.kind == Part::Kind::fold;
    std::string out = (part.titled & k_comment) == 0 ? "" : title(part);
    if (shut) {
      out = fmt::format("<details><summary>{}{}</summary>\n\n",
                        part.outcome ? fmt::format("{} ", outcome_look(*part.outcome).sign) : "",
                        marked_up(part.head));
      ++depth_;
    }
    const std::size_t fold_size = shut ? k_end_fold.size() : 0;
    const std::size_t end = k_more + fold_size;
    // A cell in a fold shows only its numbers, if it has any.
    const bool numbers_alone = depth_ > 0 && part.cell_count > 0 && has_rows(part.parts);
    const bool has_children = std::ranges::any_of(
        part.parts, [](const Part& child) { return (child.readers & k_comment) != 0; });
    // Parts with a noun are shown in full or counted; none is shown after one that had no room.
    const bool counts_parts = !part.noun.empty();
    std::size_t counted = 0;
    bool has_shown = !has_children;
    bool lacks_numbers = false;
    for (const Part& child : part.parts) {
      if ((child.readers & k_comment) == 0) continue;
      short_ = numbers_alone;
      if (short_ && child.kind != Part::Kind::numbers) continue;
      const std::size_t used = std::min(room, out.size() + end);
      const std::size_t room_left = room - used;
      std::string piece;
      if (counted == 0) piece = fit(child, counts_parts ? limit_ : room_left);
      if (piece.size() > room_left) piece.clear();
      if (!piece.empty()) has_shown = true;
      if (piece.empty() && has_rows({child})) lacks_numbers = true;
      if (piece.empty() && counts_parts) ++counted;
      if (piece.empty() && !counts_parts) left_out_ += child.cell_count;
      out += piece;
    }
    if (shut) --depth_;
    if (counted > 0) {
      out += fmt::format("_and {}_\n\n", text::plural(counted, "more " + part.noun));
    }
    // Don't leave a title whose numbers have no room.
    if (!has_shown || lacks_numbers) return "";
    if (out.size() + fold_size > room) return "";
    if (!shut) return out;
    // The fold's end begins with a line break, which an empty line makes needless.
    const std::size_t skipped = out.ends_with("\n\n") ? 1 : 0;
    return out + std::string(k_end_fold.substr(skipped));
  }

  // Returns a part that is no section and no table; `top`: it stands in no section.
  std::string block(const Part& part, bool top) {
    switch (part.kind) {
      case Part::Kind::paragraph: {
        const std::string words = marked_up(part.words, 1500);
        return words.empty() ? "" : head_text(part) + words + "\n\n";
      }
      case Part::Kind::list:
        return list(part, top);
      case Part::Kind::changes: {
        // A change is weir's own text; its name comes from outside and is code.
        auto items = collect<std::string>(part.items, [](const Words& item) {
          return fmt::format("{} {}", item.front().text, markdown_code(item.back().text));
        });
        return head_text(part) + text::join(shortened(std::move(items), part.max_shown)) + "\n\n";
      }
      case Part::Kind::preformatted: {
        constexpr std::size_t k_few_lines = 3;  // often the reason itself
        const auto lines = last_lines(part.text, 15, 4000);
        return lines.empty() ? ""
                             : fmt::format("<details{}><summary>{}</summary>\n\n{}{}",
                                           lines.size() <= k_few_lines ? " open" : "",
                                           marked_up(part.head), markdown_fence(lines), k_end_fold);
      }
      case Part::Kind::ratios:
        return ratios(part);
      default:
        return "";
    }
  }

  // Returns a list with as many items as fit into a quarter of the limit, "and 3 more" at its end.
  std::string list(const Part& part, bool top) const {
    std::string out;
    std::size_t shown = 0;
    const std::size_t shown_count = part.max_shown == 0 ? part.items.size() : part.max_shown;
    for (const Words& item : part.items) {
      const std::string line = fmt::format("- {}\n", marked_up(item));
      if (shown == shown_count ||
          out.size() + line.size() > std::min<std::size_t>(limit_ / 4, 4000))
        break;
      out += line;
      ++shown;
    }
    if (part.items.empty()) return "";
    if (shown < part.items.size()) out += fmt::format("- and {} more\n", part.items.size() - shown);
    return (top && !part.head.empty() ? fmt::format("**{}**\n\n", marked_up(part.head)) : "") +
           out + "\n";
  }

  // Returns a table with as many rows as fit, "and 3 more" after it; "" if none fits.
  static std::string table(const Part& part, std::size_t room) {
    std::string out = table_head(part.columns);
    std::size_t shown = 0;
    for (const std::vector<Words>& row : part.rows) {
      const std::string line =
          table_line(collect<std::string>(row, [](const Words& cell) { return marked_up(cell); }));
      if (out.size() + line.size() + 30 > room) break;
      out += line;
      ++shown;
    }
    if (shown == 0) return "";
    if (shown < part.rows.size()) out += fmt::format("\nand {} more\n", part.rows.size() - shown);
    return out + "\n";
  }

  // Returns the ratios of a metric's pairs as a strip of characters, with its legend.
  static std::string ratios(const Part& part) {
    const auto spread = collect<std::string>(part.items, plain_text);
    return fmt::format("**{}**: now / base: {}<br><sub>{}</sub>\n\n{}", marked_up(part.words),
                       markdown_code(ratio_strip(*part.judged, k_strip)),
                       markdown_text(strip_legend(*part.judged)),
                       spread.empty() ? "" : markdown_fence(spread) + "\n");
  }

  // Returns a table of numbers, and below it the reasons and changes of its rows. "Limit" and
  // "cells" are columns if any row has them; a limit that all rows share stands above the table.
  std::string numbers(const Part& part, std::size_t room) {
    std::vector<const Number*> rows;
    for (const Number& number : part.numbers) {
      if ((number.readers & k_comment) != 0) rows.push_back(&number);
    }
    if (rows.empty()) return "";
    const std::size_t shown_count =
        part.max_shown == 0 ? rows.size() : std::min(rows.size(), part.max_shown);
    const auto any = [&](std::string Number::*text) {
      return std::ranges::any_of(rows,
                                 [&](const Number* number) { return !(number->*text).empty(); });
    };
    const bool shares_limit =
        rows.size() > 1 && std::ranges::all_of(rows, [&](const Number* number) {
          return number->limit == rows.front()->limit;
        });
    const bool has_limits = any(&Number::limit) && !shares_limit;
    const bool has_cells = any(&Number::where);
    std::string out;
    if (shares_limit && any(&Number::limit)) {
      out = fmt::format("Limit: {}\n\n", limit_cell(*rows.front()));
    }
    std::vector<std::string> columns{"what", "base \u2192 now"};
    if (has_limits) columns.emplace_back("limit");
    if (has_cells) columns.emplace_back("cells");
    out += table_head(columns);
    constexpr std::size_t k_more = 30;
    std::string below;
    std::size_t shown = 0, hidden = 0;
    const auto add_below = [&](const std::string& text) {
      if (out.size() + below.size() + text.size() + 2 * k_more <= room) {
        below += text;
      } else {
        ++hidden;
      }
    };
    for (const Number* row : std::span(rows).first(shown_count)) {
      std::vector<std::string> line{label_cell(*row), value_cell(*row)};
      if (has_limits) line.push_back(limit_cell(*row));
      if (has_cells) line.push_back(markdown_text(row->where, 300));
      if (out.size() + table_line(line).size() + k_more > room) break;
      out += table_line(line);
      ++shown;
    }
    if (shown == 0) return "";
    if (shown < rows.size()) out += fmt::format("\nand {} more\n", rows.size() - shown);
    out += "\n";
    for (const Number* row : std::span(rows).first(short_ ? 0 : shown)) {
      if (!row->why.empty() && has_numbers(*row)) {
        add_below(
            fmt::format("**{}**: {}\n\n", markdown_text(row->label), markdown_text(row->why)));
      }
      for (const Part& part_below : row->below) {
        if ((part_below.readers & k_comment) != 0) add_below(block(part_below, /*top=*/false));
      }
    }
    if (hidden > 0) below += fmt::format("_and {} more_\n\n", hidden);
    return out + below;
  }

  std::size_t limit_;
  std::size_t depth_ = 0;     // number of folds around
  bool short_ = false;        // show tables of numbers without the reasons and changes below
  std::size_t left_out_ = 0;  // number of cells left out
};

// Returns the first three devices, each name with its class, and a count of the others.
std::vector<std::string> device_names(const GateVerdict& gate) {
  constexpr std::size_t k_max_devices_listed = 3;
  std::vector<std::string> devices;
  std::set<std::string> seen;
  for (const CellVerdict& cell : gate.cells) {
    std::string device = markdown_text(cell.device_name, 100);
    if (!cell.device_class.empty() && cell.device_class != cell.device_name) {
      if (!device.empty()) device += " ";
      device += markdown_code(cell.device_class, 100);
    }
    if (device.empty()) continue;
    const bool is_new = seen.insert(device).second;
    if (is_new) devices.push_back(std::move(device));
  }
  return shortened(std::move(devices), k_max_devices_listed);
}

// Returns the words before a command: "Meant?", "Try it:", …
std::string_view question(const Hint& hint) {
  if (hint.what == "accept" || hint.what == "comment") return "Meant?";
  if (hint.what == "again") return "Try it:";
  if (hint.what == "allow") return "Meant to run on the CPU? Say why in the configuration:";
  if (hint.what == "compare")
    return "What do the new settings cost? Compare with a run of the old:";
  if (hint.what == "store") return "New? Store a first baseline:";
  return hint.what == "why" ? "Why:" : "See:";
}

// Returns a link to the run, or `text` alone if there is no plain https address.
std::string run_link(const MarkdownStyle& style, std::string_view text) {
  const bool is_plain = style.run_url && style.run_url->starts_with("https://") &&
                        style.run_url->find_first_of(" <>()\"'`\\\n\r|") == std::string::npos &&
                        style.run_url->size() < 400;
  return is_plain ? fmt::format("[{}]({})", text, *style.run_url) : std::string(text);
}

// Returns the heading, "### ❌ weir: 1 of 8 cells broke a limit · …", shortened to about
// `max_bytes`.
std::string heading(const Document& document, const MarkdownStyle& style, std::size_t max_bytes) {
  const GateVerdict& gate = document.gate;
  // A run without cells or without a judgement must not look green.
  Outcome outcome = gate.verdict;
  if (gate.verdict >= Outcome::improved && gate.cells.empty()) {
    outcome = Outcome::skipped;
  } else if (gate.nothing_judged_reason) {
    outcome = std::min(gate.verdict, Outcome::error);
  }
  std::string line = fmt::format("### {} weir", outcome_look(outcome).sign);
  if (!style.gate.empty() && style.gate != "default") {
    line += fmt::format(" {}", markdown_code(style.gate, 40));
  }
  line += ": " + markdown_text(document.headline, 400);
  if (gate.exit_code == verdict::ExitCode::inconclusive) line += ", which fails here";
  const std::string& missing = document.not_judged;
  std::string out = line + "\n\n";
  if (missing.empty()) return out;
  for (const std::size_t characters : {300U, 100U, 30U}) {
    out = fmt::format("{} \u00b7 {}\n\n", line, markdown_text(missing, characters));
    if (out.size() <= max_bytes) break;
  }
  return out;
}

// Returns true for an option of a command that names a branch or a commit. A clone of the reader's
// may lack it.
bool names_commit(const std::string& option) {
  constexpr std::string_view k_options[] = {"--against ", "--rules-from ", "--baselines-ref ",
                                            "--waivers-ref "};
  return !option.starts_with("--against --") &&
         std::ranges::any_of(k_options,
                             [&](std::string_view name) { return option.starts_with(name); });
}

// Returns the commands to try next, one a line; "" if there are none or they take more than
// `max_bytes`.
std::string next_steps(const Document& document, const MarkdownStyle& style,
                       std::size_t max_bytes) {
  std::vector<std::string> lines;
  std::vector<Hint> steps = hints(document.gate, style.verbs, 200);
  std::erase_if(steps, [](const Hint& hint) { return hint.what == "numbers"; });  // in folds below
  // Readers of a comment have no run yet that a command could explain.
  std::ranges::stable_partition(steps, [](const Hint& hint) { return hint.what == "again"; });
  for (const Hint& hint : steps) {
    const bool needs_fetch = hint.what == "again" && std::ranges::any_of(hint.words, names_commit);
    const std::string command =
        markdown_code((needs_fetch ? "git fetch && " : "") + text::join(hint.words, " "), 2000);
    if (hint.what == "comment") {
      lines.push_back(fmt::format("{} Comment {}", question(hint), command));
    } else if (hint.what == "accept" && !lines.empty() && lines.back().starts_with("Meant?")) {
      lines.back() += fmt::format(" or run {}", command);
    } else {
      lines.push_back(fmt::format("{} {}", question(hint), command));
    }
  }
  const std::string out = text::join(lines, "<br>\n") + "\n\n";
  return lines.empty() || out.size() > max_bytes ? "" : out;
}

// Returns the last line: commits, the base and its source, devices, the machine, weir's version.
// Takes at most `max_bytes`, which shall be 300 or more.
std::string footer(const Document& document, const MarkdownStyle& style, std::size_t max_bytes) {
  const GateVerdict& gate = document.gate;
  std::vector<std::string> parts;
  std::string commits;
  if (gate.commit) commits = markdown_code(text::short_commit(*gate.commit), 12);
  if (!document.base.empty()) {
    const char* against = document.base.starts_with("no ") ? "" : "against ";
    text::append_item(commits, " ", against + markdown_text(document.base, 200));
  }
  if (!commits.empty()) parts.push_back(commits);
  for (std::string& device : device_names(gate)) parts.push_back(std::move(device));
  const CellVerdict* named =
      find_first(gate.cells, [](const CellVerdict& cell) { return !cell.machine_name.empty(); });
  if (named != nullptr) parts.push_back(markdown_text(named->machine_name, 100));
  if (gate.seconds) parts.push_back(unit::show_duration(*gate.seconds));
  if (const std::string link = run_link(style, "run"); link != "run") {
    parts.push_back(link);
  }
  // Facts that don't fit are left out; the version is always there.
  const std::string version = "weir " + markdown_text(gate.weir_version, 12);
  std::string out = "<sub>";
  for (const std::string& part : parts) {
    constexpr std::string_view k_between = " \u00b7 ", k_end = "</sub>\n";
    if (out.size() + part.size() + version.size() + k_between.size() + k_end.size() > max_bytes) {
      continue;
    }
    out += part + std::string(k_between);
  }
  return out + version + "</sub>\n";
}

std::size_t byte_limit(const Document& document, const MarkdownStyle& style) {
  // A comment that begins with causes stays short, whatever GitHub allows.
  const bool brief = document.cause_first && style.limit < k_summary_limit;
  return std::max<std::size_t>(brief ? std::min(style.limit, k_brief_limit) : style.limit, 2000);
}

std::string left_out_note(const Document& document, const MarkdownStyle& style, std::size_t cells) {
  return fmt::format("_{} left out{}. {} has all._\n\n", text::plural(cells, "more cell"),
                     document.cause_first ? "" : ": a comment cannot be longer",
                     run_link(style, "The report of the run"));
}

}  // namespace

std::string markdown(const Document& document, const MarkdownStyle& style) {
  constexpr std::size_t k_open_blocks = 30;  // further blocks go into a fold
  const std::size_t limit = byte_limit(document, style);
  const Parts parts = compose(document);
  Writer writer(limit);
  const std::string foot = footer(document, style, std::min<std::size_t>(limit / 3, 1500));
  const std::string next = next_steps(document, style, limit / 4);
  std::string out = heading(document, style, limit / 5);
  std::size_t reserved =
      foot.size() + next.size() + left_out_note(document, style, document.cells.size()).size();
  const auto room = [&] { return limit - std::min(limit, out.size() + reserved); };
  Part folded{.kind = Part::Kind::fold};
  // Reserve room for parts that must be shown, before the many others take it.
  std::map<const Part*, std::string> texts;
  for (const Part& part : parts) {
    if (!part.has_room) continue;
    std::string text = writer.fit(part, std::min(limit / 4, room()), /*top=*/true);
    if (text.empty()) {
      const std::size_t changes = part.parts.front().numbers.size();
      text = fmt::format("**{} not explained**\n\n", text::plural(changes, "change"));
    }
    reserved += text.size();
    texts.emplace(&part, std::move(text));
  }
  std::size_t shown = 0;
  for (const Part& part : parts) {
    if (part.kind == Part::Kind::fold) continue;
    if (const auto text = texts.find(&part); text != texts.end()) {
      reserved -= text->second.size();
      out += text->second;
      continue;
    }
    // Cells without numbers show only a reason, which is short.
    const bool has_numbers = part.outcome != Outcome::error && part.outcome != Outcome::new_;
    const bool is_folded =
        part.cell_count > 0 && has_numbers && (shown == k_open_blocks || out.size() > limit / 2);
    const std::string text = is_folded ? "" : writer.fit(part, room(), /*top=*/true);
    out += text;
    if (part.cell_count == 0) continue;
    if (text.empty()) {
      folded.parts.push_back(part);
      folded.cell_count += part.cell_count;
    } else {
      ++shown;
    }
  }
  out += next;
  reserved -= next.size();
  folded.head = {{text::plural(folded.cell_count, "more cell") + " that changed"}};
  folded.cell_count = 0;
  std::vector<const Part*> folds;
  if (!folded.parts.empty()) folds.push_back(&folded);
  for (const Part& part : parts) {
    if (part.kind == Part::Kind::fold) folds.push_back(&part);
  }
  for (const Part* part : folds) out += writer.fit(*part, room());
  if (writer.cells_left_out() > 0) out += left_out_note(document, style, writer.cells_left_out());
  return out + foot;
}

}  // namespace weir::report
