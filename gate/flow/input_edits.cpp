// Finds files that the base's cells name and that a pull request edits.
#include "gate/flow/input_edits.hpp"

#include <filesystem>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/named_paths.hpp"
#include "gate/flow/rules.hpp"
#include "gate/flow/waivers.hpp"
#include "gate/source/attributes.hpp"
#include "gate/source/lfs.hpp"
#include "gate/sys/code_file.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

using source::Git;
using Kind = Git::TreeEntry::Kind;

// Files that are never a program, even if a checkout made all files executable: an interpreter or
// an installed engine may get them first.
constexpr std::string_view k_data_suffixes[] = {
    "bin",  "br",    "bz2", "cfg", "conf", "csv",  "dat",  "gbnf",    "gguf",        "gz",  "ini",
    "json", "jsonl", "lz4", "md",  "npy",  "npz",  "onnx", "parquet", "safetensors", "tar", "tgz",
    "toml", "tsv",   "txt", "wav", "xz",   "yaml", "yml",  "zip",     "zst"};
// Files of these names belong to a program as well.
constexpr std::string_view k_build_files[] = {
    "BUILD",          "CMakeLists.txt", "CMakePresets.json", "Cargo.lock",
    "Cargo.toml",     "Dockerfile",     "LICENSE",           "Makefile",
    "README.md",      "bun.lock",       "deno.json",         "go.mod",
    "go.sum",         "meson.build",    "package-lock.json", "package.json",
    "pnpm-lock.yaml", "poetry.lock",    "pyproject.toml",    "requirements.txt",
    "setup.cfg",      "tsconfig.json",  "uv.lock",           "yarn.lock"};

// Returns "py" for "bench.py"; "" for a name without a suffix, and for a version as in
// "python3.11".
std::string suffix_of(const std::string& path) {
  const std::string name = sys::file_name_of(path);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return "";
  std::string suffix = text::lower(name.substr(dot + 1));
  const bool is_version = std::ranges::all_of(suffix, [](char c) { return text::is_digit(c); });
  return is_version ? "" : suffix;
}

// Returns true for a text for people. A folder that a word happens to name may hold some.
bool is_documentation(const std::string& path) {
  constexpr std::string_view k_suffixes[] = {"md", "markdown", "rst", "adoc", "asciidoc"};
  constexpr std::string_view k_names[] = {
      "authors",      "changelog", "changes", "code_of_conduct", "codeowners",
      "contributing", "copying",   "history", "license",         "licence",
      "news",         "notice",    "readme",  "security"};
  return holds(k_suffixes, suffix_of(path)) || holds(k_names, text::lower(sys::file_name_of(path)));
}

// Returns true for a path like ".venv/bin/python3.11": what it runs is named later.
bool is_interpreter(const std::string& path) {
  constexpr std::string_view k_names[] = {"bash",  "bun",    "deno", "dotnet", "java",
                                          "julia", "lua",    "node", "perl",   "php",
                                          "pypy",  "python", "ruby", "sh"};
  const std::string name = sys::file_name_of(path);
  return holds(k_names, name.substr(0, name.find_last_not_of("0123456789.") + 1));
}

// Returns the folders above a path and the path itself, the top left out.
std::vector<std::string> steps_to(const std::string& path) {
  std::vector<std::string> steps;
  for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1))
    steps.push_back(path.substr(0, at));
  if (!path.empty()) steps.push_back(path);
  return steps;
}

// A path that a cell reads.
struct InputPath {
  std::string path{};  // may have wildcards
  bool takes_below = false;
  bool spares_code = false;  // the program may lie below
  bool is_bare = false;      // of a word without '/' and '.', which may be no path at all
  friend bool operator==(const InputPath&, const InputPath&) = default;
};

// Knows the files of the base's commit, and where its links lead.
class BaseFiles {
 public:
  static Result<BaseFiles> open(const Git& git, const std::string& commit) {
    constexpr std::size_t k_max_files = 1'000'000;
    WEIR_TRY(std::vector<Git::TreeEntry> entries, git.entries_below(commit, "", k_max_files));
    BaseFiles files(git);
    for (Git::TreeEntry& entry : entries) {
      for (std::string& step : steps_to(entry.path)) {
        if (step != entry.path) files.folders_.insert(std::move(step));
      }
      if (entry.kind == Kind::link) files.link_paths_.push_back(entry.path);
      std::string path = entry.path;
      files.entries_.emplace(std::move(path), std::move(entry));
    }
    std::ranges::sort(files.link_paths_);
    return files;
  }

  [[nodiscard]] bool is_folder(const std::string& path) const { return folders_.contains(path); }
  // Returns true for a file that may be a program's, by its name or its mode.
  [[nodiscard]] bool is_code(const std::string& path) const {
    const std::string suffix = suffix_of(path), name = sys::file_name_of(path);
    if (sys::is_code_suffix(suffix) || holds(k_build_files, name)) return true;
    const Git::TreeEntry* entry = look_up(entries_, path);
    return entry != nullptr && entry->is_executable && !holds(k_data_suffixes, suffix);
  }
  [[nodiscard]] const Git::TreeEntry* entry_at(const std::string& path) const {
    return look_up(entries_, path);
  }
  // Returns the submodule at the path or above it; null without one.
  [[nodiscard]] const Git::TreeEntry* submodule_of(const std::string& path) const {
    for (const std::string& step : steps_to(path)) {
      const Git::TreeEntry* entry = look_up(entries_, step);
      if (entry != nullptr && entry->kind == Kind::submodule) return entry;
    }
    return nullptr;
  }
  [[nodiscard]] bool has_submodule_below(const std::string& folder) const {
    const std::string beginning = folder + "/";
    for (auto entry = entries_.lower_bound(beginning);
         entry != entries_.end() && entry->first.starts_with(beginning); ++entry) {
      if (entry->second.kind == Kind::submodule) return true;
    }
    return false;
  }
  // Returns true for a file that Git LFS keeps, and for folders, which may hold one.
  [[nodiscard]] bool may_be_in_lfs(const std::string& path) const {
    const Git::TreeEntry* entry = entry_at(path);
    if (entry == nullptr || entry->kind != Kind::file) return is_folder(path);
    const auto text = git_->content(entry->object, source::k_max_lfs_pointer_bytes);
    return text && source::parse_lfs_pointer(*text);
  }
  enum class Content { nothing, folder, data, code };
  // A link is `nothing`: it may lead to what a build makes.
  [[nodiscard]] Content content_of(const std::string& path) const {
    const Git::TreeEntry* entry = look_up(entries_, path);
    const bool is_submodule = entry != nullptr && entry->kind == Kind::submodule;
    if (is_folder(path) || is_submodule) return Content::folder;
    const bool is_file = entry != nullptr && entry->kind == Kind::file;
    if (!is_file && !is_in_submodule(path)) return Content::nothing;
    if (is_code(path)) return Content::code;
    return is_file || !suffix_of(path).empty() ? Content::data : Content::nothing;
  }
  // Returns true if the commit has something at the path, or in a submodule on the way.
  [[nodiscard]] bool has(const std::string& path) const {
    return std::ranges::any_of(find(path), [&](const std::string& name) {
      return entries_.contains(name) || is_folder(name) || is_in_submodule(name);
    });
  }
  // Returns all names of a path: the path, and where links on the way lead. A path with wildcards
  // has those of all files, links and submodules that it stands for.
  [[nodiscard]] const std::vector<std::string>& find(const std::string& path) const {
    const auto [entry_of_path, is_new] = names_.try_emplace(path);
    std::vector<std::string>& names = entry_of_path->second;
    if (!is_new) return names;
    if (!has_wildcard(path)) {
      add_names(path, names);
      return names;
    }
    for (const std::string& pattern : patterns_of(path)) {
      if (!has_wildcard(pattern)) {
        add_names(pattern, names);
        continue;
      }
      const std::string beginning = pattern.substr(0, pattern.find_first_of(k_wildcards));
      for (auto entry = entries_.lower_bound(beginning);
           entry != entries_.end() && entry->first.starts_with(beginning); ++entry) {
        if (matches_pattern(pattern, entry->first)) add_names(entry->first, names);
      }
    }
    return names;
  }
  // Returns the path, and a path with wildcards as links on the way lead it elsewhere:
  // "in/*.json" is "real/*.json" if "in" leads to "real".
  [[nodiscard]] const std::vector<std::string>& patterns_of(const std::string& path) const {
    constexpr std::size_t k_max_patterns = 256;
    const auto [entry, is_new] = patterns_.try_emplace(path, std::vector{path});
    std::vector<std::string>& patterns = entry->second;
    if (!is_new || !has_wildcard(path) || link_paths_.empty()) return patterns;
    for (std::size_t i = 0; i < patterns.size() && patterns.size() < k_max_patterns; ++i) {
      const std::string pattern = patterns[i];
      for (std::size_t at = 0; at < pattern.size(); ++at) {
        const bool is_any = pattern[at] == k_anything;
        if (pattern[at] != '/' && !is_any) continue;
        const std::string head = pattern.substr(0, at + (is_any ? 1 : 0));
        const std::string rest =
            (is_any ? std::string("/") + k_anything : "/") + pattern.substr(at + 1);
        if (head.size() == 1 && head[0] == k_anything) continue;  // stands for the target, too
        for (const std::string& link : link_paths_) {
          if (!matches_pattern(head, link)) continue;
          const auto target = follow_link(link);
          const bool is_loop = !target || target->empty() || sys::is_within(link, *target);
          if (is_loop || holds(patterns, *target + rest)) continue;
          if (patterns.size() < k_max_patterns) patterns.push_back(*target + rest);
        }
      }
    }
    return patterns;
  }
  // Returns where links below an input lead, and links below those. Folders with the link in them
  // and targets outside of the repository are left out. `names`: of the input.
  [[nodiscard]] std::vector<std::string> linked_below(const InputPath& input,
                                                      const std::vector<std::string>& names) const {
    constexpr std::size_t k_max_targets = 4096;
    std::vector<std::string> targets, open = names;
    const auto add_targets = [&](const std::string& link) {
      std::vector<std::string> link_names;
      add_names(link, link_names);
      for (std::size_t i = 1; i < link_names.size(); ++i) {
        const std::string& name = link_names[i];
        const bool is_above = name.empty() || sys::is_within(link, name);
        const bool is_documented = is_documentation(name) && is_documentation(link);
        if (is_above || is_documented || holds(targets, name) || holds(names, name)) continue;
        targets.push_back(name);
        open.push_back(name);
      }
    };
    if (has_wildcard(input.path)) {
      for (const std::string& pattern : patterns_of(input.path)) {
        for (const std::string& link : link_paths_) {
          if (matches_pattern(pattern + '/' + k_anything, link)) add_targets(link);
        }
      }
    }
    while (!open.empty() && targets.size() < k_max_targets) {
      const std::string beginning = open.back().empty() ? "" : open.back() + "/";
      open.pop_back();
      for (auto link = std::ranges::lower_bound(link_paths_, beginning);
           link != link_paths_.end() && link->starts_with(beginning); ++link)
        add_targets(*link);
    }
    return targets;
  }
  // Returns all files that an input may mean, and all names of links among them.
  [[nodiscard]] std::vector<std::string> files_of(const InputPath& input,
                                                  const std::vector<std::string>& names) const {
    std::vector<std::string> files = names;
    const std::string below = input.path + '/' + k_anything;
    const auto add = [&](const Git::TreeEntry& entry) {
      files.push_back(entry.path);
      if (entry.kind == Kind::link) add_names(entry.path, files);
    };
    for (const std::string& name : names) {
      for (auto entry = entries_.lower_bound(name);
           entry != entries_.end() && entry->first.starts_with(name); ++entry)
        add(entry->second);
    }
    for (const auto& [path, entry] : entries_) {
      if (!has_wildcard(input.path)) break;
      if (matches_pattern(input.path, path) || matches_pattern(below, path)) add(entry);
    }
    return files;
  }
  // Fails if a link could not be read.
  [[nodiscard]] const Result<void>& check_links() const { return links_; }

 private:
  explicit BaseFiles(const Git& git) : git_(&git) {}

  void add_names(std::string path, std::vector<std::string>& names) const {
    constexpr int k_max_links = 8;  // one after the other
    names.push_back(path);
    for (int i = 0; i < k_max_links; ++i) {
      auto target = follow_link(path);
      if (!target || holds(names, *target)) return;
      path = *std::move(target);
      names.push_back(path);
    }
  }
  // Returns where the first link on the way leads; nothing without one, or outside of the tree.
  [[nodiscard]] std::optional<std::string> follow_link(const std::string& path) const {
    for (const std::string& step : steps_to(path)) {
      const Git::TreeEntry* entry = look_up(entries_, step);
      if (entry == nullptr || entry->kind != Kind::link) continue;
      const std::string& text = link_text(*entry);
      if (text.empty()) return std::nullopt;
      if (text.starts_with('/'))
        return sys::relative_path(sys::absolute(text + path.substr(step.size())), git_->top());
      const std::string folder = sys::folder_of(step);
      const std::string target =
          (folder.empty() ? "" : folder + "/") + text + path.substr(step.size());
      std::string normal = std::filesystem::path(target).lexically_normal().string();
      while (normal.ends_with('/')) normal.pop_back();
      if (normal == ".." || normal.starts_with("../")) return std::nullopt;
      return normal == "." ? std::string() : normal;
    }
    return std::nullopt;
  }
  [[nodiscard]] const std::string& link_text(const Git::TreeEntry& link) const {
    constexpr std::uint64_t k_max_link_bytes = 4096;
    const auto [text, is_new] = link_texts_.try_emplace(link.path);
    if (!is_new) return text->second;
    auto content = git_->content(link.object, k_max_link_bytes);
    if (content) {
      text->second = *std::move(content);
    } else {
      links_ = tl::unexpected(content.error());
    }
    return text->second;
  }
  [[nodiscard]] bool is_in_submodule(const std::string& path) const {
    return submodule_of(path) != nullptr;
  }

  const Git* git_;
  std::map<std::string, Git::TreeEntry> entries_;
  std::set<std::string> folders_;
  std::vector<std::string> link_paths_;  // sorted
  mutable std::map<std::string, std::string> link_texts_;
  mutable std::map<std::string, std::vector<std::string>> names_, patterns_;
  mutable Result<void> links_;
};

// The inputs of a cell, and all names of its program; no name if it is not in the repository.
struct CellInputs {
  std::vector<InputPath> paths;
  std::vector<std::string> program;
  std::string text;  // all words, without quotes
};

// Returns true if `text` contains `path` as a name, of which a default or a suffix may be a part:
// "a.json" is in "${F:-a.json}" and in "a.json.bak", not in "ba.json" or "a.jsonl", nor below
// another folder.
bool contains_name(std::string_view text, std::string_view path) {
  if (path.find_first_of("/.") == std::string_view::npos) return false;
  const auto is_of_path = [](char c) {
    return text::is_alphanumeric(c) || std::string_view("_-./").find(c) != std::string_view::npos;
  };
  for (std::size_t at = text.find(path); at != std::string_view::npos;
       at = text.find(path, at + 1)) {
    const std::size_t end = at + path.size();
    std::string_view before = text.substr(0, at);
    if (before.ends_with("./")) before.remove_suffix(2);
    const bool begins = before.empty() || !is_of_path(before.back());
    const bool ends = end == text.size() || !(text::is_alphanumeric(text[end]) || text[end] == '_');
    if (begins && ends) return true;
  }
  return false;
}

// Returns the pattern of all parts of a model that one of them names, since engines open the others
// by themselves: "m-00001-of-00002.gguf". So does an index of parts ("m.safetensors.index.json").
// Nothing for other names.
std::optional<std::string> pattern_of_parts(const std::string& path) {
  constexpr std::string_view k_of = "-of-", k_decimal_digits = "0123456789",
                             k_index = ".index.json";
  if (path.ends_with(k_index)) {
    const std::string whole = path.substr(0, path.size() - k_index.size());
    const std::size_t suffix = std::min(whole.rfind('.'), whole.size());
    return fmt::format("{}-{}{}{}{}", whole.substr(0, suffix), k_digits, k_of, k_digits,
                       whole.substr(suffix));
  }
  const std::size_t of = path.rfind(k_of);
  if (of == std::string::npos || of == 0 || has_wildcard(path)) return std::nullopt;
  const std::size_t number = path.find_last_not_of(k_decimal_digits, of - 1) + 1;  // npos + 1 is 0
  const std::size_t count = of + k_of.size();
  const bool has_numbers = number < of && count < path.size() && text::is_digit(path[count]);
  if (!has_numbers) return std::nullopt;
  return path.substr(0, number) + k_digits + path.substr(of);
}

// Tells the program of each cell from its inputs.
class InputReader {
 public:
  InputReader(const BaseFiles& base, const NamedPlaces& home) : base_(base), home_(home) {}

  [[nodiscard]] CellInputs read(const config::Cell& cell) const {
    const std::vector<NamedWord> words = named_parts(cell);
    NamedPlaces places = home_;
    std::set<std::string> whole_inputs;
    for (const NamedWord& word : words) {
      for (const std::string& path : home_.paths_of(word)) {
        if (word.is_whole_input) whole_inputs.insert(path);
      }
      if (word.is_in_command && !word.is_whole_input) add_starts(places.paths_of(word), places);
    }
    CellInputs inputs;
    inputs.text = named_text(cell);
    inputs.program = find_module(cell);
    std::vector<std::string> program_paths;
    for (const NamedWord& word : words) {
      const std::vector<std::string> paths = (word.is_whole_input ? home_ : places).paths_of(word);
      const bool is_input = std::ranges::any_of(
          paths, [&](const std::string& path) { return whole_inputs.contains(path); });
      if (inputs.program.empty() && word.is_in_command && !is_input) {
        inputs.program = program_in(word, paths);
        if (!inputs.program.empty()) program_paths = paths;
      }
      for (const std::string& path : paths) {
        if (!is_input && home_.is_home(path)) continue;
        const bool is_before_program = !is_input && inputs.program.empty();
        InputPath input{path, !word.holds_code, is_before_program || !word.is_in_command,
                        !is_input && word.text.find_first_of("/.") == std::string::npos};
        if (!holds(inputs.paths, input)) inputs.paths.push_back(std::move(input));
      }
    }
    std::erase_if(inputs.paths, [&](const InputPath& input) {
      if (whole_inputs.contains(input.path)) return false;
      return holds(program_paths, input.path) ||
             std::ranges::any_of(inputs.program, [&](const std::string& name) {
               return sys::is_within(name, input.path);
             });
    });
    return inputs;
  }

 private:
  // Returns the files of the Python module that a command runs by -m; none without one here.
  [[nodiscard]] std::vector<std::string> find_module(const config::Cell& cell) const {
    std::vector<std::string> files;
    for (std::size_t i = 1; i + 1 < cell.command.size(); ++i) {
      if (cell.command[i] != "-m" || !is_interpreter(cell.command[i - 1])) continue;
      std::string module = cell.command[i + 1];
      std::ranges::replace(module, '.', '/');
      for (const char* suffix : {".py", "/__main__.py"}) {
        for (const std::string& path : home_.paths_of({.text = module + suffix})) {
          if (base_.has(path)) files.push_back(path);
        }
      }
    }
    return files;
  }
  void add_starts(const std::vector<std::string>& paths, NamedPlaces& places) const {
    for (const std::string& path : paths) {
      for (const std::string& name : base_.find(path)) {
        if (name.empty() || base_.is_folder(name)) places.add_start(name);
      }
    }
  }

  // Returns all names of the program that a word may mean; none if it is no program.
  [[nodiscard]] std::vector<std::string> program_in(const NamedWord& word,
                                                    const std::vector<std::string>& paths) const {
    using Content = BaseFiles::Content;
    std::vector<std::string> program;
    bool is_known = false;
    for (const std::string& path : paths) {
      if (has_wildcard(sys::file_name_of(path))) return {};
      for (const std::string& name : base_.find(path)) {
        const Content content = base_.content_of(name);
        is_known = is_known || content != Content::nothing;
        const bool is_run = word.is_program && content == Content::data;
        if (content == Content::code || is_run) program.push_back(name);
      }
    }
    if (is_known || !word.may_be_built || is_interpreter(word.text)) return program;
    const std::string suffix = suffix_of(word.text);
    const bool is_named_so = word.is_program || suffix.empty() || sys::is_code_suffix(suffix);
    return is_named_so ? paths : program;
  }

  const BaseFiles& base_;
  const NamedPlaces& home_;
};

// The tree that is judged, and the way to its files.
struct JudgedTree {
  const Git& git;
  const sys::Files& files;
  std::string place;          // the configuration's folder, from the top
  std::string config_path;    // from the top
  bool is_work_tree = false;  // else a commit

  [[nodiscard]] std::string path_of(const std::string& path) const {
    return sys::join_path(git.top(), path);
  }
};

// Matches the inputs of cells with what a pull request changed.
class InputEdits {
 public:
  InputEdits(const BaseFiles& base, std::vector<Git::FileChange> changes, const JudgedTree& judged,
             const config::Digest& digest)
      : base_(base), judged_(judged), digest_(digest) {
    for (Git::FileChange& change : changes) changes_.emplace(change.path, std::move(change));
  }

  // Returns the edits of a cell with these inputs.
  [[nodiscard]] config::EntryEdit edit_of(const CellInputs& inputs) {
    config::EntryEdit edit;
    std::vector<InputPath> paths = inputs.paths;
    // Words may also contain a name in a way that named_parts() does not read.
    for (const auto& [path, change] : changes_) {
      const std::string inner = sys::relative_path(path, judged_.place).value_or(path);
      const bool is_named = contains_name(inputs.text, path) || contains_name(inputs.text, inner);
      if (is_named && !base_.is_code(path) && !holds(inputs.program, path))
        paths.push_back({.path = path});
    }
    for (const InputPath& input : inputs.paths) {
      if (auto parts = pattern_of_parts(input.path)) paths.push_back({.path = *std::move(parts)});
    }
    for (const InputPath& input : paths) {
      const config::EntryEdit& own = edit_of_input(input, inputs.program);
      for (const config::KeyDifference& difference : own.differences) {
        if (holds(edit.differences, difference)) continue;
        edit.differences.push_back(difference);
        edit.hash = digest_(edit.hash + own.hash);
      }
    }
    return edit;
  }

 private:
  using Matches = std::map<std::string, const Git::FileChange*>;  // by path

  // Returns the edit of one input, with all its names.
  const config::EntryEdit& edit_of_input(const InputPath& input,
                                         const std::vector<std::string>& program) {
    const auto [entry, is_new] = edits_.try_emplace(
        std::tuple(input.path, input.takes_below, input.spares_code, input.is_bare, program));
    config::EntryEdit& edit = entry->second;
    if (!is_new) return edit;
    Matches matches;
    std::vector<std::string> linked;
    const std::vector<std::string>& names = base_.find(input.path);
    for (const std::string& name : names) {
      if (judged_.is_work_tree) look_into_work_tree(name, program);
      add_exact(name, program, matches);
      if (input.takes_below) add_below(name, matches);
      if (input.takes_below) add_continued(name, input.is_bare, matches);
    }
    if (input.takes_below) {
      for (const std::string& target : base_.linked_below(input, names)) {
        const bool holds_program = std::ranges::any_of(
            program, [&](const std::string& name) { return sys::is_within(name, target); });
        if (holds_program) continue;
        if (judged_.is_work_tree) look_into_work_tree(target, program);
        add_exact(target, program, matches);
        add_below(target, matches);
        linked.push_back(target);
      }
    }
    if (has_wildcard(input.path)) add_pattern(input, matches);
    std::erase_if(matches, [&](const auto& match) {
      const auto& [path, change] = match;
      // By a word: itself, or a link or submodule on the way.
      const bool is_named =
          (has_wildcard(input.path) && matches_pattern(input.path, path)) || holds(linked, path) ||
          std::ranges::any_of(names, [&](const auto& name) { return sys::is_within(name, path); });
      if (!is_named && is_documentation(path)) return true;
      if (input.spares_code && path != input.path && base_.is_code(path)) return true;
      if (!is_named && is_attributes(path) &&
          !changes_contents(*change, base_.files_of(input, names)))
        return true;
      return std::ranges::any_of(program, [&](const std::string& name) {
        // A submodule with the program in it is a part of the program.
        return change->is_submodule ? sys::is_within(name, path) : name == path;
      });
    });
    if (matches.empty()) return edit;
    std::string text;
    for (const auto& [path, change] : matches)
      text += path + '\0' + change->before + '\0' + change->after + '\n';
    const Git::FileChange& first = *matches.begin()->second;
    std::string shown = input.path;
    std::ranges::replace_if(
        shown, [](char c) { return holds(k_wildcards, c); }, '*');
    if (matches.size() == 1) shown = first.path;
    const auto noted = std::ranges::find_if(
        matches, [&](const auto& match) { return notes_.contains(match.first); });
    if (noted != matches.end()) shown = noted->first;
    edit.differences.push_back({"file " + text::printable(shown), "", ""});
    if (noted != matches.end()) {
      edit.differences.front().key += " (" + notes_.at(noted->first) + ")";
    } else if (matches.size() == 1) {
      edit.differences.front().from = text::short_commit(first.before);
      edit.differences.front().to = text::short_commit(first.after);
    }
    edit.hash = digest_(text);
    return edit;
  }

  // Adds changes of the path, of links and submodules above it, and of settings by which a checkout
  // may differ from its commit.
  void add_exact(const std::string& path, const std::vector<std::string>& program,
                 Matches& matches) const {
    const std::vector<std::string> steps = steps_to(path);
    std::vector<std::string> wanted = steps;
    if (base_.has(path)) {
      wanted.emplace_back(".gitattributes");
      for (const std::string& step : steps) wanted.push_back(step + "/.gitattributes");
    }
    if (changes_.contains(".lfsconfig") && base_.may_be_in_lfs(path))
      wanted.emplace_back(".lfsconfig");
    if (submodule_of_input(path, program) != nullptr || base_.has_submodule_below(path))
      wanted.emplace_back(".gitmodules");
    for (const std::string& step : wanted) {
      const Git::FileChange* change = look_up(changes_, step);
      if (change != nullptr) matches[step] = change;
    }
  }
  void add_below(const std::string& path, Matches& matches) const {
    const std::string folder = path.empty() ? "" : path + "/";
    for (auto at = changes_.lower_bound(folder);
         at != changes_.end() && at->first.starts_with(folder); ++at)
      matches[at->first] = &at->second;
  }
  // Adds data files of which the path is only the beginning: "w" for "w.json" and "w_2.json", which
  // a program may put together. A bare word has nothing but digits behind it: "json" in "-o json"
  // is not the beginning of "json_schema.json".
  void add_continued(const std::string& path, bool is_bare, Matches& matches) const {
    const bool is_whole = path.empty() || base_.entry_at(path) != nullptr || base_.is_folder(path);
    if (is_whole) return;
    for (auto at = changes_.lower_bound(path); at != changes_.end() && at->first.starts_with(path);
         ++at) {
      const std::string rest = at->first.substr(path.size());
      const bool is_continued =
          is_bare ? continues_by_number(rest) : rest.starts_with('.') || rest.starts_with('_');
      if (is_continued && is_data(at->first) && rest.find('/') == std::string::npos)
        matches[at->first] = &at->second;
    }
  }
  [[nodiscard]] bool is_data(const std::string& path) const {
    return holds(k_data_suffixes, suffix_of(path)) && !base_.is_code(path) &&
           path != judged_.config_path;
  }
  // Returns true for ".json", "_2.json" and "-12".
  [[nodiscard]] static bool continues_by_number(std::string_view rest) {
    if (rest.starts_with('-') || rest.starts_with('_')) {
      const std::size_t digits = rest.find_first_not_of("0123456789", 1);
      if (digits == 1) return false;
      rest = rest.substr(std::min(digits, rest.size()));
    }
    return rest.empty() || rest.starts_with('.');
  }
  // Adds changes that a path with wildcards stands for. One that no file of the base has may be the
  // beginning of names: "w{tokens}" is "w8.json" and "w8_a.json".
  void add_pattern(const InputPath& input, Matches& matches) const {
    const bool is_beginning = input.takes_below && base_.find(input.path).empty();
    for (const std::string& pattern : base_.patterns_of(input.path)) {
      const std::string below = pattern + '/' + k_anything;
      const std::string suffixed = pattern + '.' + k_name_part;
      const std::string continued = input.is_bare ? suffixed : pattern + '_' + k_name_part;
      for (const auto& [path, change] : changes_) {
        const bool is_match =
            matches_pattern(pattern, path) || (input.takes_below && matches_pattern(below, path));
        const bool is_continued =
            is_beginning && is_data(path) &&
            (matches_pattern(suffixed, path) || matches_pattern(continued, path));
        if (is_match || is_continued) matches[path] = &change;
      }
    }
  }

  // Returns the submodule that holds an input; null without one, and for the program's own.
  [[nodiscard]] const Git::TreeEntry* submodule_of_input(
      const std::string& path, const std::vector<std::string>& program) const {
    const Git::TreeEntry* submodule = base_.submodule_of(path);
    const bool is_of_program =
        submodule != nullptr && std::ranges::any_of(program, [&](const std::string& name) {
          return sys::is_within(name, submodule->path);
        });
    return is_of_program ? nullptr : submodule;
  }
  // Adds to the changes what the superproject's objects do not show: of a submodule, and a pointer
  // of Git LFS in place of the content.
  void look_into_work_tree(const std::string& path, const std::vector<std::string>& program) {
    if (const auto* submodule = submodule_of_input(path, program)) add_submodule(*submodule);
    const bool is_new = base_.has(path) && read_files_.insert(path).second;
    if (!is_new || !source::is_lfs_pointer(judged_.files, judged_.path_of(path))) return;
    changes_.try_emplace(path, Git::FileChange{path, "", "pointer"});
    notes_[path] = "a Git LFS pointer: git lfs pull fetches it";
  }
  void add_submodule(const Git::TreeEntry& submodule) {
    const std::string& path = submodule.path;
    if (!opened_submodules_.insert(path).second || changes_.contains(path)) return;
    auto changes = judged_.git.changes_in_submodule(path, submodule.object);
    if (changes) {
      for (Git::FileChange& change : *changes) changes_.emplace(change.path, std::move(change));
      return;
    }
    changes_.emplace(path, Git::FileChange{path, submodule.object, "", true});
    notes_[path] = "a submodule that is not checked out at " +
                   text::short_commit(submodule.object) + ": git submodule update --init";
  }

  [[nodiscard]] static bool is_attributes(const std::string& path) {
    return sys::file_name_of(path) == ".gitattributes";
  }
  // Returns true if an edit of .gitattributes can change what a checkout of these files contains,
  // or cannot be read.
  [[nodiscard]] bool changes_contents(const Git::FileChange& attributes,
                                      const std::vector<std::string>& files) const {
    constexpr std::uint64_t k_max_attributes_bytes = std::uint64_t{1} << 20;
    const auto before = attributes.before.empty()
                            ? Result<std::string>("")
                            : judged_.git.content(attributes.before, k_max_attributes_bytes);
    Result<std::string> after("");
    const std::string file = judged_.path_of(attributes.path);
    if (judged_.is_work_tree && !attributes.after.empty()) {
      after = judged_.files.read(file, k_max_attributes_bytes);
    } else if (!attributes.after.empty()) {
      after = judged_.git.content(attributes.after, k_max_attributes_bytes);
    }
    if (!before || !after || attributes.after == "link") return true;
    const std::size_t slash = attributes.path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : attributes.path.substr(0, slash);
    const auto lines_of = [&](const std::string& text) {
      std::vector<std::string> lines = source::content_attributes(text);
      std::erase_if(lines, [&](const std::string& line) {
        return !source::may_concern(line, folder, files);
      });
      return lines;
    };
    return lines_of(*before) != lines_of(*after);
  }

  const BaseFiles& base_;
  const JudgedTree& judged_;
  const config::Digest& digest_;
  std::map<std::string, Git::FileChange> changes_;
  std::map<std::string, std::string> notes_;  // by path: why it is not the base's
  std::set<std::string> read_files_, opened_submodules_;
  std::map<std::tuple<std::string, bool, bool, bool, std::vector<std::string>>, config::EntryEdit>
      edits_;
};

// Lists the inputs of a cell that its base's commit has.
std::vector<std::string> inputs_in_base(const CellInputs& inputs, const BaseFiles& base) {
  std::vector<std::string> names;
  for (const InputPath& input : inputs.paths) {
    std::string name = input.path;
    if (has_wildcard(name)) name = base.find(name).empty() ? "" : base.find(name).front();
    if (base.has(name) && !name.empty() && !holds(names, name)) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

// Returns the commit whose files are judged: HEAD's work tree, or the commit that a run by others
// claims, if it can be verified.
Result<JudgedCommit> find_judged_commit(const Job& job, const Git& git) {
  const std::optional<std::string>& claimed = job.selection.claimed_commit;
  if (!claimed) return JudgedCommit{};
  const auto head = event_head(job);
  if (!head) return JudgedCommit{"", text::printable(text::first_line(head.error().message))};
  const std::string& wanted = head->empty() ? *claimed : *head;
  if (wanted.empty()) return JudgedCommit{"", "the run is of no commit, or of a changed one"};
  if (!job.selection.claimed_uncommitted)
    return JudgedCommit{"", "the run is of a changed checkout and does not list its changes"};
  std::optional<std::string> commit;
  if (source::is_full_id(wanted)) WEIR_TRY_SET(commit, git.resolve_commit(wanted));
  // A job that measured GitHub's merge commit has no other one checked out.
  if (!commit) {
    WEIR_TRY(const std::optional<std::string> own, git.resolve_commit("HEAD"));
    if (own == *claimed) commit = own;
  }
  if (commit) return JudgedCommit{commit};
  return JudgedCommit{"", fmt::format("commit {0} is not here: git fetch origin {0}",
                                      text::printable(wanted.substr(0, 64)))};
}

// Lists descriptions of simulated GPUs beside the configuration that git does not track. One
// precedes the description that weir brings.
static Result<std::vector<std::string>> find_untracked_descriptions(const Job& job,
                                                                    const Git& git) {
  const std::string folder = sys::join_path(job.folder(), "configs/devices");
  if (job.files().kind(folder) != sys::Kind::folder) return std::vector<std::string>{};
  WEIR_TRY(std::vector<std::string> files, job.files().list(folder));
  WEIR_TRY(const std::vector<std::string> tracked, git.tracked_files());
  for (std::string& file : files) {
    const std::string path = sys::join_path(folder, file);
    file = sys::relative_path(sys::real_path(path).value_or(path), git.top()).value_or(path);
  }
  std::erase_if(files, [&](const std::string& file) {
    return !file.ends_with(".json") || holds(tracked, file);
  });
  return files;
}

Result<std::vector<std::string>> find_uncommitted(const Job& job, const Git& git) {
  WEIR_TRY(std::vector<std::string> files, find_untracked_descriptions(job, git));
  WEIR_TRY(const std::optional<std::string> head, git.resolve_commit("HEAD"));
  if (!head) return files;
  WEIR_TRY(const std::vector<Git::FileChange> changes, git.changes_since(*head, std::nullopt));
  for (const Git::FileChange& change : changes) files.push_back(change.path);
  return files;
}

// Finds, for each cell of the base, edits of files that it reads, against the commit that the rules
// come from.
Result<config::FileEdits> find_input_edits(const Job& job, const config::Matrix& base_cells,
                                           const config::Digest& digest) {
  config::FileEdits edits;
  const Rules& rules = *job.rules;
  if (!rules.used.from || !rules.repository) return edits;
  const Git& git = rules.repository->git();
  std::string named_top = job.folder();
  for (std::size_t i = 0; i < steps_to(rules.config_place).size(); ++i)
    named_top = sys::folder_of(named_top);
  const NamedPlaces home(rules.config_place, {named_top, git.top()});
  WEIR_TRY(const BaseFiles base, BaseFiles::open(git, rules.used.from->commit));
  WEIR_TRY(const JudgedCommit judged, find_judged_commit(job, git));
  std::vector<Git::FileChange> changes;
  if (judged.problem.empty())
    WEIR_TRY_SET(changes, git.changes_since(rules.used.from->commit, judged.commit));
  std::vector<std::string> uncommitted =
      job.selection.claimed_uncommitted.value_or(std::vector<std::string>{});
  if (!judged.commit) WEIR_TRY_SET(uncommitted, find_untracked_descriptions(job, git));
  for (std::string& file : uncommitted) changes.push_back({std::move(file), "", "uncommitted"});
  const InputReader reader(base, home);
  const JudgedTree tree{git, job.files(), rules.config_place,
                        sys::join_path(rules.config_place, sys::file_name_of(job.selection.config)),
                        !judged.commit && judged.problem.empty()};
  InputEdits input_edits(base, std::move(changes), tree, digest);
  for (const config::Cell& cell : base_cells.cells) {
    const CellInputs inputs = reader.read(cell);
    config::EntryEdit edit;
    if (judged.problem.empty()) {
      edit = input_edits.edit_of(inputs);
    } else if (const auto names = inputs_in_base(inputs, base); !names.empty()) {
      edit.differences.push_back(
          {fmt::format("perhaps file {} ({})", text::printable(verdict::list_some(names)),
                       judged.problem),
           "", ""});
      edit.hash = digest(edit.differences.front().key);
    }
    WEIR_CHECK(base.check_links());
    if (edit.differences.empty()) continue;
    if (cell.is_private) edit.differences = {{"a file that it reads", "", ""}};
    edits.emplace(cell.key.str(), std::move(edit));
  }
  return edits;
}

}  // namespace weir::flow
