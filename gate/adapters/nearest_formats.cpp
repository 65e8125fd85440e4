// Marks of formats in a text, and which formats are near one that none recognises.
#include "gate/adapters/readers.hpp"

namespace weir::adapters {
namespace {

constexpr std::string_view k_and = " & ";

std::vector<std::string_view> split_mark(std::string_view mark) {
  std::vector<std::string_view> parts;
  for (std::size_t end = 0; (end = mark.find(k_and)) != mark.npos;) {
    parts.push_back(mark.substr(0, end));
    mark.remove_prefix(end + k_and.size());
  }
  parts.push_back(mark);
  return parts;
}

// Tools that weir has no reader for, by texts of their results.
constexpr std::pair<std::string_view, std::string_view> k_unread_tools[] = {
    {"\"http_req_duration\"", "k6"},
    {"\"results_end_to_end_latency_s", "LLMPerf"},
};

// Marks of reports that weir writes for people and other tools: Markdown, HTML and JUnit.
constexpr std::string_view k_reports[] = {"^### & weir & </sub>", "<title>weir",
                                          "<testsuites name=\"weir"};

// A format with some of its marks, and those that the text lacks.
struct NearFormat {
  std::string_view name;
  std::size_t present = 0;
  std::vector<std::string> missing;
};

// Returns the mark of the format that the text has most of; nothing if it has no part of any.
std::optional<NearFormat> match_some(const Format& format, const Printed& printed) {
  std::optional<NearFormat> best;
  for (const Mark& row : format.marks) {
    for (const std::string_view mark : row.any) {
      NearFormat match{format.name, 0, {}};
      for (const std::string_view part : split_mark(mark)) {
        const bool begins = part.starts_with('^');
        const std::string_view plain = begins ? part.substr(1) : part;
        if (has_mark(printed, part)) {
          ++match.present;
        } else if (begins && printed.holds(plain)) {
          ++match.present;
          match.missing.push_back(fmt::format("no line begins with {}", text::trim(plain)));
        } else {
          match.missing.push_back(fmt::format("{} is missing", text::trim(plain)));
        }
      }
      if (match.present > 0 && (!best || match.missing.size() < best->missing.size()))
        best = std::move(match);
    }
  }
  return best;
}

// Returns the names in a JSON text that tell of latencies, at most three.
std::vector<std::string> latency_names(const Printed& printed) {
  std::vector<std::string> names;
  const std::string_view text = text::trim(printed.document().out);
  if (!text.starts_with('{') && !text.starts_with('[')) return names;
  constexpr std::size_t k_max_searched_bytes = std::size_t{1} << 20;
  LineScanner scan(text.substr(0, k_max_searched_bytes));
  while (scan.read_until("\"") && names.size() < 3) {
    const auto name = scan.read_until("\"");
    if (!name) break;
    const std::string lower = text::lower(name->substr(0, 100));
    const bool is_latency = std::ranges::any_of(
        std::array{"ttft", "latency", "tpot", "time_to_first_token", "throughput", "tokens_per_s"},
        [&](const char* word) { return lower.find(word) != lower.npos; });
    std::string shown = display_text(*name, 60);
    if (is_latency && scan.skip_prefix(":") && !holds(names, shown))
      names.push_back(std::move(shown));
  }
  return names;
}

}  // namespace

bool has_mark(const Printed& printed, std::string_view mark) {
  return std::ranges::all_of(split_mark(mark), [&](std::string_view part) {
    return part.starts_with('^') ? printed.begins(part.substr(1)) : printed.holds(part);
  });
}

// Says what an unknown text looks like. Tries weir's own reports, known tools without a reader,
// formats that match in part, then names of latencies.
std::string describe_nearest_formats(const Printed& printed) {
  const bool is_report = std::ranges::any_of(
      k_reports, [&](std::string_view mark) { return has_mark(printed, mark); });
  if (is_report) {
    return "it looks like a report of weir, which weir does not read back: name the run's folder, "
           "or the verdict.json in it";
  }
  for (const auto& [mark, tool] : k_unread_tools) {
    if (has_mark(printed, mark)) {
      return fmt::format("it looks like a result of {}: weir has no reader for it", tool);
    }
  }
  std::vector<NearFormat> near;
  for (const Format& format : formats()) {
    if (auto match = match_some(format, printed)) near.push_back(std::move(*match));
  }
  std::ranges::stable_sort(near, {},
                           [](const NearFormat& format) { return format.missing.size(); });
  std::string nearest;
  for (std::size_t i = 0; i < std::min<std::size_t>(near.size(), 2); ++i) {
    text::append_item(nearest, "; ",
                      fmt::format("{} ({})", near[i].name, text::join(near[i].missing, ", ")));
  }
  if (!nearest.empty()) return fmt::format("The nearest: {}.", nearest);
  const auto names = latency_names(printed);
  if (names.empty()) return "";
  return fmt::format("it looks like the result of a load tool ({}): weir has no reader for it",
                     text::join(names));
}

}  // namespace weir::adapters
