#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/sys/directory.h"

namespace podqos::store {

constexpr mode_t kDirectoryMode = 0700;  ///< of the state directory and its subdirectories

// Names in the state directory.
constexpr const char* kLockName = "lock";
constexpr std::string_view kNodeName = "node.json";         ///< core::NodeState without its rows
constexpr std::string_view kRowsName = "rows";              ///< its rows (codec/rows.h)
constexpr std::string_view kPodsName = "pods";              ///< directory of <uid>.json files
constexpr std::string_view kRecordSuffix = ".json";         ///< of a pod's record
constexpr std::string_view kContainersName = "containers";  ///< directory of index_name() links

/// Name of the entries of a container id: its 64-bit FNV-1a hash as 16 hex digits.
[[nodiscard]] std::string index_name(std::string_view id);

/// Whether `name` has the form that index_name() returns. False for temporary and corrupt files.
[[nodiscard]] bool is_index_name(std::string_view name);

/// The files in which a Store keeps its records, by their paths in the state directory. A file in
/// `containers` is a symbolic link, its content the target.
class StateFiles {
 public:
  StateFiles() = default;
  StateFiles(const StateFiles&) = delete;
  StateFiles& operator=(const StateFiles&) = delete;
  StateFiles(StateFiles&&) = default;
  StateFiles& operator=(StateFiles&&) = default;
  virtual ~StateFiles() = default;

  /// @return nullopt if it is missing; kTooLarge beyond codec::kMaxRecordSize; kCorrupt for a file
  /// that should be a link.
  [[nodiscard]] virtual Result<std::optional<std::string>> read(const std::string& path) = 0;
  /// Creates or replaces a file, in one step.
  [[nodiscard]] virtual Status write(const std::string& path, std::string_view content) = 0;
  /// A missing file is not an error.
  [[nodiscard]] virtual Status remove(const std::string& path) = 0;
  /// Reads the rows; "" if there are none, or more than any node has.
  [[nodiscard]] virtual Result<std::string> read_rows() = 0;
  /// Writes a part of the rows in its place; the file is made if it is missing.
  [[nodiscard]] virtual Status write_rows(std::size_t offset, std::string_view bytes) = 0;
  /// Renames a corrupt file, so that it counts as missing.
  /// @return its new name, "" if it has none
  [[nodiscard]] virtual Result<std::string> set_aside(const std::string& path) = 0;
  /// The names in a subdirectory, sorted; none if it is missing.
  [[nodiscard]] virtual Result<std::vector<std::string>> list(std::string_view subdirectory) = 0;
  /// Gives up the lock.
  [[nodiscard]] virtual Status unlock() = 0;
  /// The state directory; nullptr if the files are in none.
  [[nodiscard]] virtual const sys::Directory* directory() const = 0;
};

}  // namespace podqos::store
