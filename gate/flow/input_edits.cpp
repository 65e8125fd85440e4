// Finds files that the base's cells name and that a pull request edits.
#include "gate/flow/input_edits.hpp"

#include <filesystem>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/config/word_paths.hpp"
#include "gate/flow/allowances.hpp"
#include "gate/flow/rules.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

using source::Git;

constexpr char k_digits = '\1';      // stands for the digits of a placeholder in a path
constexpr char k_other_text = '\2';  // stands for a text that is no path
constexpr std::uint64_t k_longest_link = 4096;
constexpr std::size_t k_longest_path = 1024;
// Files that are never a program: an interpreter or an installed engine may get them first.
constexpr std::string_view k_data_suffixes[] = {".cfg",         ".conf", ".csv",   ".gbnf", ".gguf",
                                                ".ini",         ".json", ".jsonl", ".md",   ".onnx",
                                                ".safetensors", ".toml", ".txt",   ".yaml", ".yml"};

// A path of a cell's command, from the top of the repository; "" is the top itself.
struct NamedPath {
  std::string path{};
  bool may_be_program = false;  // written like the path of a program: that may be a build's
  bool is_in_command = false;   // not in an environment, where folders hold the program's parts
  bool is_whole_input = false;  // a model or a prompt: never the program
};

// The inputs of a cell, and all names of its program; no name if it is not in the repository.
struct CellInputs {
  std::vector<NamedPath> paths;
  std::vector<std::string> program;
};

// Returns true if `path` is `outer` or lies below it.
bool is_within(std::string_view path, std::string_view outer) {
  if (outer.empty()) return true;
  if (!path.starts_with(outer)) return false;
  return path.size() == outer.size() || path[outer.size()] == '/';
}

// Returns how much of `path` the pattern takes, which may hold k_digits; nothing if it does not
// match.
std::optional<std::size_t> match_beginning(std::string_view pattern, std::string_view path) {
  std::size_t at = 0;
  for (const char c : pattern) {
    const std::size_t begin = at;
    if (c == k_digits) {
      while (at < path.size() && path[at] >= '0' && path[at] <= '9') ++at;
    } else if (at < path.size() && path[at] == c) {
      ++at;
    }
    if (at == begin) return std::nullopt;
  }
  return at;
}

// Returns the folders above a path and the path itself, the top left out.
std::vector<std::string> steps_to(const std::string& path) {
  std::vector<std::string> steps;
  for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1))
    steps.push_back(path.substr(0, at));
  if (!path.empty()) steps.push_back(path);
  return steps;
}

// Lists the paths that cells name.
class PathReader {
 public:
  // `place`: the configuration's folder from the top, `roots` all names of the top.
  PathReader(std::string place, std::vector<std::string> roots)
      : place_(std::move(place)), roots_(std::move(roots)) {}

  [[nodiscard]] std::vector<NamedPath> read(const config::Cell& cell) const {
    std::vector<NamedPath> paths;
    for (const auto& file : {std::optional(cell.model_path), cell.prompt_file, cell.workload}) {
      if (file && !file->empty())
        add(*file, {.is_in_command = true, .is_whole_input = true}, paths);
    }
    const bool runs_here = cell.engine == nullptr || !cell.engine->container;
    for (std::size_t i = 0; i < cell.command.size(); ++i) {
      const bool is_program = i == 0 && cell.command[i].find('/') != std::string::npos;
      read_word(fill(cell.command[i], cell), is_program, runs_here, paths);
    }
    for (const std::string& word : cell.counted_run_args)
      read_word(fill(word, cell), false, false, paths);
    for (const config::Environment* environment : {&cell.env, &cell.counted_run_env}) {
      for (const auto& [name, value] : *environment) add_parts(fill(value, cell), {}, paths);
    }
    return paths;
  }

 private:
  // Fills in the files of a cell, and marks the other placeholders.
  static std::string fill(const std::string& word, const config::Cell& cell) {
    return config::substitute(word, [&](std::string_view name) -> std::string {
      if (name == "model") return cell.model_path;
      if (name == "prompt_file") return cell.prompt_file.value_or("");
      const bool is_text =
          name == "prompt" || name == "out" || name == "probe_dir" || name == "args";
      return {is_text ? k_other_text : k_digits};
    });
  }

  // Reads a word of the command. Programs that a build makes are in no commit, so a token that is
  // written like a path may be one.
  void read_word(const std::string& word, bool is_program, bool guesses,
                 std::vector<NamedPath>& paths) const {
    add(word, {.may_be_program = is_program, .is_in_command = true}, paths);
    std::string spaced = word;
    std::ranges::replace_if(
        spaced, [](char c) { return c == '\t' || c == '\n'; }, ' ');
    for (const std::string& token : text::split(spaced, ' ')) {
      const bool is_path = token.find('/') != std::string::npos && !token.starts_with('-') &&
                           token.find_first_of("=:") == std::string::npos;
      add_parts(token, {.may_be_program = guesses && is_path, .is_in_command = true}, paths);
    }
  }

  void add_parts(const std::string& word, const NamedPath& like,
                 std::vector<NamedPath>& paths) const {
    (void)config::replace_paths(word, [&](const std::string& part) {
      add(part, like, paths);
      return std::optional<std::string>();
    });
  }

  // Adds the path that `part` means, if it lies in the repository.
  void add(const std::string& part, NamedPath like, std::vector<NamedPath>& paths) const {
    const bool is_text = part.find(k_other_text) != std::string::npos;
    if (part.empty() || part.size() > k_longest_path || is_text) return;
    std::optional<std::string> inner;
    if (part.starts_with('/')) {
      for (const std::string& root : roots_) {
        if (!inner) inner = sys::relative_path(sys::absolute(part), root);
      }
    } else if (!leaves_repository(part)) {
      inner = sys::relative_path(sys::absolute("/" + place_ + "/" + part), "/");
    }
    if (!inner) return;
    like.path = *std::move(inner);
    paths.push_back(std::move(like));
  }

  // Returns true if a relative path leads above the top: absolute() would stop there.
  [[nodiscard]] bool leaves_repository(const std::string& part) const {
    const std::string normal =
        std::filesystem::path(sys::join_path(place_.empty() ? "." : place_, part))
            .lexically_normal()
            .string();
    return normal == ".." || normal.starts_with("../");
  }

  std::string place_;
  std::vector<std::string> roots_;
};

// Knows the files of the base's commit at the paths that cells name, and where its links lead.
class BaseFiles {
 public:
  static Result<BaseFiles> open(const Git& git, const std::string& commit,
                                std::set<std::string> paths) {
    BaseFiles files;
    constexpr int k_max_links = 8;  // one after the other
    for (int i = 0; i < k_max_links && !paths.empty(); ++i)
      WEIR_SET(paths, files.add(git, commit, paths));
    return files;
  }

  // Returns all names of a path: those that links on the way lead to, too.
  [[nodiscard]] std::vector<std::string> names_of(const std::string& path) const {
    std::vector<std::string> names{path};
    for (const std::string* target = look_up(targets_, path); target != nullptr;
         target = look_up(targets_, names.back())) {
      if (holds(names, *target)) break;
      names.push_back(*target);
    }
    return names;
  }
  // Returns true if the commit has something at the path, or in a submodule on the way.
  [[nodiscard]] bool has(const std::string& path) const {
    if (path.empty()) return true;
    return std::ranges::any_of(names_of(path), [&](const std::string& name) {
      const std::vector<std::string> steps = steps_to(name);
      return kinds_.contains(name) || std::ranges::any_of(steps, [&](const std::string& step) {
               const Git::TreeEntry::Kind* kind = look_up(kinds_, step);
               return kind != nullptr && *kind == Git::TreeEntry::Kind::submodule;
             });
    });
  }

 private:
  // Reads the entries on the way to `paths`; returns where their links lead.
  Result<std::set<std::string>> add(const Git& git, const std::string& commit,
                                    const std::set<std::string>& paths) {
    std::set<std::string> steps, next;
    for (const std::string& path : paths) {
      for (const std::string& step : steps_to(path)) {
        if (!kinds_.contains(step)) steps.insert(step);
      }
    }
    const std::vector<std::string> questions(steps.begin(), steps.end());
    constexpr std::size_t k_paths_per_call = 500;  // a command line has room for so many
    for (std::size_t begin = 0; begin < questions.size(); begin += k_paths_per_call) {
      const auto batch =
          std::span(questions).subspan(begin, std::min(k_paths_per_call, questions.size() - begin));
      WEIR_TRY(const auto entries, git.entries(commit, {batch.begin(), batch.end()}));
      for (const Git::TreeEntry& entry : entries) {
        kinds_[entry.path] = entry.kind;
        if (entry.kind != Git::TreeEntry::Kind::link) continue;
        WEIR_SET(link_texts_[entry.path], git.content(entry.object, k_longest_link));
      }
    }
    for (const std::string& path : paths) {
      for (const std::string& step : steps_to(path)) {
        const std::string* text = look_up(link_texts_, step);
        if (text == nullptr) continue;
        if (text->starts_with('/')) break;
        const std::string target =
            std::filesystem::path(sys::folder_of(step) + "/" + *text + path.substr(step.size()))
                .lexically_normal()
                .string();
        if (!target.starts_with("..") && target != path) {
          targets_[path] = target;
          next.insert(target);
        }
        break;
      }
    }
    return next;
  }

  std::map<std::string, Git::TreeEntry::Kind> kinds_;
  std::map<std::string, std::string> link_texts_, targets_;
};

// Matches the inputs of cells with what a pull request changed.
class InputEdits {
 public:
  InputEdits(BaseFiles base, std::vector<Git::FileChange> changes, const config::Digest& digest)
      : base_(std::move(base)), digest_(digest) {
    for (Git::FileChange& change : changes) changes_.emplace(change.path, std::move(change));
  }

  // Returns the edits of a cell that names `paths`.
  [[nodiscard]] config::EntryEdit edit_of(const std::vector<NamedPath>& paths) {
    config::EntryEdit edit;
    const CellInputs inputs = inputs_of(paths);
    for (const NamedPath& input : inputs.paths) {
      const config::EntryEdit& own = edit_of_input(input, inputs.program);
      for (const config::KeyDifference& difference : own.differences) {
        if (holds(edit.differences, difference)) continue;
        edit.differences.push_back(difference);
        edit.hash = digest_(edit.hash + own.hash);
      }
    }
    return edit;
  }
  // Returns the inputs of a cell that its base's commit has.
  [[nodiscard]] std::vector<std::string> inputs_in_base(const std::vector<NamedPath>& paths) const {
    std::vector<std::string> names;
    for (const NamedPath& input : inputs_of(paths).paths) {
      if (base_.has(input.path) && !holds(names, input.path)) names.push_back(input.path);
    }
    return names;
  }

 private:
  using Matches = std::map<std::string, const Git::FileChange*>;  // by path

  // Returns `paths` without the program, and without folders that hold it: these may change with
  // it.
  [[nodiscard]] CellInputs inputs_of(const std::vector<NamedPath>& paths) const {
    std::set<std::string> whole_inputs;
    for (const NamedPath& path : paths) {
      if (path.is_whole_input) whole_inputs.insert(path.path);
    }
    const NamedPath* program = find_first(paths, [&](const NamedPath& path) {
      const bool is_data = whole_inputs.contains(path.path) ||
                           std::ranges::any_of(k_data_suffixes, [&](std::string_view end) {
                             return path.path.ends_with(end);
                           });
      return path.is_in_command && !is_data && (path.may_be_program || base_.has(path.path));
    });
    CellInputs inputs;
    if (program != nullptr) inputs.program = base_.names_of(program->path);
    for (const NamedPath& path : paths) {
      const bool holds_program = std::ranges::any_of(
          inputs.program, [&](const std::string& name) { return is_within(name, path.path); });
      if (path.is_whole_input || !holds_program) inputs.paths.push_back(path);
    }
    return inputs;
  }

  // Returns the edit of one input, with all its names.
  const config::EntryEdit& edit_of_input(const NamedPath& input,
                                         const std::vector<std::string>& program) {
    const auto [entry, is_new] =
        edits_.try_emplace(std::tuple(input.path, input.is_in_command, program));
    config::EntryEdit& edit = entry->second;
    if (!is_new) return edit;
    Matches matches;
    for (const std::string& name : base_.names_of(input.path)) {
      add_exact(name, matches);
      if (input.is_in_command) add_below(name, matches);
      if (name.find(k_digits) != std::string::npos) add_pattern(name, input.is_in_command, matches);
    }
    // A submodule with the program in it is a part of the program.
    std::erase_if(matches, [&](const auto& match) {
      return match.second->is_submodule && std::ranges::any_of(program, [&](const auto& name) {
               return is_within(name, match.first);
             });
    });
    if (matches.empty()) return edit;
    std::string text;
    for (const auto& [path, change] : matches)
      text += path + '\0' + change->before + '\0' + change->after + '\n';
    const Git::FileChange& first = *matches.begin()->second;
    std::string shown = input.path;
    std::ranges::replace(shown, k_digits, '*');
    if (matches.size() == 1) shown = first.path;
    edit.differences.push_back({"file " + text::printable(shown), "", ""});
    if (matches.size() == 1) {
      edit.differences.front().from = text::short_commit(first.before);
      edit.differences.front().to = text::short_commit(first.after);
    }
    edit.hash = digest_(text);
    return edit;
  }

  // Adds changes of the path, of links and submodules above it, and of attributes, by which a
  // checkout may differ from its commit.
  void add_exact(const std::string& path, Matches& matches) {
    const std::vector<std::string> steps = steps_to(path);
    std::vector<std::string> wanted = steps;
    wanted.emplace_back(".gitattributes");
    for (const std::string& step : steps) wanted.push_back(step + "/.gitattributes");
    for (const std::string& step : wanted) {
      const Git::FileChange* change = look_up(changes_, step);
      if (change != nullptr) matches[step] = change;
    }
  }
  void add_below(const std::string& path, Matches& matches) {
    const std::string folder = path.empty() ? "" : path + "/";
    for (auto at = changes_.lower_bound(folder);
         at != changes_.end() && at->first.starts_with(folder); ++at)
      matches[at->first] = &at->second;
  }
  void add_pattern(const std::string& pattern, bool takes_folders, Matches& matches) {
    for (const auto& [path, change] : changes_) {
      const auto matched = match_beginning(pattern, path);
      if (!matched) continue;
      if (*matched == path.size() || (takes_folders && path[*matched] == '/'))
        matches[path] = &change;
    }
  }

  BaseFiles base_;
  const config::Digest& digest_;
  std::map<std::string, Git::FileChange> changes_;
  std::map<std::tuple<std::string, bool, std::vector<std::string>>, config::EntryEdit> edits_;
};

// The commit that is judged.
struct JudgedCommit {
  std::optional<std::string> commit;  // absent: the work tree
  std::string problem{};              // why it cannot be looked into; "": it can
};

// Returns what is judged. The head that an event names is taken before a run's word for its commit.
Result<JudgedCommit> find_judged_commit(const Job& job, const Git& git) {
  const std::optional<std::string>& claimed = job.selection.claimed_commit;
  if (!claimed) return JudgedCommit{};
  const auto head = event_head(job);
  if (!head) return JudgedCommit{"", text::printable(text::first_line(head.error().message))};
  const std::string& wanted = head->empty() ? *claimed : *head;
  if (wanted.empty()) return JudgedCommit{"", "the run is of no commit, or of a changed one"};
  std::optional<std::string> commit;
  if (source::is_full_id(wanted)) WEIR_SET(commit, git.resolve_commit(wanted));
  // A job that measured GitHub's merge commit has no other one checked out.
  if (!commit) {
    WEIR_TRY(const std::optional<std::string> own, git.resolve_commit("HEAD"));
    if (own == *claimed) commit = own;
  }
  if (commit) return JudgedCommit{commit};
  return JudgedCommit{"", fmt::format("commit {0} is not here: git fetch origin {0}",
                                      text::printable(wanted.substr(0, 64)))};
}

}  // namespace

Result<config::FileEdits> find_input_edits(const Job& job, const config::Matrix& base_cells,
                                           const config::Digest& digest) {
  config::FileEdits edits;
  const Rules& rules = *job.rules;
  if (!rules.used.from || !rules.repository) return edits;
  const Git& git = rules.repository->git();
  std::string named_top = job.folder();
  for (std::size_t i = 0; i < steps_to(rules.config_place).size(); ++i)
    named_top = sys::folder_of(named_top);
  const PathReader reader(rules.config_place, {named_top, git.top()});
  std::set<std::string> paths;
  for (const config::Cell& cell : base_cells.cells) {
    for (const NamedPath& named : reader.read(cell)) paths.insert(named.path);
  }
  WEIR_TRY(BaseFiles base, BaseFiles::open(git, rules.used.from->commit, std::move(paths)));
  WEIR_TRY(const JudgedCommit judged, find_judged_commit(job, git));
  std::vector<Git::FileChange> changes;
  if (judged.problem.empty())
    WEIR_SET(changes, git.changes_since(rules.used.from->commit, judged.commit));
  InputEdits inputs(std::move(base), std::move(changes), digest);
  for (const config::Cell& cell : base_cells.cells) {
    const std::vector<NamedPath> named = reader.read(cell);
    config::EntryEdit edit;
    if (judged.problem.empty()) {
      edit = inputs.edit_of(named);
    } else if (const auto names = inputs.inputs_in_base(named); !names.empty()) {
      edit.differences.push_back(
          {fmt::format("perhaps file {} ({})", text::printable(verdict::list_some(names)),
                       judged.problem),
           "", ""});
      edit.hash = digest(edit.differences.front().key);
    }
    if (edit.differences.empty()) continue;
    if (cell.is_private) edit.differences = {{"a file that it reads", "", ""}};
    edits.emplace(cell.key.str(), std::move(edit));
  }
  return edits;
}

}  // namespace weir::flow
