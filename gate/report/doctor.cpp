// Writes a diagnosis of machine, engines and probes as text and as JSON.
#include "gate/report/doctor.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/text_style.hpp"

namespace weir::report {
namespace {

constexpr std::size_t k_indent = 2;
constexpr std::size_t k_tag = 9;  // "perhaps" and two blanks
constexpr std::string_view k_red = "1;31", k_yellow = "1;33", k_green = "32";

// How the state of a probe is shown.
struct Tag {
  std::string_view state, word, color;
  int order;  // problems first
};
constexpr std::array<Tag, 5> k_tags{{{"blind", "blind", k_red, 0},
                                     {"absent", "no probe", k_yellow, 1},
                                     {"perhaps", "perhaps", k_yellow, 2},
                                     {"sees", "sees", k_green, 3},
                                     {"unused", "unused", k_dim, 4}}};

const Tag& tag_of(const DoctorFit& fit) {
  const auto tag = std::ranges::find(k_tags, fit.state, &Tag::state);
  return tag == k_tags.end() ? k_tags.back() : *tag;
}

// Returns true if weir.yaml attaches a probe that sees nothing of the engine.
bool is_wrong(const DoctorFit& fit) {
  return fit.asked_for && (fit.state == "blind" || fit.state == "absent");
}

std::size_t count_worse(const std::vector<DoctorFinding>& findings) {
  return static_cast<std::size_t>(
      std::ranges::count(findings, Health::worse, &DoctorFinding::health));
}

// Writes a diagnosis as text, problems first.
class Writer {
 public:
  Writer(const Diagnosis& diagnosis, const TextStyle& style)
      : diagnosis_(diagnosis), page_(style.color, columns_of(style.width, 20)) {}

  std::string run() {
    headline();
    for (const DoctorCommand& command : diagnosis_.commands) show(command);
    machine();
    // Engines with problems come before the others.
    for (const bool with_problem : {true, false}) {
      for (const DoctorEngine& engine : diagnosis_.engines) {
        const bool has_problem =
            !engine.error.empty() || std::ranges::any_of(engine.fits, is_wrong);
        if (has_problem == with_problem) show(engine);
      }
    }
    devices();
    return page_.finish();
  }

 private:
  void headline() {
    const std::size_t noise = count_worse(diagnosis_.findings);
    const std::size_t number = count_problems(diagnosis_) - noise;
    std::string words = number == 0
                            ? "nothing is in the way"
                            : text::plural(number, "thing is", "things are") + " in the way";
    if (noise > 0)
      words += fmt::format("; {} times worse", text::plural(noise, "thing makes", "things make"));
    page_.add_paragraph("weir doctor: ", words, k_indent, k_bold, number == 0 ? k_green : k_red);
    page_.add_paragraph("", printable_line(diagnosis_.machine), k_indent, "", k_dim);
    if (diagnosis_.is_idle) {
      page_.add_paragraph("", "no engine was started: --cell CELL runs one, and asks a server",
                          k_indent, "", k_dim);
    }
  }

  void title(const std::string& text, const std::string& more = "") {
    page_.add_blank_line();
    // paragraph() does not wrap its head, so clip it.
    page_.add_paragraph(
        clip_middle(printable_line(text), page_.width() - 2) + (more.empty() ? "" : "  "),
        printable_line(more), k_indent, k_bold, k_dim);
  }

  // Writes "  worse    governor: …", and the cure below after an arrow.
  void entry(std::string_view tag, std::string_view color, const std::string& what,
             const std::string& cure) {
    const std::string head = std::string(k_indent, ' ') + pad_right(tag, k_tag);
    page_.add_paragraph(head, printable_line(what), head.size(), color);
    if (cure.empty()) return;
    const std::string arrow = std::string(head.size(), ' ') + "→ ";
    page_.add_paragraph(arrow, printable_line(cure), head.size() + 2, k_dim);
  }

  // Writes all items in one entry, between `before` and `after`; nothing without items.
  void list(std::string_view tag, std::string_view color, const char* before,
            const std::vector<std::string>& all, const char* after = "") {
    if (!all.empty()) entry(tag, color, before + text::join(all) + after, "");
  }

  void entry(const DoctorFinding& finding) {
    const std::string text = fmt::format("{}: {}", finding.subject, finding.what);
    if (finding.health == Health::worse) return entry("worse", k_red, text, finding.cure);
    entry("note", k_dim, text, finding.cure);
  }

  void machine() {
    if (diagnosis_.findings.empty() && diagnosis_.fine.empty() && diagnosis_.unknown.empty())
      return;
    title("machine");
    for (const DoctorFinding& finding : diagnosis_.findings) entry(finding);
    list("fine", "32", "", diagnosis_.fine);
    list("unknown", k_dim, "", diagnosis_.unknown, " (hidden on this machine)");
  }

  // Writes a command that was run: how it ended and the last lines that it printed.
  void show(const DoctorCommand& command) {
    title(command.cell);
    if (command.line.empty()) {
      for (const std::string& line : command.unread) entry("not run", k_red, line, "");
      return;
    }
    entry("runs", "", command.line, "");
    entry("in", k_dim, command.folder, "");
    if (command.answered) entry("asked", k_green, "it answered a request", "");
    if (command.outcome.empty() && !command.answered) entry("ended", k_green, "well", "");
    if (!command.outcome.empty()) entry("ended", k_red, command.outcome, "");
    for (const std::string& line : command.unread) entry("error", k_red, line, "");
    for (const std::string& line : command.warnings) entry("warning", k_yellow, line, "");
    const bool is_silent = command.out.empty() && command.err.empty();
    if (is_silent && !command.answered) entry("printed", k_dim, "nothing", "");
    for (const std::string& line : command.out) entry("out", k_dim, line, "");
    for (const std::string& line : command.err) entry("err", k_dim, line, "");
  }

  // Writes an engine with its findings and its probes: problems first, unused probes in one line.
  void show(const DoctorEngine& engine) {
    title(engine.name, engine.path == engine.name ? "" : engine.path);
    if (!engine.error.empty()) {
      entry("error", "1;31", engine.error, "");
      return;
    }
    for (const DoctorFinding& finding : engine.findings) entry(finding);
    std::vector<DoctorFit> fits = engine.fits;
    std::ranges::stable_sort(fits, {}, [](const DoctorFit& fit) {
      return std::pair(!is_wrong(fit), tag_of(fit).order);
    });
    std::vector<std::string> unused;
    for (std::size_t i = 0; i < fits.size(); ++i) {
      const DoctorFit& fit = fits[i];
      std::string probes = fit.probe;
      // Probes with the same reason share an entry.
      const auto shares_reason = [&](const DoctorFit& other) {
        return std::tie(fit.state, fit.how, fit.cure) ==
                   std::tie(other.state, other.how, other.cure) &&
               is_wrong(fit) == is_wrong(other);
      };
      while (i + 1 < fits.size() && fit.state != "unused" && shares_reason(fits[i + 1])) {
        ++i;
        probes += ", " + fits[i].probe;
      }
      const Tag& tag = tag_of(fit);
      if (fit.state == "unused" && !fit.asked_for) {
        unused.push_back(fit.probe);
        continue;
      }
      std::string text = fmt::format("{}: {}", probes, fit.how);
      if (is_wrong(fit)) text += "; weir.yaml attaches it";
      entry(tag.word, tag.color, text, fit.cure);
    }
    list("unused", k_dim, "", unused);
  }

  // Writes a device once, with the number of those that are like it.
  void show(const DoctorDevice& device) {
    const auto& devices = diagnosis_.devices;
    const bool is_first = &*std::ranges::find(devices, device) == &device;
    if (!is_first) return;
    std::string more = device.type == "cpu" ? "software" : device.type;
    if (!device.driver.empty()) text::append_item(more, ", ", "driver " + device.driver);
    const auto number = std::ranges::count(devices, device);
    std::string line = number > 1 ? fmt::format("{} × {}", number, device.name) : device.name;
    if (!more.empty()) line += fmt::format(" ({})", more);
    entry(device.api, "", line, "");
  }

  // Writes probes, devices and Vulkan layers; warns if there are only software devices.
  void devices() {
    const bool is_examined = !diagnosis_.probes.empty() || !diagnosis_.probes_error.empty();
    if (!is_examined) return;
    title("probes and devices");
    list("probes", "", "", diagnosis_.probes);
    if (diagnosis_.probes.empty()) entry("error", "1;31", diagnosis_.probes_error, "");
    bool software = false, hardware = false;
    for (const DoctorDevice& device : diagnosis_.devices) {
      if (device.api != "vulkan") continue;
      show(device);
      if (device.type == "cpu") {
        software = true;
      } else {
        hardware = true;
      }
    }
    if (software && !hardware) {
      entry(
          "", "", "a software device alone: counts are good, times say nothing of a GPU",
          "ggml leaves such devices out unless GGML_VK_VISIBLE_DEVICES=0 is in the backend's env");
    }
    for (const DoctorDevice& device : diagnosis_.devices) {
      if (device.api != "vulkan") show(device);
    }
    for (const auto& [api, error] : diagnosis_.device_errors)
      entry(api, "", "no device: " + error, "");
    list("layers", "", "always on: ", diagnosis_.always_layers);
    list("layers", "", "on request: ", diagnosis_.layers);
  }

  const Diagnosis& diagnosis_;
  Page page_;
};

Json findings_json(const std::vector<DoctorFinding>& findings) {
  return collect<Json>(findings, [](const DoctorFinding& finding) {
    return Json{{"subject", finding.subject},
                {"health", finding.health == Health::worse ? "worse" : "note"},
                {"what", finding.what},
                {"cure", finding.cure}};
  });
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

std::size_t count_problems(const Diagnosis& diagnosis) {
  std::size_t number = count_worse(diagnosis.findings);
  if (!diagnosis.probes_error.empty() && diagnosis.probes.empty()) ++number;
  for (const DoctorEngine& engine : diagnosis.engines) {
    number += count_worse(engine.findings);
    if (!engine.error.empty()) ++number;
    number += static_cast<std::size_t>(std::ranges::count_if(engine.fits, is_wrong));
  }
  for (const DoctorCommand& command : diagnosis.commands) number += command.has_failed() ? 1 : 0;
  return number;
}

std::string doctor_text(const Diagnosis& diagnosis, const TextStyle& style) {
  return Writer(diagnosis, style).run();
}

std::string doctor_json(const Diagnosis& diagnosis) {
  Json engines = Json::array();
  for (const DoctorEngine& engine : diagnosis.engines) {
    Json fits = Json::array();
    for (const DoctorFit& fit : engine.fits) {
      fits.push_back({{"probe", fit.probe},
                      {"state", fit.state},
                      {"how", fit.how},
                      {"cure", text_or_null(fit.cure)},
                      {"asked_for", fit.asked_for}});
    }
    engines.push_back({{"name", engine.name},
                       {"path", text_or_null(engine.path)},
                       {"error", text_or_null(engine.error)},
                       {"findings", findings_json(engine.findings)},
                       {"probes", std::move(fits)}});
  }
  Json commands = Json::array();
  for (const DoctorCommand& command : diagnosis.commands) {
    commands.push_back({{"cell", command.cell},
                        {"line", command.line},
                        {"folder", command.folder},
                        {"failure", text_or_null(command.outcome)},
                        {"unread", command.unread},
                        {"answered", command.answered},
                        {"warnings", command.warnings},
                        {"out", command.out},
                        {"err", command.err}});
  }
  Json devices = Json::array(), errors = Json::object();
  for (const DoctorDevice& device : diagnosis.devices) {
    devices.push_back({{"api", device.api},
                       {"name", device.name},
                       {"type", text_or_null(device.type)},
                       {"driver", text_or_null(device.driver)}});
  }
  for (const auto& [api, error] : diagnosis.device_errors) errors[api] = error;
  const Json json{
      {"schema", "weir.doctor/1"},
      {"weir", diagnosis.weir_version},
      {"problems", count_problems(diagnosis)},
      {"machine",
       {{"name", diagnosis.machine},
        {"findings", findings_json(diagnosis.findings)},
        {"fine", diagnosis.fine},
        {"unknown", diagnosis.unknown}}},
      {"probes", diagnosis.probes},
      {"probes_error", text_or_null(diagnosis.probes_error)},
      {"devices", std::move(devices)},
      {"device_errors", std::move(errors)},
      {"vulkan_layers", {{"always", diagnosis.always_layers}, {"on_request", diagnosis.layers}}},
      {"engines", std::move(engines)},
      {"commands", std::move(commands)}};
  return dump_json(json, 2) + "\n";
}

}  // namespace weir::report
