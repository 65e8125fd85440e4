# weir_add_suites(PROGRAM [LABELS label] [ENVIRONMENT assignment]): a test for each suite of a GoogleTest
# program, named PROGRAM.Suite, whose cases run one after another in one process: what a suite sets up, it sets up once.
# With -P (after the program is built): writes OUTPUT, which ctest includes, from the program's own list.
if(CMAKE_SCRIPT_MODE_FILE)
  execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "(^|\n)[A-Za-z0-9_/]+\\.[^\n]*" suites "${listed}")
  get_filename_component(name ${PROGRAM} NAME)
  # Skipped is what ends with a list of skipped cases and none of failed ones.
  set(skipped "[=[\\[  SKIPPED \\] [0-9]+ tests?, listed below:\n(\\[  SKIPPED \\] [^\n]*\n)+$]=]")
  set(tests "")
  foreach(suite ${suites})
    string(REGEX REPLACE "^\n?([A-Za-z0-9_/]+)\\..*" "\\1" suite "${suite}")
    string(APPEND tests "add_test([=[${name}.${suite}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${suite}.*]=])\n"
                        "set_tests_properties([=[${name}.${suite}]=] PROPERTIES ${PROPERTIES} SKIP_REGULAR_EXPRESSION ${skipped})\n")
  endforeach()
  file(WRITE ${OUTPUT} "${tests}")
  return()
endif()

function(weir_add_suites program)
  cmake_parse_arguments(ARG "" "LABELS;ENVIRONMENT" "" ${ARGN})
  set(properties TIMEOUT 1200 WORKING_DIRECTORY "[=[${CMAKE_CURRENT_BINARY_DIR}]=]")
  foreach(property LABELS ENVIRONMENT)
    if(ARG_${property})
      list(APPEND properties ${property} "[=[${ARG_${property}}]=]")
    endif()
  endforeach()
  list(JOIN properties " " properties)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${program}_suites.cmake)
  add_custom_command(TARGET ${program} POST_BUILD BYPRODUCTS ${output} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${program}> -DOUTPUT=${output} "-DPROPERTIES=${properties}"
            -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE})
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${output})
endfunction()
