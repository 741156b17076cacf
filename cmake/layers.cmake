# podqos_unite(TARGET): with PODQOS_UNITY the compiler reads the sources of the target ten at a time, and the headers once
# for these ten, which are most of what it reads.
function(podqos_unite target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${PODQOS_UNITY} UNITY_BUILD_BATCH_SIZE 10)
  # A class of one source may use the unnamed namespace of that source, which GCC takes for a header now.
  target_compile_options(${target} PRIVATE $<$<AND:$<BOOL:${PODQOS_UNITY}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
endfunction()

# podqos_precompile(TARGET FAMILY HEADER...): with PODQOS_UNITY, Clang compiles these headers once for all targets of the
# family, which are compiled with the same options. GCC gains nothing by it, and so tells of the source that lacks an
# include.
function(podqos_precompile target family)
  if(NOT PODQOS_UNITY OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    return()
  endif()
  get_property(first GLOBAL PROPERTY "PODQOS_PRECOMPILED_${family}")
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    set_property(GLOBAL PROPERTY "PODQOS_PRECOMPILED_${family}" ${target})
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# podqos_library(TARGET): a library of the programs' sources.
function(podqos_library target)
  podqos_unite(${target})
  podqos_precompile(${target} libraries <algorithm> <chrono> <functional> <map> <memory> <ranges> <set> <string> <vector>
                    <CLI/CLI.hpp> <nlohmann/json.hpp>)
endfunction()

# A layer of common/ is one static library of all its sources, named podqos_<layer>.
#
# podqos_layer(<layer> [FOLDERS <folder>...] [DEPENDS <layer>...] [LIBS <target>...])
#   FOLDERS  parts of the layer that have a folder in its own
#   DEPENDS  layers whose headers this layer may include
#   LIBS     third-party targets that only this layer's sources see
function(podqos_layer layer)
  cmake_parse_arguments(ARG "" "" "FOLDERS;DEPENDS;LIBS" ${ARGN})
  list(TRANSFORM ARG_FOLDERS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/${layer}/")
  list(TRANSFORM ARG_FOLDERS APPEND "/*.cpp")
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${layer}/*.cpp" ${ARG_FOLDERS})
  add_library(podqos_${layer} STATIC ${sources})
  podqos_library(podqos_${layer})
  target_link_libraries(podqos_${layer} PUBLIC podqos_options)
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(podqos_${layer} PUBLIC podqos_${dependency})
  endforeach()
  target_link_libraries(podqos_${layer} PRIVATE ${ARG_LIBS})
endfunction()
