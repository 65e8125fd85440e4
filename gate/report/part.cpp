// Makes the parts of a report, and the text of numbers and spans.
#include "gate/report/part.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {

bool Number::differs() const {
  return !base.empty() && !candidate.empty() && (base != candidate || !change.empty());
}

std::string Number::from_to() const {
  const std::string current = candidate.empty() ? "not measured" : candidate;
  return base.empty() ? current : base + std::string(k_arrow) + current;
}

std::string Number::parts() const {
  std::vector<std::string> all{change, evidence, limit, where};
  std::erase(all, "");
  return text::join(all);
}

bool has_numbers(const Number& number) {
  return !number.base.empty() || !number.candidate.empty() || !number.change.empty() ||
         !number.evidence.empty();
}

std::string plain_text(const Words& words) {
  std::string out;
  for (const Span& span : words) out += span.text;
  return out;
}

Words plain(std::string text) { return {{std::move(text)}}; }

Part paragraph(std::string head, std::string words, bool soft) {
  return {.head = head.empty() ? Words{} : plain(std::move(head)),
          .words = plain(std::move(words)),
          .soft = soft};
}

Part section(Words head, Parts parts) {
  return {.kind = Part::Kind::section, .head = std::move(head), .parts = std::move(parts)};
}

Part fold(Words head, Parts parts, Readers open) {
  return {
      .kind = Part::Kind::fold, .head = std::move(head), .open = open, .parts = std::move(parts)};
}

Part list(std::string head, const std::vector<std::string>& lines) {
  return {.kind = Part::Kind::list,
          .head = head.empty() ? Words{} : plain(std::move(head)),
          .items = collect<Words>(lines, plain)};
}

Part shown_to(Readers readers, Part part) {
  part.readers = readers;
  return part;
}

Part number_table(std::string label, std::vector<Number> numbers, std::size_t max_shown) {
  return {.kind = Part::Kind::numbers,
          .head = plain(std::move(label)),
          .numbers = std::move(numbers),
          .max_shown = max_shown};
}

}  // namespace weir::report
