// Reads each file, link and attribute of a list, and compares it with what the list says: the
// least that a program can do to find out whether all is as it should be.
//
// A list is of entries "KIND PATH\0SIZE\0CONTENT": KIND is f (file), l (symbolic link) or an
// attribute's name.
// Exits with 1 at the first difference, which it names.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static char content[1 << 20];

static ssize_t read_file(const char *path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t size = read(file, content, sizeof content);
  close(file);
  return size;
}

static ssize_t read_entry(const char *kind, const char *path) {
  if (strcmp(kind, "f") == 0) return read_file(path);
  if (strcmp(kind, "l") == 0) return readlink(path, content, sizeof content);
  return lgetxattr(path, kind, content, sizeof content);
}

int main(int argc, char **argv) {
  struct stat status;
  const int list = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
  if (list < 0 || fstat(list, &status) != 0) return 2;
  const size_t length = (size_t)status.st_size;
  char *const entries = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, list, 0);
  if (entries == MAP_FAILED) return 2;
  for (char *at = entries; at < entries + length;) {
    char *const kind = at;
    char *const path = strchr(at, ' ') + 1;
    path[-1] = '\0';
    const char *const size = path + strlen(path) + 1;
    const char *const wanted = size + strlen(size) + 1;
    const ssize_t count = atol(size);
    if (read_entry(kind, path) != count || memcmp(content, wanted, (size_t)count) != 0) {
      fprintf(stderr, "%s differs\n", path);
      return 1;
    }
    at = (char *)wanted + count;
  }
  return 0;
}
