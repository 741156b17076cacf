# podqos_dbus: libdbus-1 by its name, not by its file: the linker takes the shared library for a dynamic program and
# the archive for a static one, which needs podqos_dbus_static besides. A dynamic program with the property
# PODQOS_DBUS_ARCHIVE, which needs podqos_dbus_client, gets the archive as well.
pkg_check_modules(dbus REQUIRED dbus-1>=1.12)
add_library(podqos_dbus INTERFACE)
target_include_directories(podqos_dbus SYSTEM INTERFACE ${dbus_INCLUDE_DIRS})
target_link_directories(podqos_dbus INTERFACE ${dbus_LIBRARY_DIRS})
find_library(dbus_archive NAMES libdbus-1.a HINTS ${dbus_LIBRARY_DIRS} REQUIRED)
target_link_libraries(podqos_dbus INTERFACE $<IF:$<BOOL:$<TARGET_PROPERTY:PODQOS_DBUS_ARCHIVE>>,${dbus_archive},${dbus_LIBRARIES}>)

set(stand_ins "${PROJECT_SOURCE_DIR}/common/cgroup/static_dbus")
add_library(podqos_dbus_client OBJECT EXCLUDE_FROM_ALL "${stand_ins}/no_server.cpp")
add_library(podqos_dbus_static OBJECT EXCLUDE_FROM_ALL "${stand_ins}/no_server.cpp" "${stand_ins}/never_called.cpp")
foreach(library podqos_dbus_client podqos_dbus_static)
  target_link_libraries(${library} PUBLIC podqos_options)
endforeach()
