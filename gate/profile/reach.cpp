// The JSON of coverage builds: clang's and GCC's.
#include "gate/profile/reach.hpp"

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

namespace weir::profile {

static constexpr std::size_t k_longest_path = 4096;

void add_executed(Executed& executed, const std::string& file, std::string_view function) {
  if (file.empty() || file.size() > k_longest_path) return;
  if (executed.files.size() >= k_most_reach_files && !executed.files.contains(file)) return;
  std::set<std::string>& functions = executed.files[file];
  if (!function.empty() && functions.size() < k_most_reach_functions) {
    functions.emplace(function);
  }
}

void merge_executed(Executed& into, const Executed& more) {
  for (const auto& [file, functions] : more.files) {
    add_executed(into, file, "");
    for (const std::string& function : functions) add_executed(into, file, function);
  }
  into.blind.insert(more.blind.begin(), more.blind.end());
  if (!more.inlined) into.inlined.reset();
  if (into.inlined && into.inlined->size() < k_most_reach_files) {
    into.inlined->insert(more.inlined->begin(), more.inlined->end());
  }
}

bool of_the_system(std::string_view object) {
  // Not all of /usr: containers like to build in /usr/src.
  return std::ranges::any_of(
      std::array{"/usr/lib", "/usr/bin/", "/usr/sbin/", "/usr/include/", "/lib", "/bin/"},
      [&](std::string_view folder) { return object.starts_with(folder); });
}

std::string normal_path(std::string_view path) {
  const bool rooted = path.starts_with('/');
  std::vector<std::string> parts;
  for (std::string& part : text::split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (part != ".." || !rooted) {
      parts.push_back(std::move(part));
    }
  }
  return (rooted ? "/" : "") + text::join(parts, "/");
}

std::string path_below(std::string_view path, std::string_view top) {
  std::string normal = normal_path(path);
  if (top.size() > 1 && normal.size() > top.size() + 1 && normal.starts_with(top) &&
      normal[top.size()] == '/') {
    normal.erase(0, top.size() + 1);
  }
  return normal;
}

void fields(Fields& io, Reach& reach) {
  io.schema("weir.reach/1", "not a weir.reach/1");
  io("cell", reach.cell);
  io("commit", reach.commit);
  io("dirty", reach.dirty);
  io("source", reach.source);
  io("files", reach.executed.files, ".files");
  io.always("blind", reach.executed.blind);
  if (io.reads()) reach.executed.inlined.reset();  // absent: not known
  io.sparse("inlined", reach.executed.inlined);
  io.always("kernels", reach.kernels);
  io("kernels_named", reach.kernels_named);
  io.always("ops", reach.ops);
  if (!io.reads()) return;
  const Executed read = std::exchange(reach.executed, {});
  merge_executed(reach.executed, read);
}

namespace {

// What is no object, array, text or number where one belongs is as if it were not there: both
// formats have grown over the years, and what is asked of them is little.
std::string text_of(const Json& json) {
  return json.is_string() ? text::printable(json.get_ref<const std::string&>()) : std::string();
}

bool positive(const Json& json) { return json.is_number() && json.get<double>() > 0; }

// Each segment is [line, column, count, has a count, …].
bool some_segment_ran(const Json& file) {
  return std::ranges::any_of(list_in(file, "segments"), [](const Json& segment) {
    return segment.is_array() && segment.size() >= 4 && positive(segment[2]) &&
           segment[3] != Json(false);
  });
}

void read_llvm(const Json& document, Executed& executed) {
  for (const Json& data : list_in(document, "data")) {
    for (const Json& file : list_in(data, "files")) {
      if (some_segment_ran(file) ||
          positive(below(below(below(file, "summary"), "lines"), "covered"))) {
        add_executed(executed, normal_path(text_of(below(file, "filename"))), "");
      }
    }
    for (const Json& function : list_in(data, "functions")) {
      if (!positive(below(function, "count"))) continue;
      const Json& names = list_in(function, "filenames");
      // The first is where it stands; the others are what it took in.
      if (names.empty()) continue;
      add_executed(executed, normal_path(text_of(names.front())), text_of(below(function, "name")));
    }
  }
}

void read_gcov(const Json& document, Executed& executed) {
  const std::string folder = text_of(below(document, "current_working_directory"));
  for (const Json& file : list_in(document, "files")) {
    const std::string name = text_of(below(file, "file"));
    if (name.empty()) continue;
    const std::string path =
        normal_path(name.starts_with('/') || folder.empty() ? name : folder + "/" + name);
    const bool ran = std::ranges::any_of(
        list_in(file, "lines"), [](const Json& line) { return positive(below(line, "count")); });
    if (ran) add_executed(executed, path, "");
    for (const Json& function : list_in(file, "functions")) {
      if (!positive(below(function, "execution_count"))) continue;
      std::string shown = text_of(below(function, "demangled_name"));
      if (shown.empty()) shown = text_of(below(function, "name"));
      add_executed(executed, path, shown);
    }
  }
}

Result<void> read_document(const Json& document, Executed& executed) {
  if (text_of(below(document, "type")) == "llvm.coverage.json.export") {
    read_llvm(document, executed);
  } else if (below(document, "gcc_version").is_string()) {
    read_gcov(document, executed);
  } else {
    return fail(Code::data,
                "not coverage that weir can read: pass the output of llvm-cov export -format=text "
                "or gcov --json-format --stdout");
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
