// A plan that is checked and can be carried out: what measuring and showing a plan share.
#pragma once

#include <optional>
#include <utility>

#include "gate/app/session.hpp"
#include "gate/app/veiled.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/machine.hpp"

namespace weir::app {

struct Ready {
  Loaded loaded;
  run::Plan plan;
  sys::Machine machine;
  std::optional<BaseSide> base;
};

// Looks at devices, programs and places, makes twins and the base's side. Fails with Code::config
// naming all that is wrong; errors may hold private names.
[[nodiscard]] Result<Ready> make_ready(Loaded loaded, const CommonOptions& options,
                                       const MeasureOptions& wanted, sys::Files& files,
                                       const sys::Stop& stop);

// Of a run's header: HEAD when it was measured, where nothing differed from that.
[[nodiscard]] std::optional<std::string> commit_of_run(const Json& extra);

[[nodiscard]] config::Veil veil_of(const config::Settings& settings,
                                   const std::string& config_file);

// What an error of `work` says of private names stays here.
template <class Work>
auto veil_errors(const config::Veil& veil, const Work& work) {
  return work().map_error([&](Error error) { return veiled(std::move(error), veil); });
}

}  // namespace weir::app
