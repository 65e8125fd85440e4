# weir_module(NAME [HOT] [FOLDER folder] [USES module...] [LIBS target...]): one static library per folder of gate/.
# Link order follows the reading order of gate/README.md; ci/check-layers holds the includes to it.
set(WEIR_WARNINGS -Wall -Wextra -Wconversion -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  list(APPEND WEIR_WARNINGS -Wno-deprecated-declarations)  # std::stable_sort of GCC 12's library uses one
endif()
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

# What nearly every file of gate/ includes, compiled twice, since a compiler takes it only with the optimization that it was
# compiled with: by weir_base for HOT code, by weir_model for the rest.
set(CMAKE_PCH_WARN_INVALID OFF)  # one that does not fit is not used: slower, and no error
function(weir_headers target)
  cmake_parse_arguments(ARG "HOT" "" "" ${ARGN})
  if(NOT WEIR_PCH)
    return()
  endif()
  target_compile_options(${target} PRIVATE -pthread)  # some libraries ask for it: it has to be the same for all
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    target_compile_options(${target} PRIVATE -fPIC)  # as libraries are: clang takes no headers of other code
  endif()
  if(target STREQUAL weir_base OR target STREQUAL weir_model)
    target_precompile_headers(${target} PRIVATE <fmt/format.h> <nlohmann/json.hpp> <tl/expected.hpp> <algorithm> <array> <chrono>
                              <cmath> <cstdint> <functional> <map> <memory> <mutex> <optional> <set> <span> <string>
                              <string_view> <thread> <unordered_map> <utility> <variant> <vector>)
  elseif(ARG_HOT)
    target_precompile_headers(${target} REUSE_FROM weir_base)
  else()
    target_precompile_headers(${target} REUSE_FROM weir_model)
  endif()
endfunction()

# A gate waits for the engine: only code that reads much or computes much (HOT) is worth the time of -O2. The rest is not
# optimized, which clang compiles in half the time of -O1; GCC gains nothing below -Og. Packages carry small code.
set(WEIR_COLD $<$<CONFIG:Release>:$<IF:$<BOOL:${WEIR_STATIC}>,-Os,$<IF:$<CXX_COMPILER_ID:Clang>,-O0,-Og>>>)

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
  set(hot "")  # this module and those below it
  foreach(used ${ARG_USES})
    get_target_property(below weir_${used} WEIR_HOT)
    list(APPEND hot ${below})
  endforeach()
  if(ARG_HOT)
    list(APPEND hot weir_${name})
  endif()
  list(REMOVE_DUPLICATES hot)
  set_target_properties(weir_${name} PROPERTIES WEIR_HOT "${hot}")
  if(ARG_HOT)
    weir_headers(weir_${name} HOT)
  else()
    target_compile_options(weir_${name} PRIVATE ${WEIR_COLD})
    weir_headers(weir_${name})
  endif()
endfunction()

# Links a program's HOT modules before its own code: of the copies that each file has of a template, the linker takes the
# first one, and here that is the optimized one.
function(weir_hot_first program)
  if(APPLE OR WEIR_SANITIZE)
    return()
  endif()
  set(libraries "")
  foreach(module ${ARGN})
    get_target_property(hot weir_${module} WEIR_HOT)
    foreach(target ${hot})
      list(APPEND libraries $<TARGET_FILE:${target}>)
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES libraries)
  target_link_options(${program} PRIVATE "LINKER:--whole-archive" ${libraries} "LINKER:--no-whole-archive")
endfunction()
