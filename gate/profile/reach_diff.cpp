// Maps changed files to the cells that run them.
#include "gate/profile/reach_diff.hpp"

#include <unordered_map>
#include <unordered_set>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::profile {
namespace {

using std::string_view;

// Endings of shaders that are compiled for every API.
constexpr string_view k_shaders[] = {".wgsl", ".hlsl", ".slang"};

constexpr string_view k_headers[] = {".h",   ".hh",  ".hpp", ".hxx", ".h++", ".inc",
                                     ".inl", ".ipp", ".tpp", ".cuh", ".def", ".glsl"};
constexpr string_view k_build_endings[] = {".cmake", ".ninja", ".mk", ".bazel", ".bzl", ".in",
                                           ".am",    ".ac",    ".gn", ".gni",   ".zon", ".gradle"};
constexpr string_view k_build_names[] = {
    "cmakelists.txt", "cmakepresets.json", "cmakeuserpresets.json",
    "makefile",       "gnumakefile",       "configure",
    "meson.build",    "meson_options.txt", "build",
    "workspace",      "cargo.toml",        "cargo.lock",
    "build.rs",       "build.zig",         "go.mod",
    "go.sum",         "package.json",      "package-lock.json",
    "setup.py",       "pyproject.toml",    "conanfile.txt",
    "conanfile.py",   "vcpkg.json",        ".gitmodules",
    "weir.yaml",      "weir.yml",          "build.sh"};

constexpr string_view k_compiled[] = {".c", ".cc", ".cpp", ".cxx", ".c++", ".m",  ".mm",
                                      ".s", ".rs", ".zig", ".f90", ".f",   ".go", ".swift"};
constexpr string_view k_document_endings[] = {".md", ".rst", ".adoc", ".markdown"};
constexpr string_view k_document_beginnings[] = {
    "readme", "license", "licence", "copying", "authors", "notice", "contributors", "codeowners"};
constexpr string_view k_document_names[] = {
    ".gitignore",  ".gitattributes",         ".editorconfig", ".clang-format",
    ".clang-tidy", ".gitlab-ci.yml",         ".travis.yml",   "jenkinsfile",
    ".mailmap",    ".pre-commit-config.yaml"};
constexpr string_view k_document_folders[] = {"docs/",    "doc/",     ".github/", ".circleci/",
                                              ".devops/", ".gitlab/", ".vscode/", "baselines/"};
constexpr string_view k_test_folders[] = {"tests/", "test/"};

bool ends_with_any(string_view path, std::span<const string_view> endings) {
  return std::ranges::any_of(
      endings, [&](string_view ending) { return !ending.empty() && path.ends_with(ending); });
}

bool starts_with_any(string_view path, std::span<const string_view> beginnings) {
  return std::ranges::any_of(beginnings,
                             [&](string_view beginning) { return path.starts_with(beginning); });
}

string_view file_name(string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// Returns true if kernels of this shader file run on the device.
bool shader_runs_on(string_view path, string_view device) {
  const std::string lower = text::lower(path);
  if (ends_with_any(lower, k_shaders)) return device != "cpu";
  const unit::DeviceApi* api = unit::find_device_api(device);
  return api != nullptr && ends_with_any(lower, api->shaders);
}

// Returns true for "readme.txt" and "license-mit", but not for the source file "notice_queue".
bool is_document_name(string_view name) {
  return std::ranges::any_of(k_document_beginnings, [&](string_view beginning) {
    if (!name.starts_with(beginning)) return false;
    const string_view rest = name.substr(beginning.size());
    return rest.empty() || rest.front() == '.' || rest.front() == '-';
  });
}

}  // namespace

// Returns how many names at the end of both paths are equal: 2 for "a/b/c" and "x/b/c".
std::size_t common_end(string_view one, string_view other) {
  std::size_t count = 0;
  while (!one.empty() && !other.empty()) {
    const string_view last = file_name(one);
    if (last.empty() || last != file_name(other)) break;
    ++count;
    const std::size_t removed = last.size();
    one.remove_suffix(std::min(one.size(), removed + 1));
    other.remove_suffix(std::min(other.size(), removed + 1));
  }
  return count;
}

// Returns what a change of this file may affect, by its name and folder: documents, tests, a
// shader, one source file, or anything.
FileKind file_kind(string_view path) {
  const std::string lower = text::lower(path);
  const string_view name = file_name(lower);
  // Documents go first, because no build compiles an example header in docs/.
  const bool is_compiled = ends_with_any(lower, k_compiled) || ends_with_any(lower, k_headers);
  if (starts_with_any(lower, k_document_folders) || ends_with_any(lower, k_document_endings) ||
      (!is_compiled && is_document_name(name)) || holds(k_document_names, name)) {
    return FileKind::documents;
  }
  if (ends_with_any(lower, k_headers) || ends_with_any(lower, k_build_endings) ||
      holds(k_build_names, name) || name.find("toolchain") != string_view::npos) {
    return FileKind::anything;
  }
  const bool is_api_shader = std::ranges::any_of(
      unit::device_apis(),
      [&](const unit::DeviceApi& api) { return ends_with_any(lower, api.shaders); });
  if (is_api_shader || ends_with_any(lower, k_shaders)) return FileKind::shader;
  if (starts_with_any(lower, k_test_folders)) return FileKind::tests;
  // Debug information names compiled files only. A script, model, linker map or generator input may
  // be read without a record of it.
  return is_compiled ? FileKind::source : FileKind::anything;
}

namespace {

constexpr std::size_t k_max_names_listed = 10;

using Paths = std::unordered_map<std::string_view, std::vector<std::string_view>>;  // by file name

// Collects the files of the repository and the records of all cells, then maps each changed file.
class DiffMapper {
 public:
  DiffMapper(std::span<const CellReach> cells, std::span<const ChangedFile> changed,
             std::span<const std::string> known_paths)
      : cells_(cells), changed_(changed) {
    for (const ChangedFile& file : changed) {
      add_known_path(file.path);
      add_known_path(file.was);
    }
    for (const std::string& path : known_paths) add_known_path(path);
    for (const CellReach& cell : cells) add_cell(cell);
  }

  DiffReach map() {
    for (const ChangedFile& file : changed_) map_file(file);
    return std::move(out_);
  }

 private:
  void add_known_path(const std::string& path) {
    if (path.empty()) return;
    const bool is_new = known_.insert(path).second;
    if (is_new) known_by_name_[file_name(path)].push_back(path);
  }

  // Adds a cell, with the reason if its source files are not known.
  void add_cell(const CellReach& cell) {
    Paths& executed = executed_.emplace_back();
    ReachedCell result{cell.cell, {}, ""};
    if (!cell.reach) {
      result.unknown = "what it runs was never recorded";
    } else {
      bool own = false;
      for (const auto& [path, functions] : cell.reach->executed.files) {
        executed[file_name(path)].push_back(path);
        own = own || is_own(path);
      }
      if (!own) {
        result.unknown = "no source file is known of what it ran: no debug information";
      } else {
        for (const std::string& object : cell.reach->executed.without_debug_info) {
          if (is_system_object(object)) continue;
          result.unknown = shown_path(file_name(object)) + " ran without debug information";
          break;
        }
      }
      if (cell.reach->kernels && cell.reach->kernels_named) {
        kernels_.insert(cell.reach->kernels->begin(), cell.reach->kernels->end());
      }
    }
    out_.cells.push_back(std::move(result));
  }

  // Returns true for a file of the repository, also of a build elsewhere. Files of the C library
  // may have debug information too.
  bool is_own(std::string_view executed_path) const {
    if (known_.contains(executed_path)) return true;
    const auto* same_name = look_up(known_by_name_, file_name(executed_path));
    return same_name != nullptr && std::ranges::any_of(*same_name, [&](string_view name) {
             return matches_path(executed_path, name);
           });
  }

  // Returns true if the paths share the file's name and a folder, or all of a file at the top.
  static bool matches_path(std::string_view executed_path, std::string_view name) {
    const std::size_t common = common_end(executed_path, name);
    return common >= 2 || (common == 1 && name.find('/') == std::string_view::npos);
  }

  // Adds a changed file to the cells that it reaches, or to the files that no cell runs.
  void map_file(const ChangedFile& file) {
    const FileKind kind = file.submodule ? FileKind::anything : file_kind(file.path);
    bool is_reached = false;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      auto reason = find_reason(file, kind, i);
      if (!reason) continue;
      is_reached = true;
      out_.cells[i].changed_code_run.push_back({file.path, std::move(*reason)});
    }
    if (is_reached) return;
    const bool expected_to_run = kind != FileKind::documents && kind != FileKind::tests;
    if (expected_to_run) {
      out_.unreached_files.push_back(file.path);
    } else {
      out_.quiet_files.push_back(file.path);
    }
  }

  // Returns the reason why cell `i` may run the changed file; nothing if it does not.
  std::optional<std::string> find_reason(const ChangedFile& file, FileKind kind,
                                         std::size_t i) const {
    const std::string& unknown = out_.cells[i].unknown;
    for (const std::string* name : {&file.path, &file.was}) {
      if (!name->empty() && executes(*name, i)) {
        return name == &file.path ? "it runs it" : "it runs it, as " + shown_path(file.was);
      }
    }
    switch (kind) {
      case FileKind::documents:
        return std::nullopt;
      case FileKind::anything:
        return file.submodule ? "a submodule: what it reaches is unknown"
                              : "not compiled by itself: what it reaches is unknown";
      case FileKind::shader:
        return find_kernel_reason(file, cells_[i]);
      case FileKind::source:
      case FileKind::tests:
        break;
    }
    if (!unknown.empty()) return unknown;
    // A test counts only if a record shows that the cell runs it.
    if (kind != FileKind::source) return std::nullopt;
    if (file.added) return "new since what it runs was recorded";
    const auto& inlined = cells_[i].reach->executed.inlined;
    if (!inlined) return "it may run it: what is inlined was not recorded (weir reach --record)";
    const bool may_run = std::ranges::any_of(*inlined, [&](const std::string& path) {
      return may_mean(path, file.path) || (!file.was.empty() && may_mean(path, file.was));
    });
    if (may_run) return "it may run it: some of its functions are inlined, and no line shows it";
    return std::nullopt;
  }

  bool executes(std::string_view name, std::size_t i) const {
    const auto* same_name = look_up(executed_[i], file_name(name));
    return same_name != nullptr && std::ranges::any_of(*same_name, [&](string_view executed_path) {
             return may_mean(executed_path, name);
           });
  }

  // Returns true if debug information with the path `executed_path` may mean the repository's file
  // `name`: no other file fits it better.
  bool may_mean(std::string_view executed_path, std::string_view name) const {
    if (executed_path == name) return true;
    if (known_.contains(executed_path) || !matches_path(executed_path, name)) return false;
    const std::size_t common = common_end(executed_path, name);
    const auto& same_name = known_by_name_.at(file_name(name));
    return std::ranges::none_of(same_name, [&](std::string_view other) {
      return common_end(executed_path, other) > common;
    });
  }

  // Returns the reason why a changed shader may matter to a cell: a kernel named after it, or a gap
  // in the records.
  std::optional<std::string> find_kernel_reason(const ChangedFile& file,
                                                const CellReach& cell) const {
    if (!shader_runs_on(file.path, cell.device)) return std::nullopt;
    if (!cell.reach) return "what it runs was never recorded";
    if (!cell.reach->kernels) return "its kernels were never recorded";
    if (!cell.reach->kernels_named) return "its kernels have no names of their own";
    bool some_cell = false;
    for (const std::string* name : {&file.path, &file.was}) {
      const std::string_view base = file_name(*name), stem = base.substr(0, base.find('.'));
      if (stem.empty()) continue;
      if (const auto kernel = find_with_prefix(*cell.reach->kernels, stem)) {
        return fmt::format("it runs the kernel {}", shown_path(*kernel));
      }
      some_cell = some_cell || find_with_prefix(kernels_, stem).has_value();
    }
    if (!some_cell) return "no kernel is named after this shader";
    return std::nullopt;
  }

  static std::optional<std::string> find_with_prefix(const std::set<std::string>& kernels,
                                                     std::string_view stem) {
    const auto match = kernels.lower_bound(std::string(stem));
    if (match == kernels.end() || !match->starts_with(stem)) return std::nullopt;
    return *match;
  }

  std::span<const CellReach> cells_;
  std::span<const ChangedFile> changed_;
  std::unordered_set<std::string_view> known_;
  Paths known_by_name_;
  std::vector<Paths> executed_;  // one per cell
  std::set<std::string> kernels_;
  DiffReach out_;
};

}  // namespace

// Parses the output of `git diff --raw -z`: entries of modes, status and one or two paths, each
// ended by a NUL. An error if it has another form.
Result<std::vector<ChangedFile>> parse_raw_diff(std::string_view text) {
  constexpr std::size_t k_max_changed_files = 1'000'000;
  const auto next_word = [&]() -> std::optional<std::string_view> {
    const std::size_t end = text.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end + 1);
    return word;
  };
  const auto fail_with = [](std::string_view what) {
    return fail(Code::data, "not what git diff --raw -z prints: {}", what);
  };
  std::vector<ChangedFile> changed;
  while (!text.empty()) {
    const auto head = next_word();
    // ":100644 100644 1a2b3c4 5d6e7f8 R086"
    const std::vector<std::string> words = text::split(head.value_or(""), ' ');
    if (!head || words.size() != 5 || !words[0].starts_with(':') || words[4].empty()) {
      return fail_with("no line of modes");
    }
    ChangedFile file;
    file.submodule = words[0] == ":160000" || words[1] == "160000";
    const char status = words[4].front();
    file.added = status == 'A' || status == 'C';
    const auto first = next_word();
    if (!first || first->empty()) return fail_with("a change without a path");
    file.path = text::printable(*first);
    if (status == 'R' || status == 'C') {
      const auto second = next_word();
      if (!second || second->empty()) return fail_with("a new name is missing");
      // The source of a copy has not changed.
      if (status == 'R') file.was = std::move(file.path);
      file.path = text::printable(*second);
    }
    if (changed.size() >= k_max_changed_files) return fail_with("more than 1000000 files");
    changed.push_back(std::move(file));
  }
  return changed;
}

DiffReach reach_of_diff(std::span<const CellReach> cells, std::span<const ChangedFile> changed,
                        std::span<const std::string> known_paths) {
  return DiffMapper(cells, changed, known_paths).map();
}

std::string shown_path(std::string_view path) {
  std::string result = text::printable(path);
  std::ranges::replace_if(
      result, [](char c) { return c == '\n' || c == '\t'; }, '?');
  return result;
}

// Returns "changed files that no cell runs: a, b (+3 more)", with at most ten names; "" if there
// are none.
std::string unreached_files_text(const DiffReach& reach) {
  if (reach.unreached_files.empty()) return "";
  const std::span first_names =
      std::span(reach.unreached_files)
          .first(std::min(reach.unreached_files.size(), k_max_names_listed));
  const auto names = collect<std::string>(first_names, shown_path);
  std::string line = "changed files that no cell runs: " + text::join(names);
  if (reach.unreached_files.size() > names.size()) {
    line += fmt::format(" (+{} more)", reach.unreached_files.size() - names.size());
  }
  return line;
}

}  // namespace weir::profile
