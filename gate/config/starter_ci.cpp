#include <cmath>

#include <fmt/format.h>

#include "gate/config/starter.hpp"

namespace weir::config {
namespace {

// Where the Action and the releases are.
constexpr std::string_view k_home = "OWNER/weir";

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// A scalar that GitHub takes for text, whatever is in it.
std::string for_github(std::string_view text) {
  return yaml_quoted(replaced(std::string(text), "${{", "${{ '${{' }}"));
}

// One word of a POSIX shell.
std::string for_shell(std::string_view text) {
  return "'" + replaced(std::string(text), "'", "'\\''") + "'";
}

}  // namespace

std::string starter_github(const StarterCi& found) {
  std::string text = fmt::format(
      "# weir: gates every pull request beside its base. Make the check \"weir\" required. Pull "
      "requests\n"
      "# from forks, merge queues, nights on a GPU: https://github.com/{}, docs/github-action.md\n"
      "name: weir\n"
      "on:\n"
      "  pull_request:\n"
      "  push: {{branches: [main, master]}}\n"
      "permissions: {{}}\n"
      "concurrency:\n"
      "  group: weir-${{{{ github.event.pull_request.number || github.sha }}}}\n"
      "  cancel-in-progress: ${{{{ github.event_name == 'pull_request' }}}}\n"
      "\n"
      "jobs:\n"
      "  weir:\n"
      "    runs-on: ubuntu-24.04\n"
      "    timeout-minutes: {:.0f}\n"
      "    permissions: {{contents: read, pull-requests: write, checks: write, statuses: write}}\n"
      "    steps:\n"
      "      - uses: actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2\n"
      "        with: {{persist-credentials: false, fetch-depth: 0}}\n",
      k_home, std::ceil(found.minutes));
  if (found.vulkan) {
    text +=
        "      - name: A Vulkan loader, and Mesa's software device\n"
        "        run: sudo apt-get update -q && sudo apt-get install -y -q libvulkan1 "
        "mesa-vulkan-drivers\n";
  }
  text +=
      "      - name: The engine and its models\n"
      "        run: |\n"
      "          # Build your engine here and get the models, where weir.yaml looks for them.\n"
      "          echo '::error title=weir::.github/workflows/weir.yml: say how the engine is "
      "built'\n"
      "          exit 1\n";
  text += fmt::format(
      "      - uses: {}@v1\n"
      "        with:\n",
      k_home);
  if (found.folder != ".") {
    text += fmt::format("          working-directory: {}\n", for_github(found.folder));
  }
  if (found.file != "weir.yaml") {
    text += fmt::format("          config: {}\n", for_github(found.file));
  }
  text +=
      "          # Times are only reported so far: take this out once they have limits.\n"
      "          counts-only: true\n";
  if (!found.builds) {
    text +=
        "          # Stored baselines decide. Beside the base's own program: give the engine a "
        "\"build\"\n"
        "          # in weir.yaml, and take this out.\n"
        "          against: none\n";
  }
  return text;
}

std::string starter_gitlab(const StarterCi& found) {
  std::string text = fmt::format(
      "# weir: gates every merge request against stored baselines. A note on the merge request and "
      "a\n"
      "# report in OpenMetrics: https://github.com/{}, docs/ci/gitlab.yml\n"
      "weir:\n"
      "  image: debian:12\n"
      "  rules:\n"
      "    - if: $CI_PIPELINE_SOURCE == \"merge_request_event\"\n"
      "    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH\n"
      "  timeout: {:.0f} minutes\n"
      "  variables: {{GIT_DEPTH: \"0\"}}\n"
      "  before_script:\n"
      "    - apt-get update -q && apt-get install -y -q --no-install-recommends ca-certificates "
      "curl "
      "git{}\n"
      "    - deb=weir_{}_amd64.deb\n"
      "    - for file in \"$deb\" \"$deb.sha256\"; do curl --fail --silent --show-error --location "
      "--remote-name \"https://github.com/{}/releases/download/v{}/$file\"; done\n"
      "    - sha256sum --check \"$deb.sha256\" && dpkg --install \"$deb\"\n"
      "    # Build your engine here and get the models, where weir.yaml looks for them.\n"
      "    - echo 'say how the engine is built' && exit 1\n"
      "  script:\n",
      k_home, std::ceil(found.minutes), found.vulkan ? " libvulkan1 mesa-vulkan-drivers" : "",
      found.version, k_home, found.version);
  if (found.folder != ".") {
    text += fmt::format("    - {}\n", yaml_quoted("cd " + for_shell(found.folder)));
  }
  std::string gate =
      "weir gate --counts-only --json verdict.json --junit weir.xml --openmetrics metrics.txt";
  if (found.file != "weir.yaml") gate += " --config " + for_shell(found.file);
  text += fmt::format("    - {}\n", yaml_quoted(gate));
  const std::string before = found.folder == "." ? "" : found.folder + "/";
  text += fmt::format(
      "  artifacts:\n"
      "    when: always\n"
      "    paths: [{}, {}]\n"
      "    reports: {{junit: {}, metrics: {}}}\n",
      yaml_quoted(before + "verdict.json"), yaml_quoted(before + "weir-out/"),
      yaml_quoted(before + "weir.xml"), yaml_quoted(before + "metrics.txt"));
  return text;
}

}  // namespace weir::config
