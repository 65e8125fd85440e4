#include "gate/report/markdown.hpp"

#include <algorithm>
#include <array>
#include <map>
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

// Spans as Markdown of one line.
std::string marked_up(const Words& words, std::size_t most = 600) {
  std::string out;
  for (const Span& span : words) {
    if (span.text.starts_with(' ')) out += ' ';
    out += span.code ? markdown_code(span.text) : markdown_text(span.text, most);
    if (span.text.ends_with(' ')) out += ' ';
  }
  return out;
}

// "**Kernels per token** in 1 of 3 (…): "; "" without a head.
std::string lead_of(const Part& part) {
  if (part.head.empty()) return markdown_text(part.in);
  const std::string_view in = part.in;
  return fmt::format("**{}**{}{}: ", marked_up(part.head), in.empty() ? "" : " ",
                     markdown_text(in.substr(0, in.rfind(':'))));
}

// A phone has room for two columns and a half: lines break between phrases, which are unbroken().
std::string base_and_now(const Number& one) {
  const bool failed = one.outcome == Outcome::fail;
  std::vector<std::string> parts;
  std::string now = unbroken(failed && !one.now.empty() ? fmt::format("**{}**", one.now) : one.now);
  if (!one.base.empty()) {
    constexpr std::size_t k_short = 12;
    const bool fits = text::columns(one.base) + text::columns(one.now) <= k_short;
    now =
        fmt::format("{}{}\u2192{}{}", unbroken(one.base), fits ? k_no_break : " ", k_no_break, now);
  }
  const std::size_t interval = std::min(one.change.find(" ("), one.change.size());
  std::string change = unbroken(one.change.substr(0, interval));
  if (interval < one.change.size()) change += " " + unbroken(one.change.substr(interval + 1));
  for (std::string& part : std::array{now, change, unbroken(one.evidence)}) {
    if (!part.empty()) parts.push_back(std::move(part));
  }
  return parts.empty() ? markdown_text(one.why, 200) : text::join(parts);
}

std::string limit_of(const Number& one) {
  std::string limit = markdown_text(one.limit);
  if (const std::size_t at = limit.find(" %"); at != limit.npos) limit.replace(at, 1, k_no_break);
  return limit;
}

std::string label_of(const Number& one) {
  const bool plain = !one.outcome || *one.outcome == Outcome::fail ||
                     *one.outcome == Outcome::pass || one.limit.starts_with("improved");
  const std::string label = markdown_text(one.label, 100);
  return plain ? label : fmt::format("{} ({})", label, verdict::to_string(*one.outcome));
}

std::string table_line(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

// Headings that begin with '#' are of numbers.
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

  // Returns at most `room` bytes, "" where nothing has room; cells without room are counted.
  std::string fit(const Part& part, std::size_t room, bool top = false) {
    if ((part.readers & k_comment) == 0) return "";
    if (part.kind == Part::Kind::section || part.kind == Part::Kind::fold) {
      return container(part, room);
    }
    std::string out = part.kind == Part::Kind::table     ? table(part, room)
                      : part.kind == Part::Kind::numbers ? numbers(part, room)
                                                         : block(part, top);
    return out.size() > room ? "" : out;
  }

  [[nodiscard]] std::size_t left_out() const { return left_out_; }

 private:
  // A comment has rows of numbers of one of them.
  static bool has_rows(const Parts& parts) {
    return std::ranges::any_of(parts, [](const Part& part) {
      return std::ranges::any_of(part.numbers,
                                 [](const Number& one) { return (one.readers & k_comment) != 0; });
    });
  }

  static std::string title(const Part& part) {
    if (!part.outcome) return fmt::format("**{}**\n\n", marked_up(part.head));
    const OutcomeLook& look = look_of(*part.outcome);
    const bool says_all = *part.outcome == Outcome::fail || *part.outcome == Outcome::pass;
    return fmt::format("{} {}{}\n\n", look.sign, says_all ? "" : fmt::format("{}: ", look.tag),
                       marked_up(part.head));
  }

  std::string container(const Part& part, std::size_t room) {
    constexpr std::size_t k_more = 60;
    const bool shut = part.kind == Part::Kind::fold;
    std::string out = (part.titled & k_comment) == 0 ? "" : title(part);
    if (shut) {
      out = fmt::format("<details><summary>{}{}</summary>\n\n",
                        part.outcome ? fmt::format("{} ", look_of(*part.outcome).sign) : "",
                        marked_up(part.head));
      ++depth_;
    }
    const std::size_t end = k_more + (shut ? k_end_fold.size() : 0);
    // A cell behind a fold has its numbers alone, if it has any.
    const bool numbers_alone = depth_ > 0 && part.cells > 0 && has_rows(part.parts);
    std::size_t left = 0;
    bool any = std::ranges::none_of(part.parts,
                                    [](const Part& one) { return (one.readers & k_comment) != 0; });
    bool torn = false;
    for (const Part& one : part.parts) {
      if ((one.readers & k_comment) == 0) continue;
      short_ = numbers_alone;
      if (short_ && one.kind != Part::Kind::numbers) continue;
      const std::size_t used = std::min(room, out.size() + end);
      // Parts that are counted are whole, and none stands behind one that had no room.
      const bool whole = !part.noun.empty();
      std::string piece = left > 0 ? "" : fit(one, whole ? limit_ : room - used);
      if (piece.size() > room - used) piece.clear();
      any = any || !piece.empty();
      torn = torn || (piece.empty() && has_rows({one}));
      if (piece.empty() && whole) ++left;
      if (piece.empty() && !whole) left_out_ += one.cells;
      out += piece;
    }
    depth_ -= shut ? 1 : 0;
    if (left > 0) {
      out += fmt::format("_and {}_\n\n", plural(left, "more " + part.noun));
    }
    // Numbers without room leave no title behind.
    if (!any || torn || out.size() + (shut ? k_end_fold.size() : 0) > room) return "";
    return shut ? out + std::string(k_end_fold.substr(out.ends_with("\n\n") ? 1 : 0)) : out;
  }

  std::string block(const Part& part, bool top) {
    switch (part.kind) {
      case Part::Kind::paragraph: {
        const std::string words = marked_up(part.words, 1500);
        return words.empty() ? "" : lead_of(part) + words + "\n\n";
      }
      case Part::Kind::list:
        return list(part, top);
      case Part::Kind::changes: {
        // A change is a number of weir's own, and its name is code.
        auto items = collect<std::string>(part.items, [](const Words& one) {
          return fmt::format("{} {}", one.front().text, markdown_code(one.back().text));
        });
        return lead_of(part) + text::join(shortened(std::move(items), part.most)) + "\n\n";
      }
      case Part::Kind::preformatted: {
        const auto lines = last_lines(part.text, 15, 4000);
        return lines.empty() ? ""
                             : fmt::format("<details><summary>{}</summary>\n\n{}{}",
                                           marked_up(part.head), markdown_fence(lines), k_end_fold);
      }
      case Part::Kind::ratios:
        return ratios(part);
      default:
        return "";
    }
  }

  std::string list(const Part& part, bool top) const {
    std::string out;
    std::size_t shown = 0;
    const std::size_t most = part.most == 0 ? part.items.size() : part.most;
    for (const Words& item : part.items) {
      const std::string line = fmt::format("- {}\n", marked_up(item));
      if (shown == most || out.size() + line.size() > std::min<std::size_t>(limit_ / 4, 4000))
        break;
      out += line;
      ++shown;
    }
    if (part.items.empty()) return "";
    if (shown < part.items.size()) out += fmt::format("- and {} more\n", part.items.size() - shown);
    return (top && !part.head.empty() ? fmt::format("**{}**\n\n", marked_up(part.head)) : "") +
           out + "\n";
  }

  static std::string table(const Part& part, std::size_t room) {
    std::string out = table_head(part.columns);
    std::size_t shown = 0;
    for (const std::vector<Words>& row : part.rows) {
      const std::string line =
          table_line(collect<std::string>(row, [](const Words& one) { return marked_up(one); }));
      if (out.size() + line.size() + 30 > room) break;
      out += line;
      ++shown;
    }
    if (shown == 0) return "";
    if (shown < part.rows.size()) out += fmt::format("\nand {} more\n", part.rows.size() - shown);
    return out + "\n";
  }

  // The ratios of a metric's pairs, with what their marks mean.
  static std::string ratios(const Part& part) {
    const auto spread = collect<std::string>(part.items, plain_words);
    return fmt::format("**{}**: now / base: {}<br><sub>{}</sub>\n\n{}", marked_up(part.words),
                       markdown_code(ratio_strip(*part.judged, k_strip)),
                       markdown_text(strip_legend(*part.judged)),
                       spread.empty() ? "" : markdown_fence(spread) + "\n");
  }

  // Limits and cells are columns where any row has them; a limit that all rows have stands above.
  std::string numbers(const Part& part, std::size_t room) {
    std::vector<const Number*> rows;
    for (const Number& one : part.numbers) {
      if ((one.readers & k_comment) != 0) rows.push_back(&one);
    }
    if (rows.empty()) return "";
    const std::size_t most = part.most == 0 ? rows.size() : std::min(rows.size(), part.most);
    const auto any = [&](std::string Number::*text) {
      return std::ranges::any_of(rows, [&](const Number* one) { return !(one->*text).empty(); });
    };
    const bool one_limit = rows.size() > 1 && std::ranges::all_of(rows, [&](const Number* one) {
                             return one->limit == rows.front()->limit;
                           });
    const bool limits = any(&Number::limit) && !one_limit, cells = any(&Number::where);
    std::string out;
    if (one_limit && any(&Number::limit)) {
      out = fmt::format("Limit: {}\n\n", limit_of(*rows.front()));
    }
    std::vector<std::string> columns{"what", "base \u2192 now"};
    if (limits) columns.emplace_back("limit");
    if (cells) columns.emplace_back("cells");
    out += table_head(columns);
    constexpr std::size_t k_more = 30;
    std::string below;
    std::size_t shown = 0, left = 0;
    const auto add_below = [&](const std::string& text) {
      const bool fits = out.size() + below.size() + text.size() + 2 * k_more <= room;
      below += fits ? text : "";
      left += fits ? 0 : 1;
    };
    for (const Number* one : std::span(rows).first(most)) {
      std::vector<std::string> line{label_of(*one), base_and_now(*one)};
      if (limits) line.push_back(limit_of(*one));
      if (cells) line.push_back(markdown_text(one->where, 300));
      if (out.size() + table_line(line).size() + k_more > room) break;
      out += table_line(line);
      ++shown;
    }
    if (shown == 0) return "";
    if (shown < rows.size()) out += fmt::format("\nand {} more\n", rows.size() - shown);
    out += "\n";
    for (const Number* one : std::span(rows).first(short_ ? 0 : shown)) {
      if (!one->why.empty() && says_numbers(*one)) {
        add_below(
            fmt::format("**{}**: {}\n\n", markdown_text(one->label), markdown_text(one->why)));
      }
      for (const Part& part_below : one->below) {
        if ((part_below.readers & k_comment) != 0) add_below(block(part_below, false));
      }
    }
    if (left > 0) below += fmt::format("_and {} more_\n\n", left);
    return out + below;
  }

  std::size_t limit_;
  std::size_t depth_ = 0;     // of folds
  bool short_ = false;        // numbers alone, without what stands below them
  std::size_t left_out_ = 0;  // cells
};

// Devices, each name with its class.
std::vector<std::string> devices_of(const GateVerdict& gate) {
  constexpr std::size_t k_most = 3;
  std::vector<std::string> devices;
  for (const CellVerdict& cell : gate.cells) {
    std::string device = markdown_text(cell.device_name, 100);
    if (!cell.device_class.empty() && cell.device_class != cell.device_name) {
      device += (device.empty() ? "" : " ") + markdown_code(cell.device_class, 100);
    }
    if (!device.empty() && !holds(devices, device)) devices.push_back(std::move(device));
  }
  return shortened(std::move(devices), k_most);
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
  line += ": " + markdown_text(document.headline, 400);
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
  for (std::string& device : devices_of(gate)) parts.push_back(std::move(device));
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

std::size_t limit_of(const Document& document, const MarkdownStyle& style) {
  // GitHub's limits of comments and checks are no reason to fill them with cells.
  const bool brief = document.cause_first && style.limit < k_summary_limit;
  return std::max<std::size_t>(brief ? std::min(style.limit, k_brief_limit) : style.limit, 2000);
}

std::string left_out(const Document& document, const MarkdownStyle& style, std::size_t cells) {
  return fmt::format("_{} left out{}. {} has all._\n\n", plural(cells, "more cell"),
                     document.cause_first ? "" : ": a comment cannot be longer",
                     run_link(style, "The report of the run"));
}

}  // namespace

std::string markdown(const Document& document, const MarkdownStyle& style) {
  constexpr std::size_t k_open_blocks = 30;  // more of them fold: nobody reads on
  const std::size_t limit = limit_of(document, style);
  const Parts parts = compose(document);
  Writer writer(limit);
  const std::string foot = foot_of(document, style, std::min<std::size_t>(limit / 3, 1500));
  const std::string next = next_steps(document, style, limit / 4);
  std::string out = heading_of(document, style, limit / 5);
  std::size_t reserved =
      foot.size() + next.size() + left_out(document, style, document.cells.size()).size();
  const auto room = [&] { return limit - std::min(limit, out.size() + reserved); };
  Part later{.kind = Part::Kind::fold};
  // A part that is kept has room before those that are many.
  std::map<const Part*, std::string> kept;
  for (const Part& part : parts) {
    if (!part.kept) continue;
    std::string text = writer.fit(part, std::min(limit / 4, room()), true);
    if (text.empty()) {
      const std::size_t changes = part.parts.front().numbers.size();
      text = fmt::format("**{} not explained**\n\n", plural(changes, "change"));
    }
    reserved += text.size();
    kept.emplace(&part, std::move(text));
  }
  std::size_t shown = 0;
  for (const Part& part : parts) {
    if (part.kind == Part::Kind::fold) continue;
    if (const auto text = kept.find(&part); text != kept.end()) {
      reserved -= text->second.size();
      out += text->second;
      continue;
    }
    // Of a cell without numbers its reason is all there is to say.
    const bool numbers = part.outcome != Outcome::error && part.outcome != Outcome::new_;
    const bool full =
        part.cells > 0 && numbers && (shown == k_open_blocks || out.size() > limit / 2);
    const std::string text = full ? "" : writer.fit(part, room(), true);
    out += text;
    if (part.cells == 0) continue;
    if (text.empty()) {
      later.parts.push_back(part);
      later.cells += part.cells;
    } else {
      ++shown;
    }
  }
  out += next;
  reserved -= next.size();
  later.head = {{plural(std::exchange(later.cells, 0), "more cell") + " that changed"}};
  std::vector<const Part*> folds;
  if (!later.parts.empty()) folds.push_back(&later);
  for (const Part& part : parts) {
    if (part.kind == Part::Kind::fold) folds.push_back(&part);
  }
  for (const Part* part : folds) out += writer.fit(*part, room());
  if (writer.left_out() > 0) out += left_out(document, style, writer.left_out());
  return out + foot;
}

}  // namespace weir::report
