# podqos_dbus: libdbus-1 by its name, not by its file: the linker takes the shared library for a dynamic program and
# the archive for a static one, which needs podqos_dbus_static besides.
pkg_check_modules(dbus REQUIRED dbus-1>=1.12)
add_library(podqos_dbus INTERFACE)
target_include_directories(podqos_dbus SYSTEM INTERFACE ${dbus_INCLUDE_DIRS})
target_link_directories(podqos_dbus INTERFACE ${dbus_LIBRARY_DIRS})
target_link_libraries(podqos_dbus INTERFACE ${dbus_LIBRARIES})

set(stand_ins "${PROJECT_SOURCE_DIR}/common/cgroup/static_dbus")
add_library(podqos_dbus_static OBJECT EXCLUDE_FROM_ALL "${stand_ins}/no_server.cpp" "${stand_ins}/never_called.cpp")
target_link_libraries(podqos_dbus_static PUBLIC podqos_options)
