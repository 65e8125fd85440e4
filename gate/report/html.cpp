// Writes a gate's verdict as one HTML page.
#include "gate/report/html.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/compose.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/html_style.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {
namespace {

std::string outcome_word(Outcome outcome) {
  const std::string_view name = verdict::to_string(outcome);
  return fmt::format("<span class=\"word {}\">{}</span> ", name, name);
}

std::string spans_html(const Words& words) {
  std::string out;
  for (const Span& span : words) {
    out += fmt::format(fmt::runtime(span.code ? "<code>{}</code>" : "{}"), xml_text(span.text));
  }
  return out;
}

std::string title(const Part& part) {
  return (part.outcome ? outcome_word(*part.outcome) : "") + spans_html(part.head);
}

std::string muted_html(std::string_view text) {
  return fmt::format("<p class=\"soft\">{}</p>\n", xml_text(text));
}

std::string fold(std::string_view summary, std::string_view body) {
  return fmt::format("<details>\n<summary>{}</summary>\n<div>\n{}</div>\n</details>\n", summary,
                     body);
}

// Returns a table of rows (<tr>…) under their titles; a title that begins with '#' is of numbers.
// The table can have the focus, because it scrolls sideways on a narrow screen.
std::string html_table(std::string_view label, const std::vector<std::string>& columns,
                       std::string_view rows) {
  std::string head;
  for (const std::string& title : columns) {
    head += title.starts_with('#')
                ? fmt::format("<th scope=\"col\" class=\"number\">{}</th>", title.substr(1))
                : fmt::format("<th scope=\"col\">{}</th>", title);
  }
  return fmt::format(
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n<table>\n"
      "<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table>\n</div>\n",
      xml_text(label), head, rows);
}

// Writes the parts of a report as elements; nested sections have smaller headings.
class Elements {
 public:
  std::string elements(const Parts& parts) {
    std::string out;
    for (const Part& part : parts) out += element(part);
    return out;
  }

 private:
  std::string element(const Part& part) {
    if ((part.readers & k_page) == 0) return "";
    switch (part.kind) {
      case Part::Kind::section:
        return section(part);
      case Part::Kind::fold:
        return (part.open & k_page) != 0 ? elements(part.parts)
                                         : fold(title(part), elements(part.parts));
      case Part::Kind::paragraph:
        return paragraph(part);
      case Part::Kind::list:
      case Part::Kind::changes:
        return list(part);
      case Part::Kind::numbers:
        return numbers(part);
      case Part::Kind::table:
        return table(part);
      case Part::Kind::preformatted:
        return (part.head.empty() ? "" : muted_html(plain_text(part.head))) +
               fmt::format("<pre tabindex=\"0\">{}</pre>\n",
                           xml_text(text::join(last_lines(part.text, 2000, 200'000), "\n")));
      case Part::Kind::ratios:
      case Part::Kind::figure:
        return figure(part);
    }
    return "";
  }

  std::string section(const Part& part) {
    if ((part.titled & k_page) == 0) return elements(part.parts);
    ++depth_;
    const std::size_t level = depth_ + 1;
    const std::string body = elements(part.parts);
    --depth_;
    return fmt::format("<section class=\"cell\">\n<h{0}>{1}</h{0}>\n{2}</section>\n", level,
                       title(part), body);
  }

  // Returns a <p> for each line; the first begins with the head and the cells.
  static std::string paragraph(const Part& part) {
    std::string lead =
        part.head.empty() ? "" : fmt::format("<strong>{}:</strong> ", spans_html(part.head));
    lead += xml_text(part.in);
    std::string out;
    const char* css_class = part.soft ? " class=\"soft\"" : "";
    for (const std::string& line : text::lines(plain_text(part.words))) {
      out += fmt::format("<p{}>{}{}</p>\n", css_class, lead, xml_text(line));
      lead.clear();
    }
    return out;
  }

  // Returns a list of items, or of changes with their names as code; at most 200.
  std::string list(const Part& part) const {
    constexpr std::size_t k_max_items = 200;
    if (part.items.empty()) return "";
    const bool changes = part.kind == Part::Kind::changes;
    std::string out;
    if (!part.head.empty()) {
      out = changes ? muted_html(part.in + plain_text(part.head))
                    : fmt::format("<h{0}>{1}</h{0}>\n", depth_ + 2, spans_html(part.head));
    }
    out += changes ? "<ul class=\"changes\">\n" : "<ul>\n";
    auto items = collect<std::string>(part.items, [&](const Words& item) {
      return changes ? spans_html({item.front()}) + " " + spans_html({item.back()})
                     : spans_html(item);
    });
    for (const std::string& item : shortened(std::move(items), k_max_items)) {
      out += fmt::format("<li>{}</li>\n", item);
    }
    return out + "</ul>\n";
  }

  // Returns a row with the cells whose column is set in `columns`.
  static std::string row(const Number& number, const std::vector<bool>& columns) {
    const std::string between = number.change.empty() || number.evidence.empty() ? "" : ", ";
    const std::string_view name = number.outcome ? verdict::to_string(*number.outcome) : "";
    const std::string cells[] = {
        fmt::format("<td class=\"{0}\">{0}</td>", name),
        fmt::format("<td class=\"number\">{}</td>", xml_text(number.base)),
        fmt::format("<td class=\"number\">{}</td>", xml_text(number.candidate)),
        fmt::format("<td class=\"change\">{}</td>",
                    xml_text(number.change + between + number.evidence)),
        fmt::format("<td>{}</td>", xml_text(number.where)),
        fmt::format("<td class=\"limit\">{}</td>", xml_text(number.limit)),
        fmt::format("<td class=\"why\">{}</td>", xml_text(number.why))};
    std::string out =
        fmt::format("<tr class=\"{}\"><th scope=\"row\">{}</th>", name, xml_text(number.label));
    for (std::size_t i = 0; i < columns.size(); ++i) out += columns[i] ? cells[i] : "";
    return out + "</tr>\n";
  }

  // Returns a table of numbers with the columns in which any row has text.
  static std::string number_table(const std::string& label,
                                  const std::vector<const Number*>& rows) {
    if (rows.empty()) return "";
    constexpr std::string_view k_titles[] = {"verdict", "#base", "#now", "change",
                                             "cells",   "limit", "why"};
    std::vector<bool> columns(std::size(k_titles));
    std::string body;
    for (const Number* number : rows) {
      const bool has_text[] = {
          number->outcome.has_value(), !number->base.empty(),
          !number->candidate.empty(),  !number->change.empty() || !number->evidence.empty(),
          !number->where.empty(),      !number->limit.empty(),
          !number->why.empty()};
      for (std::size_t i = 0; i < columns.size(); ++i) {
        if (has_text[i]) columns[i] = true;
      }
    }
    for (const Number* number : rows) body += row(*number, columns);
    std::vector<std::string> titles{"metric"};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i]) titles.emplace_back(k_titles[i]);
    }
    return "<div class=\"metrics\">\n" + html_table(label, titles, body) + "</div>\n";
  }

  // Returns a table of rows that need a reader, and a fold with the fine ones. If all rows are of
  // one kind, returns one table of them.
  std::string numbers(const Part& part) {
    std::vector<const Number*> notable, fine;
    std::string below;
    for (const Number& number : part.numbers) {
      if ((number.readers & k_page) == 0) continue;
      const bool is_notable =
          !number.outcome || *number.outcome < Outcome::pass || !number.why.empty();
      if (is_notable) {
        notable.push_back(&number);
      } else {
        fine.push_back(&number);
      }
      below += elements(number.below);
    }
    const std::string label = plain_text(part.head);
    if (notable.empty() || fine.empty()) {
      return number_table(label, notable.empty() ? fine : notable) + below;
    }
    const auto passed = std::ranges::count_if(
        fine, [](const Number* number) { return number->outcome == Outcome::pass; });
    const std::size_t others = fine.size() - static_cast<std::size_t>(passed);
    return number_table(label, notable) + below +
           fold(fmt::format("{} within limits{}", passed,
                            others > 0 ? fmt::format(", {} without a limit", others) : ""),
                number_table("other " + label, fine));
  }

  static std::string table(const Part& part) {
    std::string rows;
    for (const std::vector<Words>& row : part.rows) {
      std::string cells;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string cell = spans_html(row[i]);
        if (i == 0) {
          cells += fmt::format("<th scope=\"row\">{}</th>", cell);
        } else if (part.columns[i].starts_with('#')) {
          cells += fmt::format("<td class=\"number\">{}</td>", cell);
        } else {
          cells += fmt::format("<td>{}</td>", cell);
        }
      }
      rows += fmt::format("<tr>{}</tr>\n", cells);
    }
    return html_table(plain_text(part.head), part.columns, rows);
  }

  // Returns the data of a figure, which the page's script replaces by a picture, with its caption.
  static std::string figure(const Part& part) {
    const std::string data =
        fmt::format("<script type=\"application/json\" class=\"figure\">{}</script>\n",
                    script_json(dump_json(part.data)));
    if (!part.data.contains("caption")) return data;
    std::string out = fmt::format("<figure>\n<figcaption>{}</figcaption>\n{}{}",
                                  xml_text(part.data["caption"].get<std::string>()), data,
                                  muted_html(part.data["words"].get<std::string>()));
    for (const Words& line : part.items) out += muted_html(plain_text(line));
    return out + "</figure>\n";
  }

  std::size_t depth_ = 0;  // number of sections around
};

}  // namespace

std::string html_page(std::string_view title, std::string_view more_style, std::string_view body,
                      std::string_view figures) {
  constexpr std::string_view k_no_script =
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n";
  return fmt::format(
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n{}"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<style>{}{}</style>\n</head>\n<body>\n<main>\n{}</main>\n</body>\n</html>\n",
      xml_text(title), figures.empty() ? k_no_script : figures, k_html_style, more_style, body);
}

// Writes the verdict as a page of HTML. `figures` is the trusted script that draws; without it
// there are no pictures.
std::string html(const Document& document, std::string_view figures) {
  const GateVerdict& gate = document.gate;
  std::string out;
  out += fmt::format("<h1>{}{}</h1>\n", outcome_word(gate.verdict), xml_text(document.headline));
  if (!document.not_judged.empty()) {
    out += fmt::format("<p class=\"missing\">Not judged: {}</p>\n", xml_text(document.not_judged));
  }
  if (!document.rule.empty()) out += muted_html(document.rule);
  if (document.has_paired_times) out += muted_html(printable_line(gate.decision_rule, 4000));
  out += Elements().elements(compose(document));
  return html_page("weir: " + document.first_line(), "", out, figures);
}

}  // namespace weir::report
