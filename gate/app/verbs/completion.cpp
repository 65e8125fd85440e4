// weir completion bash|zsh|fish: prints a completion script, made from the command line's own
// description so that it has every option.

#include "gate/app/options.hpp"
#include "gate/base/text.hpp"

namespace weir::app {
namespace {

// Returns the subcommands and long options of a verb.
std::vector<std::string> completions(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* verb : app.get_subcommands({})) words.push_back(verb->get_name());
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // not in --help
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  return words;
}

// Adds the completions of a verb ("baseline accept") and of all its subcommands to the table.
void collect(const CLI::App& app, const std::string& path,
             std::vector<std::pair<std::string, std::string>>& table) {
  table.emplace_back(path, text::join(completions(app), " "));
  for (const CLI::App* verb : app.get_subcommands({})) {
    collect(*verb, path.empty() ? verb->get_name() : path + " " + verb->get_name(), table);
  }
}

// Returns the completion script for bash. zsh can run it too after a first line, which `is_zsh`
// adds.
std::string bash_script(const CLI::App& app, bool is_zsh) {
  std::vector<std::pair<std::string, std::string>> words_by_path;
  collect(app, "", words_by_path);
  std::string cases;
  std::vector<std::string> verbs;
  for (const auto& [path, words] : words_by_path) {
    cases += fmt::format("    \"{}\") words=\"{}\" ;;\n", path, words);
    if (!path.empty()) verbs.push_back(text::split(path, ' ').back());
  }
  return fmt::format(
      "{}_weir() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" path=\"\" word words=\"\"\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    case \"$word\" in -*) ;; *) case \" {} \" in *\" $word \"*) path=\"${{path:+$path "
      "}}$word\" ;; esac ;; esac\n"
      "  done\n"
      "  case \"$path\" in\n{}"
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\") $(compgen -f -- \"$current\"))\n"
      "}}\n"
      "complete -o filenames -F _weir weir\n",
      is_zsh ? "autoload -U +X bashcompinit && bashcompinit\n" : "", text::join(verbs, " "), cases);
}

// Returns the completion script for fish: verbs, their subcommands and options.
std::string fish_script(const CLI::App& app) {
  std::string text = "complete -c weir -f\n";
  for (const CLI::App* verb : app.get_subcommands({})) {
    text += fmt::format("complete -c weir -n __fish_use_subcommand -a {} -d '{}'\n",
                        verb->get_name(), verb->get_description());
    const std::string condition = fmt::format("'__fish_seen_subcommand_from {}'", verb->get_name());
    for (const CLI::App* subcommand : verb->get_subcommands({})) {
      text += fmt::format("complete -c weir -n {} -a {}\n", condition, subcommand->get_name());
    }
    for (const CLI::Option* option : verb->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        text += fmt::format("complete -c weir -n {} -l {} -F\n", condition, name);
      }
    }
  }
  return text;
}

}  // namespace

// Adds `weir completion`, which prints a shell's completion script.
void add_completion(const Verb& verb) {
  auto shell = std::make_shared<std::string>();
  verb.option("shell", *shell, "", "Shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->footer("Example:\n  weir completion bash > /etc/bash_completion.d/weir");
  verb.set_flow(
      shell, [verb](const flow::Job& job, const std::string& name) -> Result<flow::Answer> {
        const CLI::App& app = *verb->get_parent();
        job.world.terminal.write(
            1, name == "fish" ? fish_script(app) : bash_script(app, /*zsh=*/name == "zsh"));
        return flow::Answer{};
      });
}

}  // namespace weir::app
