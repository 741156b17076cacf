/* Stands for whatever comes next: a runtime that does nothing, or with an argument "wait" a container's process. */
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "wait") == 0) {
    for (;;) pause();
  }
  return 0;
}
