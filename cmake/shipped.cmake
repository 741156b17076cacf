# podqos_link_whole(TARGET [ORDER FILE]): how those programs are linked that start with every container, or live as long
# as the node. FILE is a linker script that lays functions side by side, as tests/bench/order writes it.
function(podqos_link_whole target)
  cmake_parse_arguments(PARSE_ARGV 1 given "" ORDER "")
  set_target_properties(${target} PROPERTIES PODQOS_WHOLE ON)
  if(PODQOS_STATIC)
    # No dynamic loading on every container start: 0.8 ms instead of 2.4 ms. And a process that stays holds a megabyte
    # less than with the shared libraries, of which it needs few functions each.
    # Packed relocations: a static-pie program relocates itself at each start.
    target_link_options(${target} PRIVATE -static-pie -Wl,-z,pack-relative-relocs)
    target_link_libraries(${target} PRIVATE podqos_dbus_static)
    if(given_ORDER)
      # What is optimised as a whole becomes sections again, and the map tells where each of them went.
      target_link_options(${target} PRIVATE -ffunction-sections "-Wl,-T,${given_ORDER}"
                          "-Wl,-Map,${CMAKE_CURRENT_BINARY_DIR}/${target}.map")
      set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${given_ORDER}")
    endif()
  endif()
endfunction()
