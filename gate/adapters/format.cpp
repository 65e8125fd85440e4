// Functions over all formats: listing them, recognising a text, reading it (readers.hpp lists
// them).
#include "gate/adapters/format.hpp"

#include "gate/adapters/readers.hpp"

namespace weir::adapters {
namespace {

constexpr int k_recognised = 20;  // less is a guess

std::string list_formats() {
  std::string list;
  for (const Format& format : formats()) {
    list += fmt::format("\n    {:<19}{}", format.name, format.what);
  }
  return list;
}

// Returns the line that shows that the program crashed; "" if there is none.
std::string find_crash(const Printed& printed) {
  for (const std::string_view line : printed.lines()) {
    for (const char* mark : {"terminate called", "ggml_uncaught_exception", "GGML_ASSERT",
                             "ggml_abort", "ggml_print_backtrace", "Segmentation fault",
                             "panicked at", "core dumped", "Traceback (most recent call last)"}) {
      if (line.find(mark) != line.npos) return display_text(line, 120);
    }
  }
  return "";
}

// Returns true if the text has the mark: "^A" must begin a line, "A & B" needs both.
bool has_mark(const Printed& printed, std::string_view mark) {
  constexpr std::string_view k_and = " & ";
  if (const std::size_t both = mark.find(k_and); both != mark.npos) {
    return has_mark(printed, mark.substr(0, both)) &&
           has_mark(printed, mark.substr(both + k_and.size()));
  }
  return mark.starts_with('^') ? printed.begins(mark.substr(1)) : printed.holds(mark);
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

// Reads a text as one format. Fails if nothing was found; the error names a crash of the program.
Result<Observed> read_with(const Format& format, const Printed& printed) {
  Result<Observed> read;
  if (const auto* read_whole = std::get_if<Format::ReadWhole>(&format.read)) {
    read = (*read_whole)(printed);
  } else {
    std::get<Format::Read>(format.read)(printed, *read);
  }
  if (read && is_bare(*read)) read = nothing_found(format.name);
  if (!read) {
    Error error = with_context(format.name, std::move(read).error());
    const std::string crash = find_crash(printed);
    if (!crash.empty()) error.message += fmt::format("; the program crashed: {}", crash);
    return tl::unexpected(std::move(error));
  }
  read->format = format.name;
  if (!format.engine.empty()) read->context.engine = format.engine;
  return read;
}

Result<void> check_size(const Document& document) {
  if (text::trim(document.out).empty() && text::trim(document.err).empty()) {
    return fail(Code::data, "there is no text in it");
  }
  if (document.out.starts_with("\x1F\x8B")) {
    return fail(Code::data, "it is packed with gzip, and only files are unpacked");
  }
  if (document.out.size() + document.err.size() > k_most_read) {
    return fail(Code::data, "it is larger than 64 MiB: only a Chrome trace may be that large");
  }
  return {};
}

}  // namespace

const std::vector<Format>& formats() {
  static const auto k_formats =
      collect<Format>(k_formats_in_order, [](const Format* format) { return *format; });
  return k_formats;
}

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

Result<profile::EngineReport> Adapter::read(const Output& output) const {
  return own != nullptr ? own(output) : make_report(format, output);
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

Result<Observed> read_any(const Document& document) {
  WEIR_CHECK(check_size(document));
  const Printed printed(document);
  const auto candidates = find_formats(printed);
  if (candidates.empty()) {
    return fail(Code::data, "weir does not know this format. It reads:{}", list_formats());
  }
  std::optional<Error> first;
  for (const Format* format : candidates) {
    auto read = read_with(*format, printed);
    if (read) return read;
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
  WEIR_CHECK(check_size(document));
  const Printed printed(document);
  return read_with(*match, printed);
}

}  // namespace weir::adapters
