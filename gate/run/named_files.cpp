// Looks for the files that words of a command line may mean.
#include "gate/run/named_files.hpp"

#include <algorithm>
#include <set>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/word_paths.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

namespace weir::run {
namespace {

constexpr std::size_t k_max_files = 10'000, k_max_words = 1'000;
// Characters that shells, options, lists and URLs put between names.
constexpr std::string_view k_separators = " \t\r\n\"'`;&|<>(){},:=@#+^%!";
constexpr std::string_view k_wildcards = "*?[";

// Replaces "$NAME" and "${NAME}" by the variable's value, from `environment`, else from weir's own;
// "" if it is not set.
std::string fill_variables(std::string_view text, const config::Environment& environment) {
  std::string filled;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      filled += text[at];
      ++at;
      continue;
    }
    const bool is_braced = text.substr(at + 1, 1) == "{";
    const std::size_t begin = at + (is_braced ? 2 : 1);
    std::size_t end = begin;
    while (end < text.size() && (text::is_alphanumeric(text[end]) || text[end] == '_')) ++end;
    const std::string name(text.substr(begin, end - begin));
    const std::string* value = look_up(environment, name);
    filled += value != nullptr ? *value : sys::environment_value(name).value_or("");
    at = end + (is_braced && end < text.size() ? 1 : 0);
  }
  return filled;
}

// Returns the parts of the word, and the word.
std::vector<std::string> split_word(const std::string& word) {
  std::vector<std::string> parts = config::split_at_any(word, k_separators);
  parts.push_back(word);
  return parts;
}

// Returns true if a name may fit a pattern with "*", "?" and "[...]". A choice is taken for any
// text: a file too many does no harm.
bool may_fit(std::string pattern, std::string_view name) {
  for (std::size_t at = 0; (at = pattern.find_first_of("?[", at)) != std::string::npos; ++at) {
    const std::size_t end = pattern[at] == '[' ? pattern.find(']', at) : at;
    pattern.replace(at, std::min(end, pattern.size() - 1) - at + 1, "*");
  }
  return text::glob_match(pattern, name);
}

class NamedFiles {
 public:
  NamedFiles(const sys::Files& files, const std::string& folder)
      : files_(files), real_folder_(sys::follow_links(folder)), starts_{folder} {}

  void add_word(const std::string& word, bool may_be_folder) {
    for (const std::string& part : split_word(word)) {
      if (part.empty() || ++word_count_ > k_max_words) continue;
      const std::vector<std::string> starts = starts_;
      for (const std::string& start : starts) add_pattern(start, part, may_be_folder);
    }
  }
  [[nodiscard]] std::vector<std::string> take() { return std::move(paths_); }

 private:
  // Adds what `pattern`, counted from `folder`, stands for.
  void add_pattern(const std::string& folder, const std::string& pattern, bool may_be_folder) {
    const std::size_t wildcard = pattern.find_first_of(k_wildcards);
    if (wildcard == std::string::npos)
      return add_path(sys::absolute(sys::join_path(folder, pattern)), may_be_folder);
    const std::size_t slash = pattern.rfind('/', wildcard), end = pattern.find('/', wildcard);
    const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
    const std::string parent = sys::absolute(sys::join_path(folder, pattern.substr(0, begin)));
    const std::string name_pattern =
        pattern.substr(begin, end == std::string::npos ? end : end - begin);
    for (const std::string& name : list(parent)) {
      if (!may_fit(name_pattern, name) || name.starts_with('.')) continue;
      const std::string rest = end == std::string::npos ? "" : pattern.substr(end);
      add_pattern(sys::join_path(parent, name), rest.empty() ? "." : "." + rest, may_be_folder);
    }
  }

  void add_path(const std::string& path, bool may_be_folder) {
    for (const char* system : {"/proc", "/sys", "/dev"}) {
      if (sys::is_within(path, system)) return;
    }
    const sys::Kind kind = files_.kind(path);
    if (kind == sys::Kind::file) return add_file(path);
    const bool is_around = path == "/" || sys::is_within(real_folder_, sys::follow_links(path));
    if (kind != sys::Kind::folder || !may_be_folder || is_around) return;
    if (holds(starts_, path)) return;
    starts_.push_back(path);
    std::vector<std::string> inner;
    if (list_files(path, inner)) {
      for (const std::string& file : inner) add_file(file);
    }
  }

  void add_file(const std::string& path) {
    if (seen_.insert(path).second) paths_.push_back(path);
  }

  // Lists the files below a folder. Returns false if there are too many.
  bool list_files(const std::string& folder, std::vector<std::string>& inner) {
    for (const std::string& name : list(folder)) {
      const std::string path = sys::join_path(folder, name);
      const sys::Kind kind = files_.kind(path);
      if (kind == sys::Kind::file) inner.push_back(path);
      if (inner.size() > k_max_files || ++looks_ > 2 * k_max_files) return false;
      if (kind != sys::Kind::folder || name == ".git") continue;
      if (sys::follow_links(path) != sys::join_path(sys::follow_links(folder), name)) continue;
      if (!list_files(path, inner)) return false;
    }
    return true;
  }

  [[nodiscard]] std::vector<std::string> list(const std::string& folder) const {
    if (files_.kind(folder) != sys::Kind::folder) return {};
    return files_.list(folder).value_or(std::vector<std::string>());
  }

  const sys::Files& files_;
  std::string real_folder_;
  std::vector<std::string> starts_, paths_;
  std::set<std::string> seen_;
  std::size_t word_count_ = 0, looks_ = 0;
};

}  // namespace

std::vector<std::string> find_named_files(const sys::Files& files, const config::CommandLine& line,
                                          const std::string& folder) {
  NamedFiles named(files, folder);
  for (std::size_t i = 1; i < line.argv.size(); ++i)
    named.add_word(fill_variables(line.argv[i], line.env), /*may_be_folder=*/true);
  for (const auto& [name, value] : line.env)
    named.add_word(fill_variables(value, line.env), /*may_be_folder=*/false);
  return named.take();
}

// Returns the shared libraries that lie beside a program, or in the folder "lib" beside its own.
// Links are followed.
std::vector<std::string> find_libraries(const sys::Files& files, const std::string& program) {
  std::vector<std::string> libraries;
  const std::string program_folder = sys::folder_of(sys::follow_links(program));
  for (const std::string& folder :
       {program_folder, sys::join_path(sys::folder_of(program_folder), "lib")}) {
    if (files.kind(folder) != sys::Kind::folder) continue;
    for (const std::string& name : files.list(folder).value_or(std::vector<std::string>())) {
      const bool is_library = name.ends_with(".so") || name.find(".so.") != std::string::npos ||
                              name.ends_with(".dylib");
      const std::string path = sys::join_path(folder, name);
      if (is_library && files.kind(path) == sys::Kind::file) libraries.push_back(path);
    }
  }
  return libraries;
}

}  // namespace weir::run
