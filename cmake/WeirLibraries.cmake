# The C++ libraries that weir is linked with: as the system has them, or (WEIR_STATIC) linked in, for
# a program that starts on other distributions. What is C and on every system stays dynamic: glibc.
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
set(WEIR_FMT fmt::fmt)
set(WEIR_SPDLOG spdlog::spdlog)
set(shared_suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
if(WEIR_STATIC)
  # Debian has no static fmt and spdlog, but their headers hold all of them.
  set(WEIR_FMT fmt::fmt-header-only)
  set(WEIR_SPDLOG spdlog::spdlog_header_only)
  set_target_properties(spdlog::spdlog_header_only PROPERTIES
    INTERFACE_LINK_LIBRARIES "Threads::Threads;fmt::fmt-header-only")
  if(APPLE)
    # Stripped while it is linked: stripping afterwards would break its signature.
    add_link_options(-s)
  else()
    add_link_options(-static-libgcc $<$<LINK_LANGUAGE:CXX>:-static-libstdc++>)
  endif()
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()
pkg_check_modules(YAML_CPP REQUIRED IMPORTED_TARGET yaml-cpp)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
set(CMAKE_FIND_LIBRARY_SUFFIXES ${shared_suffixes})
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl>=7.87)
set(WEIR_CURL PkgConfig::CURL)
if(WEIR_STATIC)
  # Its static form needs libraries that have none: opened when it is used (gate/sys/opened/curl.cpp).
  add_library(weir_opened STATIC ${CMAKE_SOURCE_DIR}/gate/sys/opened/curl.cpp)
  target_include_directories(weir_opened PUBLIC ${CURL_INCLUDE_DIRS})
  target_link_libraries(weir_opened PUBLIC ${CMAKE_DL_LIBS})
  # libcurl's own signatures have an enumeration before the "...".
  target_compile_options(weir_opened PRIVATE $<$<CXX_COMPILER_ID:Clang>:-Wno-varargs>)
  set(WEIR_CURL weir_opened)
endif()
