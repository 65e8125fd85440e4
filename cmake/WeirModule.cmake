# weir_module(NAME [HOT] [FOLDER folder] [USES module...] [LIBS target...]): one static library per folder of gate/.
# Link order follows the reading order of gate/README.md; ci/check-layers holds the includes to it.
set(WEIR_WARNINGS -Wall -Wextra -Wconversion -Wshadow)
if(WEIR_WERROR)
  list(APPEND WEIR_WARNINGS -Werror)
  # GCC takes much for uninitialised when a sanitizer is on (its manual says so); shown, but no error.
  if(WEIR_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND WEIR_WARNINGS -Wno-error=maybe-uninitialized)
  endif()
endif()

if(APPLE)
  set(WEIR_OTHER_SYSTEM linux)
else()
  set(WEIR_OTHER_SYSTEM macos)
endif()

function(weir_compile_options target)
  target_compile_options(${target} PRIVATE ${WEIR_WARNINGS})
  if(WEIR_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${WEIR_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${WEIR_SANITIZE})
    if(WEIR_SANITIZE MATCHES "undefined")
      # Null and sizes of objects end at the address sanitizer when they are used, and take GCC a third of its time with
      # casts to a wrong class, which go unseen here. The fuzzers, clang's, have all.
      target_compile_options(${target} PUBLIC -fno-sanitize-recover=undefined $<$<CXX_COMPILER_ID:GNU>:-fno-sanitize=null$<COMMA>vptr$<COMMA>object-size>)
    endif()
  endif()
endfunction()

# What nearly every file of gate/ includes, compiled once by weir_base and read by the others.
set(CMAKE_PCH_WARN_INVALID OFF)  # one that does not fit is not used: slower, and no error
function(weir_headers target)
  if(NOT WEIR_PCH)
    return()
  endif()
  target_compile_options(${target} PRIVATE -pthread)  # some libraries ask for it: it has to be the same for all
  if(target STREQUAL weir_base)
    target_precompile_headers(${target} PRIVATE <fmt/format.h> <nlohmann/json.hpp> <tl/expected.hpp> <algorithm> <array> <chrono>
                              <cmath> <cstdint> <functional> <map> <memory> <mutex> <optional> <set> <span> <string>
                              <string_view> <thread> <unordered_map> <utility> <variant> <vector>)
  else()
    target_precompile_headers(${target} REUSE_FROM weir_base)
  endif()
endfunction()

# What a gate waits for is the engine: only what reads much or computes much is worth the time of -O2. -Og is compiled in
# 4/5 of the time of -O1; what is carried to others is to be small.
set(WEIR_COLD $<$<CONFIG:Release>:$<IF:$<BOOL:${WEIR_STATIC}>,-Os,-Og>>)

function(weir_module name)
  cmake_parse_arguments(ARG "HOT" "FOLDER" "USES;LIBS" ${ARGN})
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER ${name})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_FOLDER}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  # What differs between systems is a file for each: x_linux.cpp, x_macos.cpp.
  list(FILTER sources EXCLUDE REGEX "_${WEIR_OTHER_SYSTEM}\\.cpp$")
  add_library(weir_${name} STATIC ${sources})
  target_include_directories(weir_${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
  foreach(used ${ARG_USES})
    target_link_libraries(weir_${name} PUBLIC weir_${used})
  endforeach()
  target_link_libraries(weir_${name} PUBLIC tl::expected ${WEIR_FMT} ${ARG_LIBS})
  weir_compile_options(weir_${name})
  if(NOT ARG_HOT)
    target_compile_options(weir_${name} PRIVATE ${WEIR_COLD})
  endif()
  weir_headers(weir_${name})
endfunction()
