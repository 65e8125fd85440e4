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

std::string word(Outcome outcome) {
  const std::string_view name = verdict::to_string(outcome);
  return fmt::format("<span class=\"word {}\">{}</span> ", name, name);
}

std::string html_words(const Words& words) {
  std::string out;
  for (const Span& span : words) {
    out += fmt::format(fmt::runtime(span.code ? "<code>{}</code>" : "{}"), xml_text(span.text));
  }
  return out;
}

std::string title_of(const Part& part) {
  return (part.outcome ? word(*part.outcome) : "") + html_words(part.head);
}

std::string soft(std::string_view text) {
  return fmt::format("<p class=\"soft\">{}</p>\n", xml_text(text));
}

std::string fold(std::string_view summary, std::string_view body) {
  return fmt::format("<details>\n<summary>{}</summary>\n<div>\n{}</div>\n</details>\n", summary,
                     body);
}

// Rows (<tr>…) under their headings, of which those that begin with '#' are of numbers. Focusable,
// since it scrolls sideways on a narrow screen.
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

// The parts of a report as elements; headings of sections within sections are smaller.
class Elements {
 public:
  std::string all(const Parts& parts) {
    std::string out;
    for (const Part& part : parts) out += one(part);
    return out;
  }

 private:
  std::string one(const Part& part) {
    if ((part.readers & k_page) == 0) return "";
    switch (part.kind) {
      case Part::Kind::section:
        return section(part);
      case Part::Kind::fold:
        return (part.open & k_page) != 0 ? all(part.parts) : fold(title_of(part), all(part.parts));
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
        return (part.head.empty() ? "" : soft(plain_words(part.head))) +
               fmt::format("<pre tabindex=\"0\">{}</pre>\n",
                           xml_text(text::join(last_lines(part.text, 2000, 200'000), "\n")));
      case Part::Kind::ratios:
      case Part::Kind::figure:
        return figure(part);
    }
    return "";
  }

  std::string section(const Part& part) {
    if ((part.titled & k_page) == 0) return all(part.parts);
    ++depth_;
    const std::size_t level = depth_ + 1;
    const std::string body = all(part.parts);
    --depth_;
    return fmt::format("<section class=\"cell\">\n<h{0}>{1}</h{0}>\n{2}</section>\n", level,
                       title_of(part), body);
  }

  static std::string paragraph(const Part& part) {
    std::string lead =
        part.head.empty() ? "" : fmt::format("<strong>{}:</strong> ", html_words(part.head));
    lead += xml_text(part.in);
    std::string out;
    for (const std::string& line : text::lines(plain_words(part.words))) {
      out += fmt::format("<p{}>{}{}</p>\n", part.soft ? " class=\"soft\"" : "",
                         std::exchange(lead, ""), xml_text(line));
    }
    return out;
  }

  std::string list(const Part& part) const {
    constexpr std::size_t k_most = 200;
    if (part.items.empty()) return "";
    const bool changes = part.kind == Part::Kind::changes;
    std::string out;
    if (!part.head.empty()) {
      out = changes ? soft(part.in + plain_words(part.head))
                    : fmt::format("<h{0}>{1}</h{0}>\n", depth_ + 2, html_words(part.head));
    }
    out += changes ? "<ul class=\"changes\">\n" : "<ul>\n";
    auto items = collect<std::string>(part.items, [&](const Words& item) {
      return changes ? html_words({item.front()}) + " " + html_words({item.back()})
                     : html_words(item);
    });
    for (const std::string& item : shortened(std::move(items), k_most)) {
      out += fmt::format("<li>{}</li>\n", item);
    }
    return out + "</ul>\n";
  }

  static std::string row(const Number& one, const std::vector<bool>& columns) {
    const std::string between = one.change.empty() || one.evidence.empty() ? "" : ", ";
    const std::string_view name = one.outcome ? verdict::to_string(*one.outcome) : "";
    const std::string cells[] = {
        fmt::format("<td class=\"{0}\">{0}</td>", name),
        fmt::format("<td class=\"number\">{}</td>", xml_text(one.base)),
        fmt::format("<td class=\"number\">{}</td>", xml_text(one.now)),
        fmt::format("<td class=\"change\">{}</td>", xml_text(one.change + between + one.evidence)),
        fmt::format("<td>{}</td>", xml_text(one.where)),
        fmt::format("<td class=\"limit\">{}</td>", xml_text(one.limit)),
        fmt::format("<td class=\"why\">{}</td>", xml_text(one.why))};
    std::string out =
        fmt::format("<tr class=\"{}\"><th scope=\"row\">{}</th>", name, xml_text(one.label));
    for (std::size_t i = 0; i < columns.size(); ++i) out += columns[i] ? cells[i] : "";
    return out + "</tr>\n";
  }

  // Columns in which any row says something.
  static std::string number_table(const std::string& label,
                                  const std::vector<const Number*>& rows) {
    if (rows.empty()) return "";
    constexpr std::string_view k_titles[] = {"verdict", "#base", "#now", "change",
                                             "cells",   "limit", "why"};
    std::vector<bool> columns(std::size(k_titles));
    std::string body;
    for (const Number* one : rows) {
      const bool said[] = {one->outcome.has_value(), !one->base.empty(),
                           !one->now.empty(),        !one->change.empty() || !one->evidence.empty(),
                           !one->where.empty(),      !one->limit.empty(),
                           !one->why.empty()};
      for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = columns[i] || said[i];
    }
    for (const Number* one : rows) body += row(*one, columns);
    std::vector<std::string> titles{"metric"};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i]) titles.emplace_back(k_titles[i]);
    }
    return "<div class=\"metrics\">\n" + html_table(label, titles, body) + "</div>\n";
  }

  // The worst first. Within limits folds where anything else stands there.
  std::string numbers(const Part& part) {
    std::vector<const Number*> changed, fine;
    std::string below;
    for (const Number& one : part.numbers) {
      if ((one.readers & k_page) == 0) continue;
      const bool seen = !one.outcome || *one.outcome < Outcome::pass || !one.why.empty();
      (seen ? changed : fine).push_back(&one);
      below += all(one.below);
    }
    const std::string label = plain_words(part.head);
    if (changed.empty() || fine.empty()) {
      return number_table(label, changed.empty() ? fine : changed) + below;
    }
    const auto passed = std::ranges::count_if(
        fine, [](const Number* one) { return one->outcome == Outcome::pass; });
    const std::size_t others = fine.size() - static_cast<std::size_t>(passed);
    return number_table(label, changed) + below +
           fold(fmt::format("{} within limits{}", passed,
                            others > 0 ? fmt::format(", {} without a limit", others) : ""),
                number_table("other " + label, fine));
  }

  static std::string table(const Part& part) {
    std::string rows;
    for (const std::vector<Words>& row : part.rows) {
      std::string cells;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string_view form = i == 0 ? "<th scope=\"row\">{}</th>"
                                      : part.columns[i].starts_with('#')
                                          ? "<td class=\"number\">{}</td>"
                                          : "<td>{}</td>";
        cells += fmt::format(fmt::runtime(form), html_words(row[i]));
      }
      rows += fmt::format("<tr>{}</tr>\n", cells);
    }
    return html_table(plain_words(part.head), part.columns, rows);
  }

  // The data of a figure, in whose place the page's script draws it.
  static std::string figure(const Part& part) {
    const std::string drawn =
        fmt::format("<script type=\"application/json\" class=\"figure\">{}</script>\n",
                    script_json(dump_json(part.data)));
    if (!part.data.contains("caption")) return drawn;
    std::string out = fmt::format("<figure>\n<figcaption>{}</figcaption>\n{}{}",
                                  xml_text(part.data["caption"].get<std::string>()), drawn,
                                  soft(part.data["words"].get<std::string>()));
    for (const Words& line : part.items) out += soft(plain_words(line));
    return out + "</figure>\n";
  }

  std::size_t depth_ = 0;  // of sections
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

std::string html(const Document& document, std::string_view figures) {
  const GateVerdict& gate = document.gate;
  std::string out;
  out += fmt::format("<h1>{}{}</h1>\n", word(gate.verdict), xml_text(document.headline));
  if (!document.not_judged.empty()) {
    out += fmt::format("<p class=\"missing\">Not judged: {}</p>\n", xml_text(document.not_judged));
  }
  if (!document.rule.empty()) out += soft(document.rule);
  if (document.beside_base) out += soft(one_line(gate.decision_rule, 4000));
  out += Elements().all(compose(document));
  return html_page("weir: " + document.first_line(), "", out, figures);
}

}  // namespace weir::report
