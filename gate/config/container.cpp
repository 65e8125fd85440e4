// Reads and writes command lines of docker, podman and srun.
#include "gate/config/container.hpp"

#include "gate/base/text.hpp"
#include "gate/config/placeholders.hpp"

namespace weir::config {
namespace {

// Options of "run" without a value; all others take the next word where they have no "=".
constexpr std::string_view k_run_flags =
    " --detach --disable-content-trust --env-host --help --http-proxy --init --interactive "
    "--no-healthcheck --no-hosts --oom-kill-disable --passwd --privileged --publish-all --quiet "
    "--read-only --read-only-tmpfs --replace --rm --rmi --rootfs --sig-proxy --tls-verify --tty "
    "--unsetenv-all --use-api-socket --no-hostname ";
// The same as letters, which may stand together: "-it".
constexpr std::string_view k_run_letters = "diPtq";

// Variables that load or control a probe, or the driver of a device twin. weir's own begin with
// WEIR_.
constexpr std::string_view k_probe_variables =
    " LD_PRELOAD VK_LAYER_PATH VK_ADD_LAYER_PATH VK_INSTANCE_LAYERS VK_DRIVER_FILES "
    "VK_ICD_FILENAMES VK_LOADER_DRIVERS_SELECT OPENCL_LAYERS CUDA_INJECTION64_PATH ";

// Options of srun without a value, or with one that only "=" brings; and of pyxis.
constexpr std::string_view k_srun_flags =
    " --bcast --compress --contiguous --debugger-test --disable-status --exact --exclusive --help "
    "--hold --immediate --kill-on-bad-exit --label --multi-prog --nice --no-allocate --no-kill "
    "--overcommit --overlap --oversubscribe --preserve-env --propagate --pty --quiet "
    "--quit-on-interrupt --reboot --resv-ports --send-libs --spread-job --unbuffered --usage "
    "--use-min-nodes --verbose --version --x11 --container-mount-home --container-remap-root "
    "--container-entrypoint --container-writable --container-readonly --container-entrypoint-log ";
constexpr std::string_view k_srun_letters = "EHIKOQVXZhklsuv";

// Returns true if `word` is one of `words`, which have a blank on either side.
bool contains_word(std::string_view words, std::string_view word) {
  return word.find(' ') == word.npos && words.find(fmt::format(" {} ", word)) != words.npos;
}

bool is_option(std::string_view word) { return word.size() > 1 && word.front() == '-'; }

// Returns true if the option takes the next word as its value: it is no flag and has no "=". Of
// letters such as "-it" the last one decides. A value may follow its letter directly ("-p8080:80").
bool takes_next_word(std::string_view option, bool srun) {
  if (option.find('=') != option.npos || (srun && option.starts_with("--no-container-"))) {
    return false;
  }
  if (option.starts_with("--")) return !contains_word(srun ? k_srun_flags : k_run_flags, option);
  const std::size_t letter = option.find_first_not_of(srun ? k_srun_letters : k_run_letters, 1);
  return letter != option.npos && letter + 1 == option.size();
}

// Returns the index after the options that begin at `at`. The list of srun's options is incomplete,
// so a word that begins with "-" is never taken for a value of theirs.
std::size_t skip_options(const Arguments& command, std::size_t at, bool srun) {
  while (at < command.size() && is_option(command[at])) {
    if (command[at] == "--") return at + 1;
    const bool value = at + 1 < command.size() && !(srun && is_option(command[at + 1]));
    at += value && takes_next_word(command[at], srun) ? 2 : 1;
  }
  return at;
}

}  // namespace

std::string_view to_string(Runtime runtime) { return name_of(k_runtimes, runtime); }

bool begins_with(const Arguments& command, Runtime runtime) {
  if (command.empty()) return false;
  const std::string& program = command.front();
  return std::string_view(program).substr(program.rfind('/') + 1) == to_string(runtime);
}

std::optional<RuntimeLine> parse_runtime_line(const Arguments& command, Runtime runtime) {
  if (runtime == Runtime::srun) return RuntimeLine{1, skip_options(command, 1, /*srun=*/true)};
  const auto run = std::find(command.begin() + 1, command.end(), "run");
  if (run == command.end()) return std::nullopt;
  const auto options = static_cast<std::size_t>(run - command.begin()) + 1;
  return RuntimeLine{options, skip_options(command, options, /*srun=*/false)};
}

// Returns the command line that runs `words` in the engine's container, in the engine's place.
// Nothing if options of the container have placeholders, or there is no image.
std::optional<Arguments> command_inside(const Arguments& container_line, Runtime runtime,
                                        const Arguments& words) {
  const auto parts = parse_runtime_line(container_line, runtime);
  const bool needs_image = runtime != Runtime::srun;
  if (!parts || (needs_image && parts->image >= container_line.size())) return std::nullopt;
  Arguments command(container_line.begin(),
                    container_line.begin() + static_cast<std::ptrdiff_t>(parts->image));
  const auto has_placeholder = [](const std::string& word) {
    return !placeholders_in(word).empty();
  };
  if (std::ranges::any_of(command, has_placeholder)) return std::nullopt;
  if (needs_image) {
    for (const std::string& word : {std::string("--rm"), std::string("--entrypoint"), words.front(),
                                    container_line[parts->image]}) {
      command.push_back(word);
    }
  }
  command.insert(command.end(), words.begin() + (needs_image ? 1 : 0), words.end());
  return command;
}

// Returns the command line that runs the engine in its container: "docker run ARGS IMAGE ENGINE…".
// A command that begins with the container's runtime stays as it is.
Arguments container_command(const ContainerSettings& container, const Arguments& engine) {
  if (begins_with(engine, container.runtime)) return engine;
  Arguments line{std::string(to_string(container.runtime))};
  if (container.runtime != Runtime::srun) line.emplace_back("run");
  line.insert(line.end(), container.args.begin(), container.args.end());
  if (container.runtime != Runtime::srun) {
    line.push_back(container.image);
  } else if (!container.image.empty()) {
    line.push_back(std::string(k_container_image) + "=" + container.image);
  }
  line.insert(line.end(), engine.begin(), engine.end());
  return line;
}

// Returns the words of a command that distinguish benchmark cells: without the container's
// options, its image and the program's folder.
Arguments fingerprint_command(const ContainerSettings& container, const Arguments& engine) {
  if (engine.empty()) return {};
  const auto parts = begins_with(engine, container.runtime)
                         ? parse_runtime_line(engine, container.runtime)
                         : std::nullopt;
  if (!parts) return {engine.begin() + 1, engine.end()};
  // srun has no image: the engine's program stands there itself.
  const bool is_srun = container.runtime == Runtime::srun;
  const std::size_t program = is_srun ? parts->image : parts->image + 1;
  Arguments words;
  for (std::size_t i = 1; i < engine.size(); ++i) {
    const std::string& word = engine[i];
    if (!is_srun && i == parts->image) continue;
    if (is_srun && i < parts->image && matches_option(word, k_container_image)) {
      if (word == k_container_image) ++i;
      continue;
    }
    // The program's folder has no influence. Its name stays, as an image with an entry point has
    // the first argument there.
    const bool is_path = i == program && !is_option(word) && word.find('{') == std::string::npos;
    words.push_back(is_path ? word.substr(word.rfind('/') + 1) : word);
  }
  return words;
}

// Returns the environment variable that an option of docker or podman sets: "A" for "-e A=b",
// "--env=A" or "-ite A". Nothing for other options. `next` is the word after it.
std::optional<std::string> variable_set_by(const std::string& word, const std::string& next) {
  std::string_view assignment;
  if (word == "--env") {
    assignment = next;
  } else if (word.starts_with("--env=")) {
    assignment = std::string_view(word).substr(6);
  } else if (is_option(word) && !word.starts_with("--")) {
    // "-e A", "-eA", "-e=A", and "-ite A".
    const std::size_t letter = word.find_first_not_of(k_run_letters, 1);
    if (letter == std::string::npos || word[letter] != 'e') return std::nullopt;
    assignment = std::string_view(word).substr(letter + 1);
    if (assignment.starts_with('=')) assignment.remove_prefix(1);
    if (letter + 1 == word.size()) assignment = next;
  } else {
    return std::nullopt;
  }
  return std::string(assignment.substr(0, assignment.find('=')));
}

bool matches_option(std::string_view word, std::string_view option) {
  return word.starts_with(option) && (word.size() == option.size() || word[option.size()] == '=');
}

namespace {

bool is_probe_variable(std::string_view variable) {
  return variable.starts_with("WEIR_PROBE") || variable.starts_with("WEIR_PROFILE") ||
         variable.starts_with("WEIR_TWIN") || contains_word(k_probe_variables, variable);
}

// Returns true for an option that detaches: "--detach", or "-d", also among other letters ("-itd",
// "-dp8080:80").
bool detaches(const std::string& word) {
  if (word == "--detach" || word == "--detach=true") return true;
  if (!is_option(word) || word[1] == '-') return false;
  return word.find('d') < word.find_first_not_of(k_run_letters, 1);
}

std::string probe_variable_problem(std::string_view runtime, std::string_view variable) {
  return fmt::format(
      "{}: {} is what probes come in by: write it under \"env\", where weir adds to it", runtime,
      variable);
}

// Adds the problems of one option of `docker run` or `podman run`: detaching, a cidfile, or a
// variable of the probes. `next` is the word after it.
void check_run_option(const std::string& word, const std::string& next, std::string_view name,
                      std::vector<std::string>& problems) {
  if (detaches(word)) {
    problems.push_back(
        fmt::format("{}: weir reads what the engine prints: leave {} out", name, word));
  }
  if (matches_option(word, "--cidfile")) {
    problems.push_back(fmt::format(
        "{}: weir knows the container by a --cidfile of its own: leave yours out", name));
  }
  const auto variable = variable_set_by(word, next);
  if (variable && is_probe_variable(*variable))
    problems.push_back(probe_variable_problem(name, *variable));
}

// Adds the problems of the value of srun's option --export.
void check_export(std::string_view value, std::vector<std::string>& problems) {
  const std::vector<std::string> items = text::split(value, ',');
  if (items.front() != "ALL") {
    problems.emplace_back(
        "srun: --export must begin with ALL, for what probes need comes along that way");
  }
  for (const std::string& item : items) {
    const std::string variable = item.substr(0, item.find('='));
    if (is_probe_variable(variable)) problems.push_back(probe_variable_problem("srun", variable));
  }
}

void check_srun_option(const std::string& word, const std::string& next, std::string_view /*name*/,
                       std::vector<std::string>& problems) {
  if (matches_option(word, "--export")) {
    check_export(word == "--export" ? next : word.substr(word.find('=') + 1), problems);
  }
  if (word.starts_with("--job-name") || (word.starts_with("-J") && !word.starts_with("--"))) {
    problems.emplace_back("srun: weir knows the step by a --job-name of its own: leave yours out");
  }
}

}  // namespace

// Returns true if an option of the container's command line publishes ports or chooses a network.
bool has_network_option(const Arguments& line, const RuntimeLine& parts) {
  for (std::size_t i = parts.options; i < parts.image; ++i) {
    const std::string& word = line[i];
    for (const char* option : {"--network", "--net", "--publish", "--publish-all", "--pod"}) {
      if (matches_option(word, option)) return true;
    }
    if (word.starts_with("--") || !word.starts_with('-')) continue;
    // "-p", "-P", "-itp", "-p8080:80". Options without a value (-d, -i, -t, -q) may go before it.
    const std::size_t letter = word.find_first_not_of("ditq", 1);
    if (letter != std::string::npos && (word[letter] == 'p' || word[letter] == 'P')) return true;
  }
  return false;
}

// Returns the problems of a container's command line: options that keep weir from loading probes,
// reading the output, or cleaning up.
std::vector<std::string> check_runtime_line(const Arguments& line, Runtime runtime) {
  const std::string_view name = to_string(runtime);
  const auto parts = parse_runtime_line(line, runtime);
  if (!parts) {
    return {
        fmt::format("the command has no \"run\": weir carries probes into \"{} run\" alone", name)};
  }
  const auto check_option = runtime == Runtime::srun ? check_srun_option : check_run_option;
  std::vector<std::string> problems;
  for (std::size_t i = parts->options; i < parts->image; ++i) {
    check_option(line[i], i + 1 < line.size() ? line[i + 1] : "", name, problems);
  }
  return problems;
}

}  // namespace weir::config
