// The system's own sysctls, for apple_facts.hpp; only on macOS.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/sysctl.h>

#include "gate/sys/apple_facts.hpp"

namespace weir::sys {

inline Sysctls real_sysctls() {
  return {[](const char* name) -> std::optional<std::int64_t> {
            std::int64_t number = 0;  // narrower ones fill its lower half: both processors' order
            std::size_t size = sizeof number;
            if (sysctlbyname(name, &number, &size, nullptr, 0) != 0) return std::nullopt;
            return number;
          },
          [](const char* name) -> std::string {
            char text[256] = {};
            std::size_t size = sizeof text - 1;
            return sysctlbyname(name, text, &size, nullptr, 0) == 0 ? std::string(text)
                                                                    : std::string();
          }};
}

}  // namespace weir::sys
