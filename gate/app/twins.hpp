// Device twins: which descriptions a config may name, and what an engine needs to see one.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/config/matrix.hpp"
#include "gate/run/prepare.hpp"
#include "gate/sys/files.hpp"

namespace weir::app {

// The names `twin:` may take in the config of `config_folder`; none where the driver is not
// installed.
[[nodiscard]] std::vector<std::string> known_twins(const sys::Files& files,
                                                   const std::string& config_folder);

// The twins that `cells` ask for, by name. Their descriptions are compiled into `out`/twins, where
// engines' drivers read them. Code::data for a description that is none.
[[nodiscard]] Result<std::map<std::string, run::DeviceTwin>> make_twins(
    std::span<const config::Cell> cells, const std::string& config_folder, const std::string& out,
    sys::Files& files);

}  // namespace weir::app
