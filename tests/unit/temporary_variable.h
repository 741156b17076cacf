#pragma once

#include <cstdlib>

namespace podqos {

/// Sets an environment variable, or unsets it, until the object goes; it was not set before.
class TemporaryVariable {
 public:
  /// @param value  nullptr: unset
  TemporaryVariable(const char* name, const char* value) : name_{name} {
    if (value != nullptr) ::setenv(name, value, 1);
  }
  ~TemporaryVariable() { ::unsetenv(name_); }
  TemporaryVariable(const TemporaryVariable&) = delete;
  TemporaryVariable& operator=(const TemporaryVariable&) = delete;

 private:
  const char* name_;
};

}  // namespace podqos
