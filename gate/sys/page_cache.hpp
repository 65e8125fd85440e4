// The system's cache of files.
#pragma once

#include <string>

namespace weir::sys {

// Reads all of a file into the system's cache, so that a process that maps or reads it does not
// wait for the disk. Does nothing if it cannot be read.
void read_into_cache(const std::string& path);

}  // namespace weir::sys
