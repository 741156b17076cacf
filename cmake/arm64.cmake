# Toolchain: Debian's cross compiler for arm64, with libraries of that architecture installed beside those of this machine
# (apt-get install PACKAGE:arm64). `tests/arm64` makes a root that has all of it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# Programs of arm64 that the build runs, and the unit tests; by its name, for not every machine has it run them by itself.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
# pkg-config would tell of this machine's own libraries.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
