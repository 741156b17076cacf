# The hook's own start (hook/start.cpp says what it is good for) calls what is hidden inside glibc: it is for the one
# version that it was written for. With any other the hook is right as well, but slower in a virtual machine.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles(
  "#include <features.h>
   #if !defined(__x86_64__) || __GLIBC__ != 2 || __GLIBC_MINOR__ != 36
   #error another one
   #endif
   int main() {}" PODQOS_KNOWN_LIBC)

include(CMakeDependentOption)
cmake_dependent_option(PODQOS_OWN_START "Start the hook without asking the processor what it can do" ON
                       "PODQOS_STATIC;PODQOS_KNOWN_LIBC" OFF)

# podqos_own_start(TARGET): let a static-pie program start in that way.
function(podqos_own_start target)
  target_sources(${target} PRIVATE "${PROJECT_SOURCE_DIR}/hook/start.cpp")
  # libc.a is machine code, and so is what takes the place of a part of it.
  set_source_files_properties("${PROJECT_SOURCE_DIR}/hook/start.cpp" TARGET_DIRECTORY ${target}
                              PROPERTIES COMPILE_OPTIONS "$<$<CXX_COMPILER_ID:GNU>:-fno-lto>")
endfunction()
