#include "gate/profile/reach_diff.hpp"

#include <unordered_map>
#include <unordered_set>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::profile {
namespace {

using std::string_view;

// Shaders that are compiled for every API.
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

bool ends_with_one(string_view path, std::span<const string_view> endings) {
  return std::ranges::any_of(
      endings, [&](string_view ending) { return !ending.empty() && path.ends_with(ending); });
}

bool starts_with_one(string_view path, std::span<const string_view> beginnings) {
  return std::ranges::any_of(beginnings,
                             [&](string_view beginning) { return path.starts_with(beginning); });
}

string_view file_name_in(string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

bool shader_runs_on(string_view path, string_view device) {
  const std::string lower = text::lower(path);
  if (ends_with_one(lower, k_shaders)) return device != "cpu";
  const unit::DeviceApi* api = unit::find_device_api(device);
  return api != nullptr && ends_with_one(lower, api->shaders);
}

// "readme.txt", "license-mit": not the source file "notice_queue".
bool is_document_name(string_view name) {
  return std::ranges::any_of(k_document_beginnings, [&](string_view beginning) {
    if (!name.starts_with(beginning)) return false;
    const string_view rest = name.substr(beginning.size());
    return rest.empty() || rest.front() == '.' || rest.front() == '-';
  });
}

}  // namespace

std::size_t common_end(string_view one, string_view other) {
  std::size_t same = 0;
  while (!one.empty() && !other.empty()) {
    const string_view last = file_name_in(one);
    if (last.empty() || last != file_name_in(other)) break;
    ++same;
    const std::size_t gone = last.size();
    one.remove_suffix(std::min(one.size(), gone + 1));
    other.remove_suffix(std::min(other.size(), gone + 1));
  }
  return same;
}

FileKind file_kind(string_view path) {
  const std::string lower = text::lower(path);
  const string_view name = file_name_in(lower);
  // Documents first: a header that shows an example in docs/ is compiled by nobody.
  const bool compiled = ends_with_one(lower, k_compiled) || ends_with_one(lower, k_headers);
  if (starts_with_one(lower, k_document_folders) || ends_with_one(lower, k_document_endings) ||
      (!compiled && is_document_name(name)) || holds(k_document_names, name)) {
    return FileKind::documents;
  }
  if (ends_with_one(lower, k_headers) || ends_with_one(lower, k_build_endings) ||
      holds(k_build_names, name) || name.find("toolchain") != string_view::npos) {
    return FileKind::anything;
  }
  const bool shader = std::ranges::any_of(unit::device_apis(), [&](const unit::DeviceApi& api) {
    return ends_with_one(lower, api.shaders);
  });
  if (shader || ends_with_one(lower, k_shaders)) return FileKind::shader;
  if (starts_with_one(lower, k_test_folders)) return FileKind::tests;
  // Debug information names what was compiled. A script, a model, a linker's map, what code is made
  // from: no record can say that nothing reads it.
  return compiled ? FileKind::source : FileKind::anything;
}

namespace {

constexpr std::size_t k_most_named = 10;

using Paths = std::unordered_map<std::string_view, std::vector<std::string_view>>;  // by file name

class DiffMapper {
 public:
  DiffMapper(std::span<const CellReach> cells, std::span<const ChangedFile> changed,
             std::span<const std::string> known)
      : cells_(cells), changed_(changed) {
    for (const ChangedFile& file : changed) {
      know(file.path);
      know(file.was);
    }
    for (const std::string& path : known) know(path);
    for (const CellReach& cell : cells) prepare(cell);
  }

  DiffReach map() {
    for (const ChangedFile& file : changed_) take(file);
    return std::move(out_);
  }

 private:
  void know(const std::string& path) {
    if (path.empty() || !known_.insert(path).second) return;
    known_by_name_[file_name_in(path)].push_back(path);
  }

  void prepare(const CellReach& cell) {
    Paths& executed = executed_.emplace_back();
    ReachedCell made{cell.cell, {}, ""};
    if (!cell.reach) {
      made.unknown = "what it runs was never recorded";
    } else {
      bool own = false;
      for (const auto& [path, functions] : cell.reach->executed.files) {
        executed[file_name_in(path)].push_back(path);
        own = own || is_own(path);
      }
      if (!own) {
        made.unknown = "no source file is known of what it ran: no debug information";
      } else {
        for (const std::string& object : cell.reach->executed.blind) {
          if (of_the_system(object)) continue;
          made.unknown = shown_path(file_name_in(object)) + " ran without debug information";
          break;
        }
      }
      if (cell.reach->kernels && cell.reach->kernels_named) {
        kernels_.insert(cell.reach->kernels->begin(), cell.reach->kernels->end());
      }
    }
    out_.cells.push_back(std::move(made));
  }

  // A file of the repository, also of a build elsewhere; the C library's may have information too.
  bool is_own(std::string_view ran) const {
    if (known_.contains(ran)) return true;
    const auto* same = look_up(known_by_name_, file_name_in(ran));
    return same != nullptr &&
           std::ranges::any_of(*same, [&](string_view name) { return fits(ran, name); });
  }

  // The file's name and a folder at least, or all of a file at the top.
  static bool fits(std::string_view ran, std::string_view name) {
    const std::size_t common = common_end(ran, name);
    return common >= 2 || (common == 1 && name.find('/') == std::string_view::npos);
  }

  void take(const ChangedFile& file) {
    const FileKind kind = file.submodule ? FileKind::anything : file_kind(file.path);
    bool reached = false;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      auto why = reaches(file, kind, i);
      if (!why) continue;
      reached = true;
      out_.cells[i].by.push_back({file.path, std::move(*why)});
    }
    if (reached) return;
    const bool missed = kind != FileKind::documents && kind != FileKind::tests;
    if (missed) {
      out_.none.push_back(file.path);
    } else {
      out_.quiet.push_back(file.path);
    }
  }

  std::optional<std::string> reaches(const ChangedFile& file, FileKind kind, std::size_t i) const {
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
        return reaches_kernel(file, cells_[i]);
      case FileKind::source:
      case FileKind::tests:
        break;
    }
    if (!unknown.empty()) return unknown;
    // Of a test nobody thinks that a cell runs it.
    if (kind != FileKind::source) return std::nullopt;
    if (file.added) return "new since what it runs was recorded";
    const auto& inlined = cells_[i].reach->executed.inlined;
    if (!inlined) return "it may run it: what is inlined was not recorded (weir reach --record)";
    const bool may = std::ranges::any_of(*inlined, [&](const std::string& path) {
      return means(path, file.path) || (!file.was.empty() && means(path, file.was));
    });
    if (may) return "it may run it: some of its functions are inlined, and no line shows it";
    return std::nullopt;
  }

  bool executes(std::string_view name, std::size_t i) const {
    const auto* same = look_up(executed_[i], file_name_in(name));
    return same != nullptr &&
           std::ranges::any_of(*same, [&](string_view ran) { return means(ran, name); });
  }

  // Whether debug information that says `ran` means the repository's file `name`.
  bool means(std::string_view ran, std::string_view name) const {
    if (ran == name) return true;
    if (known_.contains(ran) || !fits(ran, name)) return false;
    const std::size_t common = common_end(ran, name);
    const auto& others = known_by_name_.at(file_name_in(name));
    return std::ranges::none_of(
        others, [&](std::string_view other) { return common_end(ran, other) > common; });
  }

  std::optional<std::string> reaches_kernel(const ChangedFile& file, const CellReach& cell) const {
    if (!shader_runs_on(file.path, cell.device)) return std::nullopt;
    if (!cell.reach) return "what it runs was never recorded";
    if (!cell.reach->kernels) return "its kernels were never recorded";
    if (!cell.reach->kernels_named) return "its kernels have no names of their own";
    bool some = false;
    for (const std::string* name : {&file.path, &file.was}) {
      const std::string_view base = file_name_in(*name), stem = base.substr(0, base.find('.'));
      if (stem.empty()) continue;
      if (const auto found = first_with(*cell.reach->kernels, stem)) {
        return fmt::format("it runs the kernel {}", shown_path(*found));
      }
      some = some || first_with(kernels_, stem).has_value();
    }
    if (!some) return "no kernel is named after this shader";
    return std::nullopt;
  }

  static std::optional<std::string> first_with(const std::set<std::string>& kernels,
                                               std::string_view stem) {
    const auto found = kernels.lower_bound(std::string(stem));
    if (found == kernels.end() || !found->starts_with(stem)) return std::nullopt;
    return *found;
  }

  std::span<const CellReach> cells_;
  std::span<const ChangedFile> changed_;
  std::unordered_set<std::string_view> known_;
  Paths known_by_name_;
  std::vector<Paths> executed_;  // of each cell
  std::set<std::string> kernels_;
  DiffReach out_;
};

}  // namespace

Result<std::vector<ChangedFile>> parse_raw_diff(std::string_view text) {
  constexpr std::size_t k_most_changed = 1'000'000;
  const auto next = [&]() -> std::optional<std::string_view> {
    const std::size_t end = text.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end + 1);
    return word;
  };
  const auto wrong = [](std::string_view what) {
    return fail(Code::data, "not what git diff --raw -z prints: {}", what);
  };
  std::vector<ChangedFile> changed;
  while (!text.empty()) {
    const auto head = next();
    // ":100644 100644 1a2b3c4 5d6e7f8 R086"
    const std::vector<std::string> words = text::split(head.value_or(""), ' ');
    if (!head || words.size() != 5 || !words[0].starts_with(':') || words[4].empty()) {
      return wrong("no line of modes");
    }
    ChangedFile file;
    file.submodule = words[0] == ":160000" || words[1] == "160000";
    const char status = words[4].front();
    file.added = status == 'A' || status == 'C';
    const auto first = next();
    if (!first || first->empty()) return wrong("a change without a path");
    file.path = text::printable(*first);
    if (status == 'R' || status == 'C') {
      const auto second = next();
      if (!second || second->empty()) return wrong("a new name is missing");
      // What a copy was made from has not changed.
      if (status == 'R') file.was = std::move(file.path);
      file.path = text::printable(*second);
    }
    if (changed.size() >= k_most_changed) return wrong("more than 1000000 files");
    changed.push_back(std::move(file));
  }
  return changed;
}

DiffReach reach_of_diff(std::span<const CellReach> cells, std::span<const ChangedFile> changed,
                        std::span<const std::string> known) {
  return DiffMapper(cells, changed, known).map();
}

std::string shown_path(std::string_view path) {
  std::string shown = text::printable(path);
  std::ranges::replace_if(
      shown, [](char c) { return c == '\n' || c == '\t'; }, '?');
  return shown;
}

std::string words_of_none(const DiffReach& reach) {
  if (reach.none.empty()) return "";
  const std::span some = std::span(reach.none).first(std::min(reach.none.size(), k_most_named));
  const auto names = collect<std::string>(some, shown_path);
  std::string words = "changed files that no cell runs: " + text::join(names);
  if (reach.none.size() > names.size()) {
    words += fmt::format(" (+{} more)", reach.none.size() - names.size());
  }
  return words;
}

}  // namespace weir::profile
