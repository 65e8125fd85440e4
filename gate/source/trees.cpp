// Checks out and builds the base in a cache folder, and removes trees that are no longer used.
#include "gate/source/trees.hpp"

#include <functional>
#include <random>
#include <set>
#include <utility>

#include "gate/base/hash.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/sys/machine.hpp"
#include "gate/sys/paths.hpp"

namespace weir::source {

namespace {

// Bytes of output after which a build is taken to be stuck in a loop.
constexpr std::uint64_t k_output_limit = std::uint64_t{1} << 30;
constexpr std::size_t k_kept_bytes = std::size_t{512} << 10;
constexpr std::size_t k_shown_lines = 20;

std::string last_lines(const std::string& text) {
  std::string shown_lines;
  for (const std::string& line : report::last_lines(text, k_shown_lines, k_kept_bytes)) {
    shown_lines += "\n  " + line;
  }
  return shown_lines;
}

// Returns the error of a build that failed: the command, the end of its output, how to run it
// again.
tl::unexpected<Error> build_error(const Build& build, const std::string& folder,
                                  const std::string& log, const std::string& what,
                                  const sys::Finished& finished) {
  std::string message =
      fmt::format("the base could not be built: `{}` (`build:` of the engine {}) {}",
                  shell_line(build.command), text::printable(build.engine), text::printable(what));
  // Compilers report errors on one stream, build tools on the other.
  message += last_lines(finished.out) + last_lines(finished.err);
  message +=
      fmt::format("\nagain by hand: {} && {}\nall it printed: {}", shell_line({"cd", folder}),
                  shell_line(build.command), text::printable(log));
  message +=
      "\nThe base is a fresh checkout: files that git does not know (a configured build folder, "
      "for "
      "one) are not in it, so the command has to make all it needs.";
  return fail(Code::unavailable, "{}", message);
}

constexpr std::uint64_t k_record_bytes = 1 << 20;
constexpr const char* k_schema = "weir.base/1";

}  // namespace

// The file next to a complete tree.
struct TreeRecord {
  std::string commit, repository;           // for people who look into the cache
  std::vector<config::Arguments> commands;  // the same
  double build_seconds = 0;
  double used_at = 0;  // since 1970
};
static void fields(Fields& io, TreeRecord& record) {
  io.schema(k_schema, "is no record of a tree");
  io("commit", record.commit);
  io("repository", record.repository);
  io.write_only("commands", record.commands);
  io("build_seconds", record.build_seconds);
  io("used_at", record.used_at);
}

namespace {

class Trees {
 public:
  Trees(const Git& git, const TreeWanted& wanted, const Effects& effects)
      : git_(git),
        wanted_(wanted),
        effects_(effects),
        folder_(sys::join_path(wanted.cache_folder, "trees")),
        repository_(short_hash(git.store(), 12)),
        name_(repository_ + "-" + wanted.commit + "-" + build_hash() +
              (wanted.reuse ? "" : "-" + draw_suffix())) {}

  // Returns the tree if it is complete.
  Result<std::optional<Tree>> find_existing() {
    if (!wanted_.reuse) return std::nullopt;
    if (!read_complete()) return std::nullopt;  // don't wait for a weir that is making it
    WEIR_TRY(std::shared_ptr<sys::Held> read_lock, lock(name_, sys::Share::shared));
    const auto record = read_complete();
    if (!record) return std::nullopt;
    return use(*record, std::move(read_lock));
  }

  // Returns the tree, made if it is not there.
  Result<Tree> prepare() {
    WEIR_CHECK(effects_.files.make_dirs(folder_));
    if (!wanted_.reuse) return make_own();
    // A second attempt is needed only if somebody removes the tree just made.
    for (int attempt = 0; attempt < 3; ++attempt) {
      WEIR_TRY(std::shared_ptr<sys::Held> read_lock, lock(name_, sys::Share::shared));
      if (const auto record = read_complete()) return use(*record, std::move(read_lock));
      read_lock.reset();
      WEIR_TRY(const auto write_lock, lock(name_, sys::Share::exclusive));
      if (read_complete()) continue;
      WEIR_TRY(const TreeRecord record, make());
      WEIR_CHECK(write(record));
    }
    return fail(Code::io,
                "{}: made three times, and each time it was gone at once; is something "
                "cleaning up there?",
                root());
  }

 private:
  [[nodiscard]] std::string cache_path(const std::string& name) const {
    return sys::join_path(folder_, name);
  }
  [[nodiscard]] std::string root() const { return cache_path(name_); }

  // Returns the end of a name that no program could have written to beforehand.
  [[nodiscard]] static std::string draw_suffix() {
    std::random_device device;
    return fmt::format("{:08x}{:08x}", device(), device());
  }

  // Returns a hash of all that the build depends on. It includes CPU and system, because caches are
  // copied between runners.
  [[nodiscard]] std::string build_hash() const {
    const sys::Machine machine = sys::read_machine(effects_.files);
    Json inputs = {{"place", git_.place()}, {"cpu", machine.cpu_class}, {"os", machine.os_release}};
    inputs["commands"] = Json::array();
    Json& commands = inputs["commands"];
    for (const Build& build : wanted_.builds) commands.push_back(build.command);
    return short_hash(dump_json(inputs), 12);
  }

  Result<std::shared_ptr<sys::Held>> lock(const std::string& name, sys::Share share) {
    const auto tell_waiting = [&](const std::string&) {
      effects_.tell(fmt::format("another weir is making or using the base {}; waiting for it",
                                text::short_commit(wanted_.commit)));
    };
    WEIR_TRY(auto lock_held,
             effects_.locks.acquire({{lock_name(name), share}}, effects_.stop, tell_waiting));
    return std::shared_ptr<sys::Held>(std::move(lock_held));
  }
  // Locks are shared by the whole host, so their names include the cache folder.
  [[nodiscard]] std::string lock_name(const std::string& name) const {
    return fmt::format("base-{}-{}", short_hash(folder_, 8), name);
  }

  [[nodiscard]] std::optional<TreeRecord> read_record(const std::string& name) const {
    const auto text = effects_.files.read(cache_path(name + ".json"), k_record_bytes);
    const auto json = text ? parse_json(*text) : tl::unexpected(text.error());
    auto record = json ? read_fields<TreeRecord>(*json, name) : tl::unexpected(json.error());
    return record ? std::optional(*std::move(record)) : std::nullopt;
  }
  [[nodiscard]] Result<void> write(TreeRecord record) const {
    for (const Build& build : wanted_.builds) record.commands.push_back(build.command);
    return effects_.files.write_atomic(cache_path(name_ + ".json"),
                                       dump_json(write_fields(record), 1) + "\n");
  }

  // Returns the tree's record if the tree is complete.
  [[nodiscard]] std::optional<TreeRecord> read_complete() const {
    if (effects_.files.kind(root()) != sys::Kind::folder) return std::nullopt;
    const auto record = read_record(name_);
    return record && record->commit == wanted_.commit ? record : std::nullopt;
  }

  [[nodiscard]] Tree tree_of(const TreeRecord& record, std::shared_ptr<sys::Held> tree_lock) const {
    Tree tree;
    tree.root = root();
    tree.from_cache = !was_built_;
    tree.build_seconds = record.build_seconds;
    tree.notes = notes_;
    tree.held = std::move(tree_lock);
    return tree;
  }

  // Returns the tree for use, and records the time of this use.
  Tree use(TreeRecord record, std::shared_ptr<sys::Held> read_lock) {
    Tree tree = tree_of(record, std::move(read_lock));
    record.used_at = effects_.clock.now();
    // Ignore a failure: a read-only cache still serves, only its time of use is less accurate.
    static_cast<void>(write(record));
    return tree;
  }

  // Makes a tree that is used once. Without a record it counts as incomplete: the next weir that
  // makes a tree removes it, unless we still hold its lock.
  Result<Tree> make_own() {
    WEIR_TRY(std::shared_ptr<sys::Held> write_lock, lock(name_, sys::Share::exclusive));
    WEIR_TRY(const TreeRecord record, make());
    return tree_of(record, std::move(write_lock));
  }

  // Checks the tree out and builds it. REQUIRES: the exclusive lock of the tree.
  Result<TreeRecord> make() {
    const double began_at = effects_.clock.steady();
    {
      WEIR_TRY(const auto repository_lock,
               lock("repository-" + repository_, sys::Share::exclusive));
      remove_old_trees();
      WEIR_CHECK(remove(name_));
      effects_.tell(fmt::format("checking out the base {} in {}",
                                text::short_commit(wanted_.commit), text::printable(root())));
      WEIR_CHECK(git_.add_worktree(root(), wanted_.commit));
    }
    if (effects_.files.exists(sys::join_path(root(), ".gitmodules"))) {
      effects_.tell("fetching its submodules");
      WEIR_CHECK(git_.update_submodules(root()));
    }
    const std::string place = git_.place().empty() ? root() : sys::join_path(root(), git_.place());
    if (!wanted_.builds.empty()) {
      if (effects_.files.kind(place) == sys::Kind::absent) {
        notes_.push_back(fmt::format("the base has no folder {}: its build ran in an empty one",
                                     text::printable(git_.place())));
      }
      WEIR_CHECK(effects_.files.make_dirs(place));
      std::string commands;
      for (const Build& build : wanted_.builds) {
        text::append_item(commands, ", ", shell_line(build.command));
      }
      effects_.tell(
          fmt::format("building the base {}: {}", text::short_commit(wanted_.commit), commands));
      WEIR_CHECK(run_builds(wanted_.builds, place, cache_path(name_ + ".log"),
                            wanted_.build_timeout_seconds, effects_));
    }
    was_built_ = true;
    TreeRecord record;
    record.commit = wanted_.commit;
    record.repository = git_.top();
    record.build_seconds = effects_.clock.steady() - began_at;
    record.used_at = effects_.clock.now();
    return record;
  }

  // Removes a tree. Its record goes first: from then on the tree is incomplete.
  Result<void> remove(const std::string& name) {
    WEIR_CHECK(effects_.files.remove(cache_path(name + ".json")));
    WEIR_CHECK(effects_.files.remove(cache_path(name + ".log")));
    WEIR_CHECK(effects_.files.remove_tree(cache_path(name)));
    return git_.remove_worktree(cache_path(name));
  }

  // Removes the repository's trees that are incomplete or were used longest ago, except those in
  // use. Errors are reported, but do not stop the run. REQUIRES: the lock of the repository.
  void remove_old_trees() {
    const auto names = effects_.files.list(folder_);
    if (!names) return;
    // Time of last use (0: incomplete) and name, newest first.
    std::set<std::pair<double, std::string>, std::greater<>> trees;
    for (const std::string& entry : *names) {
      const std::string name = entry.substr(0, entry.find('.'));
      if (!entry.starts_with(repository_ + "-") || name == name_) continue;
      const auto record = read_record(name);
      trees.emplace(record ? record->used_at : 0, name);
    }
    // A stop that is requested already turns waiting for a lock into trying once.
    sys::Stop at_once;
    at_once.request();
    std::size_t place = 1;  // the first is the tree that is wanted now
    for (const auto& [used_at, name] : trees) {
      if (place++ < wanted_.keep && used_at > 0) continue;
      const auto tree_lock =
          effects_.locks.acquire({{lock_name(name), sys::Share::exclusive}}, at_once, {});
      if (!tree_lock) continue;
      if (auto removed = remove(name); !removed) effects_.tell(removed.error().message);
    }
  }

  const Git& git_;
  const TreeWanted& wanted_;
  const Effects& effects_;
  const std::string folder_, repository_, name_;
  bool was_built_ = false;
  std::vector<std::string> notes_;
};

}  // namespace

// Returns a command as a line that can be pasted into a shell. Words with unprintable bytes become
// $'…'.
std::string shell_line(const std::vector<std::string>& argv) {
  std::vector<std::string> words;
  for (const std::string& word : argv) {
    if (text::printable(word) == word && word.find_first_of("\n\t") == std::string::npos) {
      words.push_back(text::shell_word(word));
      continue;
    }
    std::string quoted = "$'";
    for (const char c : word) {
      if (c == '\'' || c == '\\') quoted += '\\';
      quoted += c >= ' ' && c < 127 ? std::string(1, c)
                                    : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    words.push_back(quoted + "'");
  }
  return text::join(words, " ");
}

// Runs the build commands one after another, all within `timeout_seconds`, and writes their output
// to the file `log`.
Result<void> run_builds(const std::vector<Build>& builds, const std::string& folder,
                        const std::string& log, double timeout_seconds, const Effects& effects) {
  std::string printed;
  const double began_at = effects.clock.steady();
  for (const Build& build : builds) {
    if (build.command.empty()) continue;
    sys::ProcessSpec spec;
    spec.argv = build.command;
    const auto program = sys::find_program(effects.files, spec.argv[0], folder,
                                           sys::environment_value("PATH").value_or(""));
    if (!program) {
      return build_error(build, folder, log, "cannot be started: there is no such program", {});
    }
    spec.argv[0] = *program;
    spec.unset = git_variables();
    spec.passed_variables = build.passed_variables;
    spec.env = {{"GIT_TERMINAL_PROMPT", "0"}};
    spec.folder = folder;
    spec.timeout_seconds = std::max(1.0, timeout_seconds - (effects.clock.steady() - began_at));
    spec.output_limit = k_output_limit;
    spec.whole_output = false;
    spec.keep_head = k_kept_bytes;
    spec.keep_tail = k_kept_bytes;
    WEIR_TRY(const sys::Finished finished, effects.processes.run(spec, effects.stop));
    printed += fmt::format("$ {}\n{}{}\n", shell_line(build.command), finished.out, finished.err);
    // A log that cannot be written does not make the build fail.
    if (auto written = effects.files.write_atomic(log, printed); !written) {
      effects.tell(written.error().message);
    }
    if (finished.ended == sys::HowEnded::interrupted) {
      return fail(Code::interrupted, "stopped while the base was being built");
    }
    if (finished.ended != sys::HowEnded::exited || finished.exit_code != 0) {
      const std::string how = finished.ended == sys::HowEnded::exited
                                  ? fmt::format("exited with {}", finished.exit_code)
                                  : sys::describe_ending(finished, spec);
      return build_error(build, folder, log, how, finished);
    }
  }
  return {};
}

Result<std::optional<Tree>> find_tree(const Git& git, const TreeWanted& wanted,
                                      const Effects& effects) {
  return Trees(git, wanted, effects).find_existing();
}

Result<Tree> prepare_tree(const Git& git, const TreeWanted& wanted, const Effects& effects) {
  return Trees(git, wanted, effects).prepare();
}

}  // namespace weir::source
