# Compiler flags of every target. `hf_flags` is an interface library that each target of the project links.
add_library(hf_flags INTERFACE)
target_compile_definitions(hf_flags INTERFACE _GNU_SOURCE HF_VERSION="${PROJECT_VERSION}")
target_include_directories(hf_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(hf_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Werror
  -fstack-protector-strong -fno-common)
if(HF_SANITIZE)
  target_compile_options(hf_flags INTERFACE -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(hf_flags INTERFACE -fsanitize=address,undefined)
else()
  target_compile_options(hf_flags INTERFACE -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-clash-protection -fcf-protection)
  target_link_options(hf_flags INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>)
endif()
