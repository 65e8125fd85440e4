#include "gate/app/probing.hpp"

#include "gate/probes/read/locate.hpp"
#include "gate/probes/read/read.hpp"
#include "gate/sys/process.hpp"

namespace weir::app {
namespace {

class InstalledProbes final : public run::Probing {
 public:
  InstalledProbes(sys::Files& files, probes::Places places)
      : files_(files), places_(std::move(places)) {}

  Result<config::Environment> attach(std::span<const std::string> names, const std::string& folder,
                                     const config::Environment* inside) override {
#ifdef __APPLE__
    if (inside != nullptr) {
      return fail(Code::unavailable, "containers run Linux, whose probes are not built on macOS");
    }
#endif
    const auto look_up = [&](std::string_view variable) -> std::optional<std::string> {
      if (inside == nullptr) return sys::environment_value(std::string(variable));
      const auto found = inside->find(std::string(variable));
      return found == inside->end() ? std::nullopt : std::optional(found->second);
    };
    config::Environment added;
    for (const std::string& name : names) {
      WEIR_TRY(const auto one, probes::environment_for(name, places_, folder, files_, look_up));
      // Loader lists of several probes are joined; the caller keeps what is there already.
      for (const auto& [variable, value] : one) {
        std::string& there = added[variable];
        if (there != value) there += (there.empty() ? "" : ":") + value;
      }
    }
    return added;
  }

  Result<std::vector<profile::ProbeCounts>> collect(std::span<const std::string> names,
                                                    const std::string& folder) override {
    std::vector<profile::ProbeCounts> counts;
    for (const std::string& name : names) {
      WEIR_TRY(profile::ProbeCounts one, probes::collect(files_, folder, name));
      counts.push_back(std::move(one));
    }
    return counts;
  }

  [[nodiscard]] std::string folder() const override { return places_.probes; }

 private:
  sys::Files& files_;
  probes::Places places_;
};

}  // namespace

Result<std::unique_ptr<run::Probing>> make_probing(sys::Files& files) {
  WEIR_TRY(probes::Places places, probes::locate(files));
  return std::make_unique<InstalledProbes>(files, std::move(places));
}

}  // namespace weir::app
