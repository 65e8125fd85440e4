# What makes a fault in weir harder to use, in releases: ci/packaging/hardened reads it from the programs. Sanitizers
# watch over the same, and _FORTIFY_SOURCE needs an optimizing compiler.
if(WEIR_SANITIZE OR APPLE OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  return()
endif()
include(CheckPIESupported)
check_pie_supported()  # -pie for what CMAKE_POSITION_INDEPENDENT_CODE compiled
set(branches -fcf-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(branches -mbranch-protection=standard)
endif()
foreach(option -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 ${branches})
  add_compile_options($<$<CONFIG:Release>:${option}>)
endforeach()
add_link_options($<$<CONFIG:Release>:LINKER:-z,relro,-z,now>)
