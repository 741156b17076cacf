# Not every linker packs relocations on every architecture (GNU ld 2.40 does on x86-64, and not on arm64).
include(CheckLinkerFlag)
check_linker_flag(CXX "LINKER:--fatal-warnings,-z,pack-relative-relocs" PODQOS_LINKER_PACKS)

# podqos_link_whole(TARGET): how those programs are linked that start with every container, or live as long as the node.
function(podqos_link_whole target)
  set_target_properties(${target} PROPERTIES PODQOS_WHOLE ON)
  if(PODQOS_STATIC)
    # No dynamic loading on every container start: 0.8 ms instead of 2.4 ms. And a process that stays holds a megabyte
    # less than with the shared libraries, of which it needs few functions each.
    # Packed relocations: a static-pie program relocates itself at each start.
    target_link_options(${target} PRIVATE -static-pie $<$<BOOL:${PODQOS_LINKER_PACKS}>:-Wl,-z,pack-relative-relocs>)
    target_link_libraries(${target} PRIVATE podqos_dbus_static)
  endif()
endfunction()

# podqos_link_map(TARGET): the linker writes down what the program is made of, in link/<target>.map of the build tree:
# packages name by it whose code is in them (packaging/sbom).
function(podqos_link_map target)
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/link")
  target_link_options(${target} PRIVATE "-Wl,-Map=${PROJECT_BINARY_DIR}/link/${target}.map")
endfunction()
