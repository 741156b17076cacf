#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "common/base/error.h"
#include "common/sys/fd.h"
#include "ctl/configure/engine.h"
#include "ctl/configure/report.h"

namespace podqos::ctl {

// `configure` is two processes. The child drops what privileges it does not need, parses the
// engine's files and writes them. Its parent parses nothing of them; it alone executes programs,
// which a process with the syscall filter cannot.

/// What the child tells: the files are as planned.
struct FilesDone {
  bool changed = false;
  Way way = Way::kWrapper;
  /// When the files that have podqos's registration, or had it, were changed before.
  std::optional<std::chrono::sys_time<std::chrono::nanoseconds>> last_change = std::nullopt;
};

/// What the parent answers.
struct Verdict {
  bool keep = false;  ///< otherwise the child restores the files
  ConfigureOutcome outcome;
};

/// The child's end of the conversation.
class FilesProcess {
 public:
  FilesProcess(sys::UniqueFd to_parent, sys::UniqueFd from_parent)
      : to_parent_(std::move(to_parent)), from_parent_(std::move(from_parent)) {}
  /// Tells the parent, and waits for its verdict. A parent that has died keeps nothing.
  [[nodiscard]] Verdict report(const FilesDone& done) const;

 private:
  sys::UniqueFd to_parent_;
  sys::UniqueFd from_parent_;
};

/// The parent's end.
class FilesProcessHandle {
 public:
  /// Starts the child.
  /// @param run  what it does; returns its exit status
  [[nodiscard]] static Result<FilesProcessHandle> start(
      const std::function<int(const FilesProcess&)>& run);

  /// Waits until the files are as planned; nullopt if the child ended without it (a dry run or an
  /// error, which it has printed).
  [[nodiscard]] std::optional<FilesDone> wait_for_files() const;
  /// Sends the verdict, and waits for the end of the child. @return its exit status.
  [[nodiscard]] int finish(const Verdict& verdict);
  /// Waits for the end of a child that wants no verdict. @return its exit status.
  [[nodiscard]] int wait() const;

 private:
  FilesProcessHandle(pid_t child, sys::UniqueFd from_child, sys::UniqueFd to_child)
      : child_(child), from_child_(std::move(from_child)), to_child_(std::move(to_child)) {}
  pid_t child_;
  sys::UniqueFd from_child_;
  sys::UniqueFd to_child_;
};

}  // namespace podqos::ctl
