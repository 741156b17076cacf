# podqos_seccomp_header: generated/podqos_seccomp.h, the allow-lists of common/sys/seccomp_gen/filters.h as BPF.
#
# The generator runs on the build machine and compiles for its architecture; a cross build needs an emulator
# (CMAKE_CROSSCOMPILING_EMULATOR), through which CMake then runs it.
add_library(podqos_seccomp_compile STATIC "${PROJECT_SOURCE_DIR}/common/sys/seccomp_gen/compile.cpp")
target_link_libraries(podqos_seccomp_compile PUBLIC podqos_base PkgConfig::seccomp)
add_executable(podqos_seccomp_gen "${PROJECT_SOURCE_DIR}/common/sys/seccomp_gen/main.cpp")
target_link_libraries(podqos_seccomp_gen PRIVATE podqos_seccomp_compile)
set_target_properties(podqos_seccomp_gen PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/generated")

set(podqos_seccomp_h "${PROJECT_BINARY_DIR}/generated/podqos_seccomp.h")
add_custom_command(
  OUTPUT "${podqos_seccomp_h}"
  COMMAND podqos_seccomp_gen > "${podqos_seccomp_h}"
  DEPENDS podqos_seccomp_gen
  COMMENT "Compiling the seccomp allow-lists"
  VERBATIM)
add_custom_target(podqos_seccomp_header DEPENDS "${podqos_seccomp_h}")
