// The JSON of coverage builds: clang's and GCC's.
#include "gate/base/text.hpp"
#include "gate/profile/reach.hpp"

namespace weir::profile {
namespace {

// What is no object, array, text or number where one belongs is as if it were not there: both
// formats have grown over the years, and what is asked of them is little.
const Json& member(const Json& json, const char* key) {
  static const Json nothing;
  if (!json.is_object()) return nothing;
  const auto found = json.find(key);
  return found == json.end() ? nothing : *found;
}

std::string text_of(const Json& json) {
  return json.is_string() ? text::printable(json.get_ref<const std::string&>()) : std::string();
}

bool positive(const Json& json) { return json.is_number() && json.get<double>() > 0; }

const Json& list_of(const Json& json) {
  static const Json nothing = Json::array();
  return json.is_array() ? json : nothing;
}

// [line, column, count, has a count, …]
bool some_segment_ran(const Json& segments) {
  for (const Json& segment : list_of(segments)) {
    if (segment.is_array() && segment.size() >= 4 && positive(segment[2]) &&
        segment[3] != Json(false)) {
      return true;
    }
  }
  return false;
}

void read_llvm(const Json& document, Executed& executed) {
  for (const Json& data : list_of(member(document, "data"))) {
    for (const Json& file : list_of(member(data, "files"))) {
      if (some_segment_ran(member(file, "segments")) ||
          positive(member(member(member(file, "summary"), "lines"), "covered"))) {
        add_executed(executed, normal_path(text_of(member(file, "filename"))), "");
      }
    }
    for (const Json& function : list_of(member(data, "functions"))) {
      if (!positive(member(function, "count"))) continue;
      const Json& names = list_of(member(function, "filenames"));
      // The first is where it stands; the others are what it took in.
      if (names.empty()) continue;
      add_executed(executed, normal_path(text_of(names.front())),
                   text_of(member(function, "name")));
    }
  }
}

void read_gcov(const Json& document, Executed& executed) {
  const std::string folder = text_of(member(document, "current_working_directory"));
  for (const Json& file : list_of(member(document, "files"))) {
    const std::string name = text_of(member(file, "file"));
    if (name.empty()) continue;
    const std::string path =
        normal_path(name.starts_with('/') || folder.empty() ? name : folder + "/" + name);
    for (const Json& line : list_of(member(file, "lines"))) {
      if (!positive(member(line, "count"))) continue;
      add_executed(executed, path, "");
      break;
    }
    for (const Json& function : list_of(member(file, "functions"))) {
      if (!positive(member(function, "execution_count"))) continue;
      std::string shown = text_of(member(function, "demangled_name"));
      if (shown.empty()) shown = text_of(member(function, "name"));
      add_executed(executed, path, shown);
    }
  }
}

Result<void> read_document(const Json& document, Executed& executed) {
  if (text_of(member(document, "type")) == "llvm.coverage.json.export") {
    read_llvm(document, executed);
  } else if (member(document, "gcc_version").is_string()) {
    read_gcov(document, executed);
  } else {
    return fail(Code::data,
                "no coverage that weir can read: it takes what llvm-cov export -format=text and "
                "gcov --json-format --stdout print");
  }
  return {};
}

}  // namespace

Result<Executed> read_coverage(std::string_view text) {
  constexpr JsonLimits k_limits{.bytes = std::size_t{512} << 20, .depth = 64};
  Executed executed;
  if (const auto whole = parse_json(text, k_limits)) {
    WEIR_CHECK(read_document(*whole, executed));
  } else {
    std::size_t number = 0;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const std::string_view line = text::trim(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++number;
      if (line.empty()) continue;
      const auto document = parse_json(line, k_limits);
      if (!document && number == 1) return tl::unexpected(whole.error());
      if (!document) return fail(Code::data, "line {}: {}", number, document.error().message);
      WEIR_CHECK(read_document(*document, executed));
    }
  }
  if (executed.files.empty()) {
    return fail(Code::data, "this coverage says that no line of any file ran");
  }
  return executed;
}

}  // namespace weir::profile
