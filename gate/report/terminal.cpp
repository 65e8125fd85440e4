#include "gate/report/terminal.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/compose.hpp"
#include "gate/report/document.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/ratios.hpp"

namespace weir::report {
namespace {

constexpr std::size_t k_title_indent = 6;
constexpr std::size_t k_row_indent = 8;
constexpr std::size_t k_detail_indent = 10;

// A phrase that no line break parts, unless it is long anyway.
std::string kept_together(std::string_view phrase) {
  return text::columns(phrase) > 50 ? std::string(phrase) : unbroken(phrase);
}

// The parts of a report in lines of a terminal.
class Terminal {
 public:
  Terminal(const Document& document, const TerminalStyle& style)
      : document_(document),
        gate_(document.gate),
        style_(style),
        page_(style.color, columns_of(style.width)),
        reader_(style.verbose ? k_verbose : k_brief),
        longest_label_(std::clamp<std::size_t>(page_.width() / 3, 12, 28)) {}

  std::string write() {
    heading();
    show_all(compose(document_), false);
    summary();
    return page_.finish();
  }

 private:
  void heading() {
    std::string missing =
        text::join(collect<std::string>(gate_.not_judged, [](const std::string& part) {
          return kept_together(one_line(part, 200));
        }));
    if (gate_.unjudged) {
      missing = one_line(*gate_.unjudged, 300) + (missing.empty() ? "" : "; ") + missing;
    }
    const std::string cells = plural(gate_.cells.size(), "cell");
    const std::string config = clip_middle(one_line(gate_.config), page_.width() / 3);
    const std::string name = fmt::format("weir {}  ", one_line(gate_.weir_version, 30));
    const auto column = [](const std::string& text) { return text.empty() ? "" : text + "  "; };
    if (missing.empty()) {
      return page_.paragraph("", name + column(config) + cells + "  " + document_.rule,
                             k_title_indent);
    }
    // What was not judged stands in the very first line: a green must not hide it.
    page_.paragraph("", name + cells + "  " + missing, k_title_indent);
    const std::string rest = column(config) + document_.rule;
    if (!rest.empty()) page_.paragraph(std::string(k_title_indent, ' '), rest, k_title_indent);
  }

  // So many of them, and how many more there are.
  [[nodiscard]] std::size_t shown(const Part& part, std::size_t all) const {
    return style_.verbose || part.most == 0 ? all : std::min(all, part.most);
  }

  void more(std::size_t indent, std::size_t left, const std::string& noun) {
    if (left == 0) return;
    at(indent,
       noun.empty() ? fmt::format("and {} more", left)
                    : fmt::format("and {}", plural(left, "more " + noun)),
       k_dim);
  }

  void show_all(std::span<const Part> parts, bool within) {
    for (const Part& part : parts) show(part, within);
  }

  // `within`: a section.
  void show(const Part& part, bool within) {
    if ((part.readers & reader_) == 0) return;
    switch (part.kind) {
      case Part::Kind::section:
        return section(part, within);
      case Part::Kind::fold:
        return fold(part, within);
      case Part::Kind::paragraph:
        return paragraph(part);
      case Part::Kind::list:
        return list(part);
      case Part::Kind::changes:
        return changes(part);
      case Part::Kind::numbers:
        return numbers(part);
      case Part::Kind::preformatted:
        return last_words(part);
      case Part::Kind::ratios:
        return ratios(part);
      case Part::Kind::table:
      case Part::Kind::figure:
        return;  // a page's
    }
  }

  void title(const Part& part, bool within) {
    page_.blank();
    const std::string head = plain_words(part.head);
    if (within && !part.outcome) {
      return page_.paragraph(std::string(k_title_indent, ' '), head, k_row_indent, "", k_bold);
    }
    const std::string_view tag = part.outcome ? look_of(*part.outcome).tag : part.tag;
    page_.paragraph(pad_right(tag, k_title_indent - 1) + " ", head, k_title_indent,
                    part.outcome ? look_of(*part.outcome).color : k_dim, k_bold);
  }

  void section(const Part& part, bool within) {
    if ((part.titled & reader_) != 0) title(part, within);
    const std::optional<Outcome> outer = std::exchange(outcome_, part.outcome);
    const std::size_t most = shown(part, part.parts.size());
    for (const Part& one : std::span(part.parts).first(most)) show(one, true);
    if (most < part.parts.size()) page_.blank();
    more(k_title_indent, part.parts.size() - most, part.noun);
    outcome_ = outer;
  }

  void fold(const Part& part, bool within) {
    const bool open = (part.open & reader_) != 0;
    if (part.outcome) title(part, within);
    if (!open) return;
    const std::size_t most = shown(part, part.parts.size());
    show_all(std::span(part.parts).first(most), within);
    more(k_title_indent, part.parts.size() - most, part.noun);
  }

  // Further lines stand two columns further in.
  void at(std::size_t indent, std::string_view words, std::string_view color = "") {
    page_.paragraph(std::string(indent, ' '), words, indent + 2, "", color);
  }

  void detail(std::string_view words, std::string_view color = "") {
    page_.paragraph(std::string(k_detail_indent, ' '), words, k_detail_indent, "", color);
  }

  void paragraph(const Part& part) {
    const std::string words = part.in + plain_words(part.words);
    if (words.empty()) return;
    if (part.head.empty()) return at(k_row_indent, words, part.soft ? k_dim : "");
    const std::string head = text::lower(plain_words(part.head));
    page_.paragraph(fmt::format("{:{}}{}: ", "", k_row_indent, head), words, k_detail_indent,
                    part.soft ? k_dim : k_bold, part.soft ? k_dim : "");
  }

  void list(const Part& part) {
    if (part.items.empty()) return;
    if (!part.tag.empty()) page_.blank();
    const std::size_t most = shown(part, part.items.size());
    const std::string first =
        part.tag.empty() ? std::string(k_row_indent, ' ') : pad_right(part.tag, k_title_indent);
    const std::size_t indent = part.tag.empty() ? k_detail_indent : k_title_indent;
    const auto line = [&](const std::string& words) {
      page_.paragraph(first, words, indent, k_dim);
    };
    for (const Words& item : std::span(part.items).first(most)) line(plain_words(item));
    if (most < part.items.size()) line(fmt::format("and {} more", part.items.size() - most));
  }

  void changes(const Part& part) {
    auto all = collect<std::string>(part.items, [](const Words& one) {
      return fmt::format("{}{}{}", kept_together(one.front().text), k_no_break, one.back().text);
    });
    const std::size_t most = shown(part, all.size());
    detail(part.in + text::join(shortened(std::move(all), most), "   "));
  }

  void last_words(const Part& part) {
    at(k_row_indent, plain_words(part.head) + ":");
    for (const std::string& line : last_lines(part.text, style_.verbose ? 100 : 8)) {
      page_.paragraph(std::string(k_detail_indent, ' ') + "| ", clip(line, 400),
                      k_detail_indent + 2, k_dim, k_dim);
    }
  }

  // The ratios of pairs, what the marks mean where that was not just said, and how the sides
  // spread.
  void ratios(const Part& part) {
    const std::string strip = ratio_strip(*part.judged, page_.width() - k_detail_indent);
    detail(kept_together(strip));
    std::string legend = strip_legend(*part.judged);
    if (legend != legend_) detail(legend, k_dim);
    legend_ = std::move(legend);
    for (const Words& line : part.items) detail(plain_words(line));
  }

  struct Widths {
    std::size_t label = 0, base = 0, now = 0, change = 0;
  };
  // Long values, and reasons in place of them, make no column; nor do intervals, which may take the
  // room of the limit.
  [[nodiscard]] Widths widths_of(std::span<const Number* const> all) const {
    Widths widths;
    const auto see = [&](std::size_t& width, const std::string& text) {
      const std::size_t columns = text::columns(text);
      if (columns <= page_.width() / 4) width = std::max(width, columns);
    };
    for (const Number* one : all) {
      widths.label = std::max(widths.label, std::min(text::columns(one->label), longest_label_));
      see(widths.base, one->base.empty() ? one->now : one->base);
      if (!one->base.empty()) see(widths.now, one->now);
      if (one->evidence.empty()) see(widths.change, one->change);
    }
    return widths;
  }

  void numbers(const Part& part) {
    std::vector<const Number*> all;
    std::size_t fine = 0;
    for (const Number& one : part.numbers) {
      if ((one.readers & reader_) != 0) {
        if (says_numbers(one) || !one.why.empty() || !one.where.empty()) all.push_back(&one);
      } else if (one.outcome == Outcome::pass && !one.now.empty()) {
        ++fine;
      }
    }
    const std::size_t most = shown(part, all.size());
    const std::size_t left = all.size() - most;
    all.resize(most);
    const Widths widths = widths_of(all);
    for (const Number* one : all) {
      number(*one, widths);
      show_all(one->below, true);
    }
    more(k_detail_indent, left, "");
    if (fine > 0 && !part.noun.empty())
      at(k_row_indent, plural(fine, "more metric") + " within limits", k_dim);
  }

  void number(const Number& one, const Widths& widths) {
    const bool wrong = one.outcome && *one.outcome < Outcome::pass;
    const std::string_view color = wrong ? look_of(*one.outcome).color : "";
    const bool improved = one.limit.starts_with("improved");
    // A metric that came out as its cell, or says so in its limit, needs no word of its own.
    const bool tagged = wrong && outcome_ && one.outcome != outcome_ && !improved;
    std::string line =
        tagged ? fmt::format("  {:5} ", look_of(*one.outcome).tag) : std::string(k_row_indent, ' ');
    line += pad_right(clip(one.label, longest_label_), widths.label) + "  ";
    if (one.base.empty() && one.now.empty() && one.change.empty()) {
      std::vector<std::string> words{one.why, one.where};
      std::erase(words, "");
      return page_.paragraph(line + " ", text::join(words), k_detail_indent, "", color);
    }
    if (one.base.empty()) {
      line += pad_left(one.now, widths.base) + "   ";
    } else {
      line += pad_left(one.base, widths.base) + std::string(k_arrow) +
              pad_right(one.now, widths.now) + "   ";
    }
    std::string tail = tail_of(one, widths);
    // "improved: accept to keep" has no room everywhere, and a command below says the latter.
    if (text::columns(line) + text::columns(tail) > page_.width() && improved) {
      tail = tail.substr(0, tail.rfind(':'));
    }
    if (text::columns(line) > page_.width()) {  // no columns on so narrow a page
      tail = fmt::format("{} {}", text::trim(line), tail);
      line = std::string(k_row_indent, ' ');
    }
    page_.paragraph(line, tail, k_detail_indent, "", color);
    if (!one.why.empty()) detail(one.why);
  }

  [[nodiscard]] std::string tail_of(const Number& one, const Widths& widths) const {
    const bool fine = one.outcome == Outcome::pass && !style_.verbose;
    const std::string limit = fine ? "" : one.limit;
    if (one.evidence.empty() && one.where.empty() && text::columns(one.change) <= widths.change) {
      return limit.empty() ? one.change : pad_right(one.change, widths.change) + "   " + limit;
    }
    // Sessions and runs matter where something is to be decided; what is fine gets the short form.
    const std::string evidence =
        fine ? one.evidence.substr(0, one.evidence.find(',')) : one.evidence;
    std::vector<std::string> parts;
    for (const std::string& part : {one.change, evidence, limit, one.where}) {
      if (!part.empty()) parts.push_back(kept_together(part));
    }
    return text::join(parts);
  }

  void summary() {
    page_.blank();
    std::string line = document_.headline + ".";
    if (gate_.exit_code == verdict::ExitCode::inconclusive) {
      line += "  Inconclusive fails here (on_inconclusive: fail).";
    }
    if (gate_.seconds) line += "  " + unit::show_duration(*gate_.seconds) + ".";
    if (gate_.profiling_cost) {
      line += fmt::format("  Profiling cost {:.1f} % of throughput.", *gate_.profiling_cost * 100);
    }
    // For whole sentences: "FAIL", "ERROR", "OPEN", "SKIPPED", …
    const OutcomeLook& look = look_of(gate_.verdict);
    std::string tag(gate_.verdict == Outcome::skipped ? "skipped" : look.tag);
    for (char& c : tag) c = text::is_letter(c) ? static_cast<char>(c & ~0x20) : c;
    page_.paragraph(pad_right(tag, k_title_indent - 1) + " ", line, k_title_indent, look.color);
    const auto fact = [&](std::string_view what, const std::string& value) {
      if (value.empty()) return;
      page_.paragraph(fmt::format("{:6}{:<9}", "", what), value, 15, k_dim);
    };
    fact("base", document_.base);
    if (gate_.run) fact("run", one_line(*gate_.run, 300));
    if (style_.verbose || document_.beside_base) fact("rule", one_line(gate_.decision_rule, 2000));
    // What servers said of themselves judges nothing: here stands where it is shown.
    const bool some = std::ranges::any_of(
        gate_.cells, [](const CellVerdict& cell) { return !cell.server.empty(); });
    if (some && gate_.run && holds(style_.verbs, "profile")) {
      command({"servers", {"weir profile", text::shell_word(one_line(*gate_.run, 300))}});
    }
    const std::vector<Hint> known = hints(gate_, style_.verbs, page_.width() - 19);
    if (document_.cause_first && !style_.verbose) {
      const Hint* why = first_of(known, [](const Hint& hint) { return hint.what == "why"; });
      fact("numbers",
           fmt::format("of each cell: {}--html FILE, --json FILE",
                       why != nullptr ? text::join(why->words, " ") + " --cell CELL, " : ""));
    }
    for (const Hint& hint : known) {
      if (hint.what == "allow") {
        fact(hint.what, hint.words.front());
      } else {
        command(hint);
      }
    }
  }

  // Broken between words only, with a backslash, so that it can be pasted.
  void command(const Hint& hint) {
    constexpr std::size_t k_at = 15;
    std::string line = fmt::format("{:6}{:<9}", "", hint.what);
    for (std::size_t i = 0; i < hint.words.size(); ++i) {
      const bool last = i + 1 == hint.words.size();
      const bool fresh = text::columns(line) <= k_at + 2;
      const std::size_t tail = last ? 0 : 2;
      if (!fresh && text::columns(line) + 1 + text::columns(hint.words[i]) + tail > page_.width()) {
        page_.paragraph(line + " \\", "", 0);
        line = std::string(k_at + 2, ' ');
      } else if (i > 0) {
        line += ' ';
      }
      line += hint.words[i];
    }
    page_.paragraph(line, "", 0);
  }

  const Document& document_;
  const GateVerdict& gate_;
  const TerminalStyle& style_;
  Page page_;
  Readers reader_;
  std::size_t longest_label_;
  std::optional<Outcome> outcome_;  // of the section around
  std::string legend_;              // of the last picture
};

}  // namespace

std::string terminal(const Document& document, const TerminalStyle& style) {
  return Terminal(document, style).write();
}

}  // namespace weir::report
