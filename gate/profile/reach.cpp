// Reads the JSON of coverage builds (clang's and GCC's), and stores what a cell executed.
#include "gate/profile/reach.hpp"

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

namespace weir::profile {

static constexpr std::size_t k_longest_path = 4096;

void add_executed(Executed& executed, const std::string& file, std::string_view function) {
  if (file.empty() || file.size() > k_longest_path) return;
  if (executed.files.size() >= k_max_reach_files && !executed.files.contains(file)) return;
  std::set<std::string>& functions = executed.files[file];
  if (!function.empty() && functions.size() < k_max_reach_functions) {
    functions.emplace(function);
  }
}

// Adds everything in `more`, up to the limits. If one side does not know what is inlined, neither
// does the result.
void merge_executed(Executed& into, const Executed& more) {
  for (const auto& [file, functions] : more.files) {
    add_executed(into, file, "");
    for (const std::string& function : functions) add_executed(into, file, function);
  }
  into.without_debug_info.insert(more.without_debug_info.begin(), more.without_debug_info.end());
  if (!more.inlined) into.inlined.reset();
  if (into.inlined && into.inlined->size() < k_max_reach_files) {
    into.inlined->insert(more.inlined->begin(), more.inlined->end());
  }
}

bool is_system_object(std::string_view object) {
  // /usr as a whole is not among them, because containers like to build in /usr/src.
  return std::ranges::any_of(
      std::array{"/usr/lib", "/usr/bin/", "/usr/sbin/", "/usr/include/", "/lib", "/bin/"},
      [&](std::string_view folder) { return object.starts_with(folder); });
}

// Resolves "." and ".." in a path without looking at files. A ".." above "/" is dropped.
std::string normal_path(std::string_view path) {
  const bool is_absolute = path.starts_with('/');
  std::vector<std::string> parts;
  for (std::string& part : text::split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (part != ".." || !is_absolute) {
      parts.push_back(std::move(part));
    }
  }
  return (is_absolute ? "/" : "") + text::join(parts, "/");
}

std::string path_below(std::string_view path, std::string_view top) {
  std::string normal = normal_path(path);
  if (top.size() > 1 && normal.size() > top.size() + 1 && normal.starts_with(top) &&
      normal[top.size()] == '/') {
    normal.erase(0, top.size() + 1);
  }
  return normal;
}

// Reads or writes which files, functions and kernels a cell runs (weir.reach/1). What is read
// passes through merge_executed(), which applies the limits.
void fields(Fields& io, Reach& reach) {
  io.schema("weir.reach/1", "not a weir.reach/1");
  io("cell", reach.cell);
  io("commit", reach.commit);
  io("dirty", reach.dirty);
  io("source", reach.source);
  io("files", reach.executed.files, ".files");
  io.always("blind", reach.executed.without_debug_info);
  if (io.is_reading()) reach.executed.inlined.reset();  // absent: not known
  io.optional("inlined", reach.executed.inlined);
  io.always("kernels", reach.kernels);
  io("kernels_named", reach.kernels_named);
  io.always("ops", reach.ops);
  if (!io.is_reading()) return;
  const Executed read = std::move(reach.executed);
  reach.executed = {};
  merge_executed(reach.executed, read);
}

namespace {

// Returns a node's text; "" if it is no text. A node of an unexpected kind counts as absent,
// because both formats have grown over the years.
std::string read_text(const Json& json) {
  return json.is_string() ? text::printable(json.get_ref<const std::string&>()) : std::string();
}

bool is_positive(const Json& json) { return json.is_number() && json.get<double>() > 0; }

// Returns true if code of a segment ran. A segment is [line, column, count, has a count, …].
bool has_executed_segment(const Json& file) {
  return std::ranges::any_of(list_or_empty(file, "segments"), [](const Json& segment) {
    return segment.is_array() && segment.size() >= 4 && is_positive(segment[2]) &&
           segment[3] != Json(false);
  });
}

// Adds the files and functions that ran, from the JSON that llvm-cov exports.
void read_llvm(const Json& document, Executed& executed) {
  for (const Json& data : list_or_empty(document, "data")) {
    for (const Json& file : list_or_empty(data, "files")) {
      if (has_executed_segment(file) ||
          is_positive(member_or_null(member_or_null(member_or_null(file, "summary"), "lines"),
                                     "covered"))) {
        add_executed(executed, normal_path(read_text(member_or_null(file, "filename"))), "");
      }
    }
    for (const Json& function : list_or_empty(data, "functions")) {
      if (!is_positive(member_or_null(function, "count"))) continue;
      const Json& names = list_or_empty(function, "filenames");
      // The first file holds the function; others are inlined into it.
      if (names.empty()) continue;
      add_executed(executed, normal_path(read_text(names.front())),
                   read_text(member_or_null(function, "name")));
    }
  }
}

// Adds the files and functions that ran, from gcov's JSON. A relative name starts in gcov's
// working directory.
void read_gcov(const Json& document, Executed& executed) {
  const std::string folder = read_text(member_or_null(document, "current_working_directory"));
  for (const Json& file : list_or_empty(document, "files")) {
    const std::string name = read_text(member_or_null(file, "file"));
    if (name.empty()) continue;
    const std::string path =
        normal_path(name.starts_with('/') || folder.empty() ? name : folder + "/" + name);
    const bool file_ran = std::ranges::any_of(list_or_empty(file, "lines"), [](const Json& line) {
      return is_positive(member_or_null(line, "count"));
    });
    if (file_ran) add_executed(executed, path, "");
    for (const Json& function : list_or_empty(file, "functions")) {
      if (!is_positive(member_or_null(function, "execution_count"))) continue;
      std::string name_shown = read_text(member_or_null(function, "demangled_name"));
      if (name_shown.empty()) name_shown = read_text(member_or_null(function, "name"));
      add_executed(executed, path, name_shown);
    }
  }
}

// Adds what ran according to one coverage document, clang's or GCC's; an error for any other.
Result<void> read_document(const Json& document, Executed& executed) {
  if (read_text(member_or_null(document, "type")) == "llvm.coverage.json.export") {
    read_llvm(document, executed);
  } else if (member_or_null(document, "gcc_version").is_string()) {
    read_gcov(document, executed);
  } else {
    return fail(Code::data,
                "not coverage that weir can read: pass the output of llvm-cov export -format=text "
                "or gcov --json-format --stdout");
  }
  return {};
}

}  // namespace

// Reads coverage that is one JSON document, or one document a line. An error if nothing ran, or a
// line cannot be read.
Result<Executed> read_coverage(std::string_view text) {
  constexpr JsonLimits k_limits{.bytes = std::size_t{512} << 20, .depth = 64};
  Executed executed;
  if (const auto single = parse_json(text, k_limits)) {
    WEIR_CHECK(read_document(*single, executed));
  } else {
    std::size_t number = 0;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const std::string_view line = text::trim(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++number;
      if (line.empty()) continue;
      const auto document = parse_json(line, k_limits);
      if (!document && number == 1) return tl::unexpected(single.error());
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
