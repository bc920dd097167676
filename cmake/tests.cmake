# hf_unit_test(NAME test_x SOURCES a.c ... LIBS lib ...): one `check` program, registered with CTest, no fork so that
# the sanitizers see everything. Its working directory is the source tree.
function(hf_unit_test)
  cmake_parse_arguments(T "" "NAME" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${T_NAME} ${T_SOURCES})
  target_link_libraries(${T_NAME} PRIVATE ${T_LIBS} hf_flags PkgConfig::CHECK)
  add_test(NAME ${T_NAME} COMMAND ${T_NAME} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${T_NAME} PROPERTIES LABELS "unit;${T_LABELS}" TIMEOUT 300
    ENVIRONMENT "HF_BIN_DIR=${CMAKE_BINARY_DIR}/bin;HF_GUEST_DIR=${HF_GUEST_DIR};HF_BUILD_DIR=${CMAKE_BINARY_DIR}")
endfunction()

# hf_fuzz_target(NAME fuzz_x SOURCES a.c LIBS lib): a libFuzzer program (clang only).
function(hf_fuzz_target)
  cmake_parse_arguments(T "" "NAME" "SOURCES;LIBS" ${ARGN})
  add_executable(${T_NAME} ${T_SOURCES})
  target_link_libraries(${T_NAME} PRIVATE ${T_LIBS} hf_flags)
  target_link_options(${T_NAME} PRIVATE -fsanitize=fuzzer)
  target_compile_options(${T_NAME} PRIVATE -fsanitize=fuzzer)
endfunction()
