// weir device matrix: one engine on every twin, side by side.
#include <algorithm>
#include <memory>

#include "gate/app/command_line.hpp"
#include "gate/app/session.hpp"
#include "gate/app/twins.hpp"
#include "gate/app/veiled.hpp"
#include "gate/base/text.hpp"
#include "gate/report/texts.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

struct MatrixOptions {
  CommonOptions common;
  std::vector<std::string> twins;
  std::string html;
  bool all = false;
};

bool matches(const std::vector<std::string>& globs, const std::string& name) {
  return globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
           return text::glob_match(glob, name);
         });
}

// The backends of the config give way to one for each twin, with the arguments and the environment
// of the first that asks for Vulkan.
Result<void> put_twins_in(config::Settings& settings, const std::vector<std::string>& globs,
                          const std::vector<std::string>& known) {
  const auto base = std::find_if(
      settings.backends.begin(), settings.backends.end(),
      [](const config::BackendSettings& backend) { return backend.device == "vulkan"; });
  if (base == settings.backends.end()) {
    return fail(Code::config,
                "{}: no backend with device: vulkan, whose arguments twins could take",
                settings.file);
  }
  std::vector<config::BackendSettings> backends;
  for (const std::string& twin : known) {
    if (!matches(globs, twin)) continue;
    config::BackendSettings backend = *base;
    backend.name = backend.twin.emplace(twin);
    backends.push_back(std::move(backend));
  }
  if (backends.empty()) {
    return fail(Code::usage, "no description matches {}; weir device list shows those there are",
                text::join(globs));
  }
  settings.backends = std::move(backends);
  settings.include.clear();  // they name backends that are not there now
  settings.exclude.clear();
  return {};
}

Result<ExitCode> show_matrix(const MatrixOptions& options) {
  sys::RealFiles files;
  CommonOptions whole = options.common;
  whole.cells.clear();  // they name twins, which are no backends yet
  WEIR_TRY(Loaded loaded, load_config(whole, files));
  const auto known = known_twins(files, sys::absolute(sys::folder_of(options.common.config)));
  WEIR_CHECK(put_twins_in(*loaded.settings, options.twins, known));
  WEIR_TRY(config::Matrix matrix, config::expand(*loaded.settings));
  WEIR_TRY(loaded.cells, config::select(matrix, options.common.cells, loaded.veil));
  MeasureOptions wanted;
  wanted.plan.times = false;
  wanted.plan.instruction_processes = 0;
  CommonOptions common = options.common;
  common.out = sys::join_path(options.common.out, "devices");
  const config::Veil veil = loaded.veil;
  auto outcome = measure_loaded(std::move(loaded), common, wanted, files);
  if (!outcome) return tl::unexpected(veiled(std::move(outcome).error(), veil));
  Measured measured = std::move(*outcome);
  veil_profiles(measured);
  answer(options.common, report::device_matrix_text(measured.profiles, options.all,
                                                    width_of(answer_stream(options.common))));
  if (!options.html.empty()) {
    WEIR_CHECK(files.write_atomic(options.html, report::device_matrix_html(measured.profiles)));
  }
  return write_profiles(options.common, measured.profiles);
}

}  // namespace

void add_device_matrix(CLI::App& device) {
  CLI::App* verb = device.add_subcommand(
      "matrix", "One engine's counts and kernels on every described device, side by side");
  auto options = std::make_shared<MatrixOptions>();
  add_common(*verb, options->common, Takes::config);
  verb->add_option("--cell", options->common.cells,
                   "Only cells whose name (with the twin as backend) matches GLOB")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  verb->add_option("--twin", options->twins, "Only twins whose name matches GLOB; may be repeated")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  verb->add_option("--html", options->html, "Also write a page")->type_name("FILE");
  verb->add_flag("--all", options->all, "Also rows that are the same on all devices");
  verb->footer(
      "Takes arguments and environment of the first backend with device: vulkan.\n\n"
      "Example:\n  weir device matrix --cell '*/tiny-llama/*/decode' --twin 'amd-*'");
  set_action(*verb, [options] { return show_matrix(*options); });
}

}  // namespace weir::app
