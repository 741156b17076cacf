# A layer of common/ is one static library of all its sources, named podqos_<layer>.
#
# podqos_layer(<layer> [DEPENDS <layer>...] [LIBS <target>...])
#   DEPENDS  layers whose headers this layer may include
#   LIBS     third-party targets that only this layer's sources see
function(podqos_layer layer)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${layer}/*.cpp")
  add_library(podqos_${layer} STATIC ${sources})
  target_link_libraries(podqos_${layer} PUBLIC podqos_options)
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(podqos_${layer} PUBLIC podqos_${dependency})
  endforeach()
  target_link_libraries(podqos_${layer} PRIVATE ${ARG_LIBS})
endfunction()
