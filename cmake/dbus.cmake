# podqos_dbus: libdbus-1, as a shared library where programs are linked so, and as an archive in a static program.
#
# By its name, not by its file: the linker then takes what suits the program.
pkg_check_modules(dbus REQUIRED dbus-1>=1.12)
add_library(podqos_dbus INTERFACE)
target_include_directories(podqos_dbus SYSTEM INTERFACE ${dbus_INCLUDE_DIRS})
target_link_directories(podqos_dbus INTERFACE ${dbus_LIBRARY_DIRS})
target_link_libraries(podqos_dbus INTERFACE ${dbus_LIBRARIES})
