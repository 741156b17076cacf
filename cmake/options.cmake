string(FIND "${CMAKE_CXX_FLAGS}" "-fsanitize=" sanitizer_flag)
set(PODQOS_SANITIZED OFF)
if(NOT sanitizer_flag EQUAL -1)
  set(PODQOS_SANITIZED ON)
endif()

# What every podqos target is compiled with; nothing is set directory-wide.
add_library(podqos_options INTERFACE)
target_compile_features(podqos_options INTERFACE cxx_std_23)
target_include_directories(podqos_options INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/generated")
target_compile_definitions(podqos_options INTERFACE PODQOS_VERSION="${PROJECT_VERSION}")
target_compile_options(
  podqos_options
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wconversion
            -Wsign-conversion
            # GCC 12's plain -Wshadow takes the enumerators of an enum class for shadows of globals.
            $<IF:$<CXX_COMPILER_ID:GNU>,-Wshadow=local,-Wshadow>
            -Wold-style-cast
            -Wformat=2
            -fstack-protector-strong
            -fPIE
            "$<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond;-Wduplicated-branches;-Wlogical-op;-Wuseless-cast>"
            # GCC 12 sees overlaps in std::string that are not there (GCC bug 105651).
            "$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>"
            # std::stable_sort of GCC 12 uses a function that C++17 deprecates.
            $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
            # Instrumented code hides from GCC 12 that an optional is empty.
            "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${PODQOS_SANITIZED}>>:-Wno-maybe-uninitialized>"
            $<$<BOOL:${PODQOS_WERROR}>:-Werror>)
# _FORTIFY_SOURCE needs optimisation, which tests do without, and hides reads from the sanitizers.
set(fortified "$<AND:$<CONFIG:Release,RelWithDebInfo>,$<NOT:$<BOOL:$<TARGET_PROPERTY:PODQOS_TEST>>>>")
target_compile_options(podqos_options INTERFACE "$<${fortified}:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>")
# The hook is read into memory on every container start: what nothing calls stays out of it.
# Nor is a loop that runs once worth bytes to align it.
target_compile_options(podqos_options INTERFACE -ffunction-sections -fdata-sections
                                                "$<$<CXX_COMPILER_ID:GNU>:-fno-align-loops;-fno-align-jumps>")
target_link_options(podqos_options INTERFACE -Wl,-z,relro,-z,now -Wl,--gc-sections)

# Programs with the property PODQOS_WHOLE are optimised as a whole: nearly all code of the hook runs once in a process,
# where what counts is how many of its pages are touched, and a call between libraries costs the most. The libraries hold
# machine code as well, for all that is linked without waiting for that. Without PODQOS_LTO they behave the same, and are
# built in half the time.
if(PODQOS_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(whole "$<AND:$<CONFIG:Release>,$<BOOL:$<TARGET_PROPERTY:PODQOS_WHOLE>>>")
  set(library "$<AND:$<CONFIG:Release>,$<STREQUAL:$<TARGET_PROPERTY:TYPE>,STATIC_LIBRARY>>")
  target_compile_options(podqos_options INTERFACE "$<$<OR:${whole},${library}>:-flto=auto;-ffat-lto-objects>")
  target_link_options(podqos_options INTERFACE "$<$<CONFIG:Release>:$<IF:${whole},-flto=auto,-fno-lto>>")
endif()
