// `container` of an engine.
#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/config/parse.hpp"

namespace weir::config {
namespace {

const std::vector<std::string>& runtime_names() {
  static const std::vector<std::string> k_names{"docker", "podman", "srun"};
  return k_names;
}

std::optional<Runtime> read_runtime(const Node& node, Problems& problems) {
  const auto chosen = read_choice(node, "container", runtime_names(), problems);
  if (chosen == "docker") return Runtime::docker;
  if (chosen == "podman") return Runtime::podman;
  if (chosen == "srun") return Runtime::srun;
  return std::nullopt;
}

// "-d", also among other letters ("-itd").
bool detaches(const std::string& word) {
  if (word == "--detach" || word == "--detach=true") return true;
  return word.size() > 1 && word[0] == '-' && word[1] != '-' &&
         word.find_first_not_of("diPtq", 1) == std::string::npos &&
         word.find('d') != std::string::npos;
}

// Nothing that would keep weir from carrying things in, or from reading what the engine prints.
void check_run_options(const Arguments& line, const RuntimeLine& parts, const Node& node,
                       const EngineSettings& engine, Problems& problems) {
  const std::string_view name = to_string(engine.container->runtime);
  for (std::size_t i = parts.options; i < parts.image; ++i) {
    const std::string& word = line[i];
    const std::string next = i + 1 < parts.image ? line[i + 1] : "";
    if (detaches(word)) {
      problems.add(node.at,
                   fmt::format("{}: weir reads what the engine prints: leave {} out", name, word));
    }
    if (word == "--cidfile" || word.starts_with("--cidfile=")) {
      problems.add(node.at, fmt::format("{}: weir knows the container by a --cidfile of its own: "
                                        "leave yours out",
                                        name));
    }
    const auto variable = variable_set_by(word, next);
    if (variable && carries_probes(*variable)) {
      problems.add(node.at,
                   fmt::format("{}: {} is what probes come in by: write it under \"env\", where "
                               "weir adds to it",
                               name, *variable));
    }
  }
}

void check_srun_options(const Arguments& line, const RuntimeLine& parts, const Node& node,
                        Problems& problems) {
  for (std::size_t i = parts.options; i < parts.image; ++i) {
    std::string_view value = line[i];
    if (value == "--export") {
      value = i + 1 < line.size() ? std::string_view(line[i + 1]) : std::string_view();
    } else if (value.starts_with("--export=")) {
      value.remove_prefix(9);
    } else {
      continue;
    }
    if (value == "ALL" || value.starts_with("ALL,")) continue;
    problems.add(node.at,
                 "srun: --export must begin with ALL, for what probes need comes along that way");
  }
}

}  // namespace

void parse_container(const Node& node, EngineSettings& engine, Parsing& parsing) {
  Problems& problems = parsing.problems;
  ContainerSettings container;
  if (node.kind == Node::Kind::map) {
    Fields fields(node, "container", problems);
    const Node* runtime = fields.need("runtime");
    const Node* image = fields.take("image");
    const Node* args = fields.take("args");
    fields.finish();
    const auto chosen = runtime == nullptr ? std::nullopt : read_runtime(*runtime, problems);
    if (!chosen) return;
    container.runtime = *chosen;
    if (image != nullptr) container.image = read_text(*image, "image", problems).value_or("");
    if (args != nullptr) container.args = read_arguments(*args, "container's args", problems);
    if (std::find(container.args.begin(), container.args.end(), "{args}") != container.args.end()) {
      problems.add(args->at, "{args} can only stand in an engine's command");
    }
  } else {
    const auto chosen = read_runtime(node, problems);
    if (!chosen) return;
    container.runtime = *chosen;
  }
  engine.container = container;
  const std::string_view name = to_string(container.runtime);
  if (std::find(engine.probes.begin(), engine.probes.end(), "instructions") !=
      engine.probes.end()) {
    problems.add(node.at, fmt::format("instructions are counted from outside, where they would be "
                                      "those of {}: not of an engine in a container",
                                      name));
  }
  if (engine.command.empty() || engine.command.front().empty()) return;
  const bool whole = begins_with(engine.command, container.runtime);
  if (whole && (!container.image.empty() || !container.args.empty())) {
    problems.add(node.at,
                 fmt::format("the command begins with {}: image and args stand there", name));
    return;
  }
  if (!whole && container.image.empty() && container.runtime != Runtime::srun) {
    problems.add(
        node.at,
        fmt::format("the command does not begin with {0}: write {0} run … IMAGE before it, or\n"
                    "  container: {{runtime: {0}, image: IMAGE}}",
                    name));
    return;
  }
  const Arguments line = whole_command(container, engine.command);
  const auto parts = parts_of(line, container.runtime);
  if (!parts) {
    problems.add(node.at, fmt::format("the command has no \"run\": weir carries probes into "
                                      "\"{} run\" alone",
                                      name));
  } else if (container.runtime == Runtime::srun) {
    check_srun_options(line, *parts, node, problems);
  } else {
    check_run_options(line, *parts, node, engine, problems);
  }
}

}  // namespace weir::config
