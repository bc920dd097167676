# Functions for programs and images of the guest; used by guest/CMakeLists.txt and by the tests that make images of their
# own. Guest programs are static, never sanitized, and the same bytes whatever directory or build type they come from.

# hf_guest_program(NAME [FREESTANDING] SOURCES file...)
function(hf_guest_program name)
  cmake_parse_arguments(P "FREESTANDING" "" "SOURCES" ${ARGN})
  add_executable(${name} ${P_SOURCES})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/programs POSITION_INDEPENDENT_CODE OFF LINK_OPTIONS "")
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE HF_VERSION="${PROJECT_VERSION}")
  target_compile_options(${name} PRIVATE ${HF_WARNING_FLAGS} -O2 -g0 -fno-pie -fno-common
    -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=.)
  target_link_options(${name} PRIVATE -static -s -Wl,--build-id=none -Wl,-z,noexecstack)
  if(P_FREESTANDING)
    target_compile_options(${name} PRIVATE -ffreestanding -fno-stack-protector -fcf-protection=none)
    target_link_options(${name} PRIVATE -nostdlib)
  else()
    target_compile_options(${name} PRIVATE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  endif()
endfunction()

# hf_guest_image(NAME name ARTIFACT artifact PROGRAM target OUTPUT_DIR dir [ENTRIES line...] [LISTS file...]):
# dir/name.cpio and dir/name.manifest.json with the program as /init, more entry lines, and more lists of entries.
function(hf_guest_image)
  cmake_parse_arguments(I "" "NAME;ARTIFACT;PROGRAM;OUTPUT_DIR" "ENTRIES;LISTS" ${ARGN})
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${I_NAME}.entries)
  list(PREPEND I_ENTRIES "dir /dev 0755" "char /dev/console 0600 5 1" "file /init 0755 $<TARGET_FILE:${I_PROGRAM}>")
  list(JOIN I_ENTRIES "\n" entries)
  file(GENERATE OUTPUT ${list} CONTENT "${entries}\n")
  add_custom_command(
    OUTPUT ${I_OUTPUT_DIR}/${I_NAME}.cpio ${I_OUTPUT_DIR}/${I_NAME}.manifest.json
    COMMAND ${CMAKE_COMMAND} -E make_directory ${I_OUTPUT_DIR}
    COMMAND mkinitramfs ${I_ARTIFACT} ${I_OUTPUT_DIR}/${I_NAME}.cpio ${I_OUTPUT_DIR}/${I_NAME}.manifest.json ${list}
            ${I_LISTS}
    DEPENDS ${I_PROGRAM} ${list} ${I_LISTS}
    COMMENT "Building ${I_NAME}.cpio" VERBATIM)
endfunction()
