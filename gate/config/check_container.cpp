// What a command line of docker's, podman's or srun's must not hold.
#include <array>

#include "gate/base/text.hpp"
#include "gate/config/container.hpp"

namespace weir::config {
namespace {

// "-d", also among other letters ("-itd", "-dp8080:80").
bool detaches(const std::string& word) {
  if (word == "--detach" || word == "--detach=true") return true;
  if (word.size() < 2 || word[0] != '-' || word[1] == '-') return false;
  return word.find('d') < word.find_first_not_of("diPtq", 1);
}

bool is_or_sets(std::string_view word, std::string_view option) {
  return word.starts_with(option) && (word.size() == option.size() || word[option.size()] == '=');
}

std::vector<std::string> problems_of_run(const Arguments& line, const RuntimeLine& parts,
                                         std::string_view name) {
  std::vector<std::string> problems;
  for (std::size_t i = parts.options; i < parts.image; ++i) {
    const std::string& word = line[i];
    const std::string next = i + 1 < parts.image ? line[i + 1] : "";
    if (detaches(word)) {
      problems.push_back(
          fmt::format("{}: weir reads what the engine prints: leave {} out", name, word));
    }
    if (is_or_sets(word, "--cidfile")) {
      problems.push_back(fmt::format(
          "{}: weir knows the container by a --cidfile of its own: leave yours out", name));
    }
    const auto variable = variable_set_by(word, next);
    if (variable && carries_probes(*variable)) {
      problems.push_back(fmt::format(
          "{}: {} is what probes come in by: write it under \"env\", where weir adds to it", name,
          *variable));
    }
  }
  return problems;
}

void check_export(std::string_view value, std::vector<std::string>& problems) {
  const std::vector<std::string> items = text::split(std::string(value), ',');
  if (items.front() != "ALL") {
    problems.emplace_back(
        "srun: --export must begin with ALL, for what probes need comes along that way");
  }
  for (const std::string& item : items) {
    const std::string variable = item.substr(0, item.find('='));
    if (!carries_probes(variable)) continue;
    problems.push_back(fmt::format(
        "srun: {} is what probes come in by: write it under \"env\", where weir adds to it",
        variable));
  }
}

std::vector<std::string> problems_of_srun(const Arguments& line, const RuntimeLine& parts) {
  std::vector<std::string> problems;
  for (std::size_t i = parts.options; i < parts.image; ++i) {
    const std::string_view word = line[i];
    if (word == "--export") {
      check_export(i + 1 < line.size() ? std::string_view(line[i + 1]) : "", problems);
    } else if (word.starts_with("--export=")) {
      check_export(word.substr(word.find('=') + 1), problems);
    }
    if (word.starts_with("--job-name") || (word.starts_with("-J") && !word.starts_with("--"))) {
      problems.emplace_back(
          "srun: weir knows the step by a --job-name of its own: leave yours out");
    }
  }
  return problems;
}

}  // namespace

bool says_network(const Arguments& line, const RuntimeLine& parts) {
  constexpr std::array<std::string_view, 5> k_long{"--network", "--net", "--publish",
                                                   "--publish-all", "--pod"};
  for (std::size_t i = parts.options; i < parts.image; ++i) {
    const std::string& word = line[i];
    for (const std::string_view option : k_long) {
      if (is_or_sets(word, option)) return true;
    }
    if (word.starts_with("--") || !word.starts_with('-')) continue;
    // "-p", "-P", "-itp", "-p8080:80"
    const std::size_t letter = word.find_first_not_of("ditq", 1);
    if (letter != std::string::npos && (word[letter] == 'p' || word[letter] == 'P')) return true;
  }
  return false;
}

std::vector<std::string> problems_of(const Arguments& line, Runtime runtime) {
  const std::string_view name = to_string(runtime);
  const auto parts = parts_of(line, runtime);
  if (!parts) {
    return {
        fmt::format("the command has no \"run\": weir carries probes into \"{} run\" alone", name)};
  }
  return runtime == Runtime::srun ? problems_of_srun(line, *parts)
                                  : problems_of_run(line, *parts, name);
}

}  // namespace weir::config
