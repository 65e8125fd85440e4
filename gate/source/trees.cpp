#include "gate/source/trees.hpp"

#include <functional>
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

// A build that prints more than this is going round in circles.
constexpr std::uint64_t k_output_limit = std::uint64_t{1} << 30;
constexpr std::size_t k_kept_bytes = std::size_t{512} << 10;
constexpr std::size_t k_shown_lines = 20;

std::string last_lines(const std::string& text) {
  std::string all;
  for (const std::string& line : report::last_lines(text, k_shown_lines, k_kept_bytes)) {
    all += "\n  " + line;
  }
  return all;
}

tl::unexpected<Error> failed(const Build& build, const std::string& folder, const std::string& log,
                             const std::string& what, const sys::Finished& finished) {
  std::string message =
      fmt::format("the base could not be built: `{}` (`build:` of the engine {}) {}",
                  shell_line(build.command), text::printable(build.engine), text::printable(what));
  // Compilers complain on one stream, those who call them on the other.
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

// What is known of a whole tree.
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
  io.derived("commands", record.commands);
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
        name_(repository_ + "-" + wanted.commit + "-" + build_hash()) {}

  Result<std::optional<Tree>> known() {
    if (!whole()) return std::nullopt;  // without waiting for somebody who makes it
    WEIR_TRY(std::shared_ptr<sys::Held> reading, lock(name_, sys::Share::shared));
    const auto record = whole();
    if (!record) return std::nullopt;
    WEIR_TRY(Tree tree, taken(*record, std::move(reading)));
    return tree;
  }

  Result<Tree> prepare() {
    WEIR_CHECK(effects_.files.make_dirs(folder_));
    // More than once only where somebody removes what was just made.
    for (int attempt = 0; attempt < 3; ++attempt) {
      WEIR_TRY(std::shared_ptr<sys::Held> reading, lock(name_, sys::Share::shared));
      if (const auto record = whole()) return taken(*record, std::move(reading));
      reading.reset();
      WEIR_TRY(const auto writing, lock(name_, sys::Share::exclusive));
      if (!whole()) WEIR_CHECK(make());
    }
    return fail(Code::io,
                "{}: made three times, and each time it was gone at once; is something "
                "cleaning up there?",
                root());
  }

 private:
  [[nodiscard]] std::string at(const std::string& name) const {
    return sys::join_path(folder_, name);
  }
  [[nodiscard]] std::string root() const { return at(name_); }

  // What was built for another processor or system must not be taken for what is wanted here:
  // caches travel between runners.
  [[nodiscard]] std::string build_hash() const {
    const sys::Machine machine = sys::read_machine(effects_.files);
    Json said = {{"place", git_.place()}, {"cpu", machine.cpu_class}, {"os", machine.os_release}};
    Json& commands = said["commands"] = Json::array();
    for (const Build& build : wanted_.builds) commands.push_back(build.command);
    return short_hash(dump_json(said), 12);
  }

  Result<std::shared_ptr<sys::Held>> lock(const std::string& name, sys::Share share) {
    const auto tell = [&](const std::string&) {
      effects_.tell(fmt::format("another weir is making or using the base {}; waiting for it",
                                short_commit(wanted_.commit)));
    };
    WEIR_TRY(auto held, effects_.locks.acquire({{lock_name(name), share}}, effects_.stop, tell));
    return std::shared_ptr<sys::Held>(std::move(held));
  }
  // Locks are the host's, trees are those of one cache folder.
  [[nodiscard]] std::string lock_name(const std::string& name) const {
    return fmt::format("base-{}-{}", short_hash(folder_, 8), name);
  }

  [[nodiscard]] std::optional<TreeRecord> record_of(const std::string& name) const {
    const auto text = effects_.files.read(at(name + ".json"), k_record_bytes);
    const auto json = text ? parse_json(*text) : tl::unexpected(text.error());
    auto record = json ? read_fields<TreeRecord>(*json, name) : tl::unexpected(json.error());
    return record ? std::optional(*std::move(record)) : std::nullopt;
  }
  [[nodiscard]] Result<void> write(TreeRecord record) const {
    for (const Build& build : wanted_.builds) record.commands.push_back(build.command);
    return effects_.files.write_atomic(at(name_ + ".json"),
                                       dump_json(write_fields(record), 1) + "\n");
  }

  [[nodiscard]] std::optional<TreeRecord> whole() const {
    if (effects_.files.kind(root()) != sys::Kind::folder) return std::nullopt;
    const auto record = record_of(name_);
    return record && record->commit == wanted_.commit ? record : std::nullopt;
  }

  Result<Tree> taken(TreeRecord record, std::shared_ptr<sys::Held> held) {
    Tree tree;
    tree.root = root();
    tree.from_cache = !made_;
    tree.build_seconds = record.build_seconds;
    tree.notes = notes_;
    tree.held = std::move(held);
    record.used_at = effects_.clock.now();
    // A cache that can only be read serves as well; then the oldest is not known so well.
    static_cast<void>(write(record));
    return tree;
  }

  // REQUIRES: the exclusive lock of the tree.
  Result<void> make() {
    const double begun = effects_.clock.steady();
    {
      WEIR_TRY(const auto repository, lock("repository-" + repository_, sys::Share::exclusive));
      tidy();
      WEIR_CHECK(remove(name_));
      effects_.tell(fmt::format("checking out the base {} in {}", short_commit(wanted_.commit),
                                text::printable(root())));
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
        commands += (commands.empty() ? "" : ", ") + shell_line(build.command);
      }
      effects_.tell(
          fmt::format("building the base {}: {}", short_commit(wanted_.commit), commands));
      WEIR_CHECK(run_builds(wanted_.builds, place, at(name_ + ".log"),
                            wanted_.build_timeout_seconds, effects_));
    }
    made_ = true;
    TreeRecord record;
    record.commit = wanted_.commit;
    record.repository = git_.top();
    record.build_seconds = effects_.clock.steady() - begun;
    record.used_at = effects_.clock.now();
    return write(record);
  }

  // The record first: from then on it is no whole tree.
  Result<void> remove(const std::string& name) {
    WEIR_CHECK(effects_.files.remove(at(name + ".json")));
    WEIR_CHECK(effects_.files.remove(at(name + ".log")));
    WEIR_CHECK(effects_.files.remove_tree(at(name)));
    return git_.forget_worktree(at(name));
  }

  // Removes the repository's trees that are not whole or were used longest ago, but none that
  // somebody uses. Nothing that goes wrong here is worth stopping for.
  // REQUIRES: the lock of the repository.
  void tidy() {
    const auto names = effects_.files.list(folder_);
    if (!names) return;
    // When each was used (0: not whole) and its name, the newest first.
    std::set<std::pair<double, std::string>, std::greater<>> trees;
    for (const std::string& entry : *names) {
      const std::string name = entry.substr(0, entry.find('.'));
      if (!entry.starts_with(repository_ + "-") || name == name_) continue;
      const auto record = record_of(name);
      trees.emplace(record ? record->used_at : 0, name);
    }
    // A stop that is requested already turns waiting for a lock into trying to get it.
    sys::Stop at_once;
    at_once.request();
    std::size_t place = 1;  // the first is the tree that is wanted now
    for (const auto& [used_at, name] : trees) {
      if (place++ < wanted_.keep && used_at > 0) continue;
      const auto held =
          effects_.locks.acquire({{lock_name(name), sys::Share::exclusive}}, at_once, {});
      if (!held) continue;
      if (auto removed = remove(name); !removed) effects_.tell(removed.error().message);
    }
  }

  const Git& git_;
  const TreeWanted& wanted_;
  const Effects& effects_;
  const std::string folder_, repository_, name_;
  bool made_ = false;
  std::vector<std::string> notes_;
};

}  // namespace

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

Result<void> run_builds(const std::vector<Build>& builds, const std::string& folder,
                        const std::string& log, double timeout_seconds, const Effects& effects) {
  std::string printed;
  const double begun = effects.clock.steady();
  for (const Build& build : builds) {
    if (build.command.empty()) continue;
    sys::ProcessSpec spec;
    spec.argv = build.command;
    const auto program = sys::find_program(effects.files, spec.argv[0], folder,
                                           sys::environment_value("PATH").value_or(""));
    if (!program) {
      return failed(build, folder, log, "cannot be started: there is no such program", {});
    }
    spec.argv[0] = *program;
    spec.unset = git_variables();
    spec.passed = build.passed;
    spec.env = {{"GIT_TERMINAL_PROMPT", "0"}};
    spec.folder = folder;
    spec.timeout_seconds = std::max(1.0, timeout_seconds - (effects.clock.steady() - begun));
    spec.output_limit = k_output_limit;
    spec.whole_output = false;
    spec.keep_head = spec.keep_tail = k_kept_bytes;
    WEIR_TRY(const sys::Finished finished, effects.processes.run(spec, effects.stop));
    printed += fmt::format("$ {}\n{}{}\n", shell_line(build.command), finished.out, finished.err);
    // A log that cannot be written is no reason to give up what has been built.
    if (auto written = effects.files.write_atomic(log, printed); !written) {
      effects.tell(written.error().message);
    }
    if (finished.ended == sys::HowEnded::interrupted) {
      return fail(Code::interrupted, "stopped while the base was being built");
    }
    if (finished.ended != sys::HowEnded::exited || finished.exit_code != 0) {
      const std::string how = finished.ended == sys::HowEnded::exited
                                  ? fmt::format("exited with {}", finished.exit_code)
                                  : sys::ended_words(finished, spec);
      return failed(build, folder, log, how, finished);
    }
  }
  return {};
}

Result<std::optional<Tree>> known_tree(const Git& git, const TreeWanted& wanted,
                                       const Effects& effects) {
  return Trees(git, wanted, effects).known();
}

Result<Tree> prepare_tree(const Git& git, const TreeWanted& wanted, const Effects& effects) {
  return Trees(git, wanted, effects).prepare();
}

}  // namespace weir::source
