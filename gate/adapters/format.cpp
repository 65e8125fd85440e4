// Functions over all formats: listing them, recognising a text, reading it (readers.hpp lists
// them).
#include "gate/adapters/format.hpp"

#include "gate/adapters/readers.hpp"
#include "gate/profile/usage.hpp"

namespace weir::adapters {
namespace {

constexpr int k_recognised = 20;  // less is a guess

std::string list_formats() {
  std::string list;
  for (const Format& format : formats()) {
    list += fmt::format("\n    {:<21}{}", format.name, format.what);
  }
  return list;
}

// Returns true for what a shell prints about a program that a signal ended: "bench: line 3: 1234
// Killed  ./engine | cat".
bool is_of_shell(std::string_view line) {
  return line.find(": line ") != line.npos &&
         std::ranges::any_of(std::array{" Killed", " Aborted", " Bus error", " Illegal instruction",
                                        " Terminated", " Floating point exception"},
                             [&](std::string_view mark) { return line.find(mark) != line.npos; });
}

// Returns true for a line of JSON: what it quotes is not what the program printed as it ended.
bool is_of_json(std::string_view line) {
  const std::string_view text = text::trim(line);
  return !text.empty() && std::string_view("{[\"").find(text.front()) != std::string_view::npos;
}

// Returns the line that shows that the program crashed; "" if there is none.
std::string find_crash(const std::vector<std::string_view>& lines) {
  for (const std::string_view line : lines) {
    if (is_of_json(line)) continue;
    for (const char* mark : {"terminate called", "ggml_uncaught_exception", "GGML_ASSERT",
                             "ggml_abort", "ggml_print_backtrace", "Segmentation fault",
                             "panicked at", "core dumped", "Traceback (most recent call last)"}) {
      if (line.find(mark) != line.npos) return display_text(line, 120);
    }
    if (is_of_shell(line)) return display_text(line, 120);
  }
  return "";
}

// Begins the message about a crash.
constexpr std::string_view k_crashed = "the program crashed: ";

// Adds the crash of a program to an error, if the error does not name it yet.
Error with_crash(Error error, const std::string& crash) {
  if (!crash.empty() && error.message.find(k_crashed) == std::string::npos)
    error.message += fmt::format("; {}{}", k_crashed, crash);
  return error;
}

// Returns how sure the text is of the format, from 0 to 100.
int confidence(const Format& format, const Printed& printed) {
  const Mark* mark = find_first(format.marks, [&](const Mark& mark_row) {
    return std::ranges::any_of(mark_row.any,
                               [&](std::string_view text) { return has_mark(printed, text); });
  });
  const int by_mark = mark == nullptr ? 0 : mark->sure;
  return std::max(by_mark, format.recognises != nullptr ? format.recognises(printed) : 0);
}

// Returns true if nothing was read but the engine, its model and the like.
bool is_bare(Observed& observed) {
  ObservedContext context = std::exchange(observed.context, {});
  observed.context.backend = context.backend;
  observed.context.facts = context.facts;
  const bool bare = observed::empty(observed);
  observed.context = std::move(context);
  return bare;
}

std::vector<std::string> unread_warnings(const Observed& observed) {
  std::vector<std::string> warnings;
  for (const auto& parts : observed.parts) {
    if (parts.unread > 0) warnings.push_back(observed::unread_warning(parts));
  }
  return warnings;
}

// Reads a text as one format. Fails if nothing was found; the error names a crash of the program.
Result<Observed> read_with(const Format& format, const Printed& printed) {
  const std::string crash = find_crash(printed.lines());
  Result<Observed> read;
  if (const auto* read_whole = std::get_if<Format::ReadWhole>(&format.read)) {
    read = (*read_whole)(printed);
  } else {
    std::get<Format::Read>(format.read)(printed, *read);
  }
  if (read && is_bare(*read)) {
    const std::vector<std::string> unread = unread_warnings(*read);
    if (unread.empty()) {
      read = nothing_found(format.name);
    } else {
      read = fail(Code::data, "{}", text::join(unread, "; "));
    }
  }
  if (!read) {
    return tl::unexpected(with_crash(add_prefix(format.name, std::move(read).error()), crash));
  }
  // A pipe hides the exit status of a program that wrote some of its results.
  if (!crash.empty()) add_warning(*read, fmt::format("{}{}", k_crashed, crash));
  for (std::string& warning : unread_warnings(*read)) add_warning(*read, std::move(warning));
  read->format = format.name;
  if (!format.engine.empty()) read->context.engine = format.engine;
  return read;
}

// Warns if another format recognises the text as surely and finds something in it.
void warn_of_equal_formats(const Format& format, const std::vector<const Format*>& candidates,
                           const Printed& printed, Observed& observed) {
  const int sure = confidence(format, printed);
  for (const Format* other : candidates) {
    if (other == &format || confidence(*other, printed) != sure) continue;
    if (!read_with(*other, printed)) continue;
    add_warning(observed, "it has the marks of {} and of {}: weir reads the first", format.name,
                other->name);
  }
}

// Fails if there is no text, if it is packed, or if it has more than `most` bytes.
Result<void> check_size(const Document& document, std::size_t most) {
  if (text::trim(document.out).empty() && text::trim(document.err).empty()) {
    return fail(Code::data, "there is no text in it");
  }
  if (document.out.starts_with("\x1F\x8B")) {
    return fail(Code::data, "it is packed with gzip, and only files are unpacked");
  }
  if (document.out.size() + document.err.size() > most) {
    return fail(Code::data, "it is larger than {} MiB: only a Chrome trace{} may be that large",
                most >> 20, most < k_max_result_bytes ? " or a load tool's result" : "");
  }
  return {};
}

std::size_t most_bytes(const Format& format) {
  return format.adapter.counts == Counts::results ? k_max_result_bytes : k_max_read_bytes;
}

}  // namespace

const std::vector<Format>& formats() {
  static const auto k_formats =
      collect<Format>(k_formats_in_order, [](const Format* format) { return *format; });
  return k_formats;
}

// Returns all adapters in their order: the generic one, and one for each format that has an
// adapter's name.
const std::vector<Adapter>& table() {
  static const std::vector<Adapter> k_table = [] {
    // The generic adapter has no format; the config says where its values are.
    std::vector<Adapter> adapters{{"generic", 9, Counts::none, read_generic}};
    for (const Format& format : formats()) {
      if (format.adapter.name.empty()) continue;
      adapters.push_back(format.adapter);
      adapters.back().format = format.name;
    }
    std::ranges::sort(adapters, {}, &Adapter::place);
    return adapters;
  }();
  return k_table;
}

// Fails if the engine prints what weir measures of its process: it would be believed instead.
static Result<void> check_own_metrics(const profile::EngineReport& report) {
  const auto check = [](const std::string& metric) -> Result<void> {
    if (!profile::is_measured_by_weir(metric)) return {};
    return fail(Code::data,
                "the engine prints {}, which weir measures itself: leave it out, or give it "
                "another name",
                text::printable(metric));
  };
  for (const auto& series : report.times) WEIR_CHECK(check(series.metric.name));
  for (const auto& count : report.counts) WEIR_CHECK(check(count.first));
  for (const auto& share : report.shares) WEIR_CHECK(check(share.first));
  return {};
}

// Reads an engine's output as UTF-8. A crash that it reports is part of the error, or a warning.
Result<profile::EngineReport> Adapter::read(const Output& output) const {
  const auto out = text::decoded(output.out), err = text::decoded(output.err);
  Output utf8 = output;
  if (out) utf8.out = *out;
  if (err) utf8.err = *err;
  auto report = own != nullptr ? own(utf8) : make_report(format, utf8);
  std::vector<std::string_view> lines = split_lines(utf8.out);
  for (const std::string_view line : split_lines(utf8.err)) lines.push_back(line);
  const std::string crash = find_crash(lines);
  if (!report) return tl::unexpected(with_crash(std::move(report).error(), crash));
  WEIR_CHECK(check_own_metrics(*report));
  const std::string warning = fmt::format("{}{}", k_crashed, crash);
  if (!crash.empty() && !holds(report->warnings, warning)) report->warnings.push_back(warning);
  return report;
}

const Adapter* find(std::string_view name) { return find_named(table(), name); }
std::vector<std::string> names() { return list_names(table()); }

std::vector<const Format*> find_formats(const Printed& printed) {
  std::multimap<int, const Format*, std::greater<>> sure;
  for (const Format& format : formats()) {
    const int sureness = confidence(format, printed);
    if (sureness >= k_recognised) sure.emplace(sureness, &format);
  }
  return collect<const Format*>(sure, [](const auto& entry) { return entry.second; });
}

// Reads a text by the first of its likely formats that can read it.
Result<Observed> read_any(const Document& document) {
  WEIR_CHECK(check_size(document, k_max_result_bytes));
  const Printed printed(document);
  const auto candidates = find_formats(printed);
  if (candidates.empty()) {
    WEIR_CHECK(check_size(document, k_max_read_bytes));
    const std::string nearest = describe_nearest_formats(printed);
    if (nearest.starts_with("it looks like")) return fail(Code::data, "{}", nearest);
    return fail(Code::data, "weir does not know this format.{} It reads:{}",
                text::prefix_if_any(" ", nearest), list_formats());
  }
  std::optional<Error> first;
  for (const Format* format : candidates) {
    auto read = check_size(document, most_bytes(*format)).and_then([&] {
      return read_with(*format, printed);
    });
    if (read) {
      warn_of_equal_formats(*format, candidates, printed, *read);
      return read;
    }
    if (!first) first = std::move(read).error();
  }
  return tl::unexpected(std::move(*first));
}

Result<Observed> read_as(std::string_view format, const Document& document) {
  const Format* match = find_named(formats(), format);
  if (match == nullptr) {
    const auto names = list_names(formats());
    return fail(Code::usage, "unknown format \"{}\"{}\n  known here: {}", display_text(format),
                text::did_you_mean(format, names), text::join(names));
  }
  WEIR_CHECK(check_size(document, most_bytes(*match)));
  const Printed printed(document);
  return read_with(*match, printed);
}

}  // namespace weir::adapters
