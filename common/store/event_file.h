#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/events/event.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"

namespace podqos::store {

// The journal of events is two files of the state directory, mode 0600, of lines of JSON
// (codec/event_json.h). The first one becomes the second, in place of the former, when it has half
// of the size that the journal may have.
constexpr const char* kEventsName = "events";
constexpr const char* kOlderEventsName = "events.1";

/// Appends to the journal of events. Any number of programs may do so at once, without the state
/// lock: each event is one write(2), and a file is renamed by the holder of a lock of its own.
class EventWriter {
 public:
  /// @param size  of both files together; 0: nothing is recorded
  explicit EventWriter(Bytes size) : half_(size.value() / 2) {}

  /// Whether anything is recorded.
  [[nodiscard]] bool is_on() const { return half_ > 0; }
  /// Appends an event. Takes two system calls; with the first event of a program, and its end,
  /// four.
  /// @param state  the state directory, which has been checked (make_state_directory())
  /// @return why it is not recorded. A part of it may be, if no space is left: readers skip that.
  [[nodiscard]] Status append(const sys::Directory& state, const core::Event& event);

 private:
  std::int64_t half_;
  sys::UniqueFd file_;  ///< the one that was named kEventsName when it was opened
};

/// What was read of the journal.
struct EventList {
  std::vector<core::Event> events;  ///< in the order in which they were written
  std::size_t damaged = 0;          ///< lines, or parts of lines, that are not events
};

/// Reads the journal of events, and what is appended to it later. Takes no lock.
class EventReader {
 public:
  /// @return the errors of opening the directory, with what to do about it; kConflict as
  ///         make_state_directory()
  static Result<EventReader> open(const std::string& state_dir);

  /// What was appended since the last call; all that there is at the first. A line that has no end
  /// yet comes with a later call.
  /// @return kConflict if one of the files is not a regular file; else the error of opening or
  ///         reading it
  [[nodiscard]] Result<EventList> next();

 private:
  /// One of the files, whatever its name is by now.
  struct File {
    sys::OpenFile opened;
    std::string rest = {};  ///< of a line without an end
  };

  explicit EventReader(sys::Directory state) : state_(std::move(state)) {}
  [[nodiscard]] Status find_files();
  static Status read(File& file, EventList& out);

  sys::Directory state_;
  std::list<File> files_;  ///< the older one first
};

/// All events of the journal; empty without a state directory.
/// @return the errors of EventReader
[[nodiscard]] Result<EventList> read_events(const std::string& state_dir);

}  // namespace podqos::store
