// How a program that weir ran came to its end, for people.
#pragma once

#include <string>

#include "gate/sys/process.hpp"

namespace weir::app {

// "it exited with code 1"; "" where it ended as it should.
[[nodiscard]] std::string ended_words(const sys::Finished& finished, const sys::ProcessSpec& spec);

}  // namespace weir::app
