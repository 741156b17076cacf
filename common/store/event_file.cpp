#include "common/store/event_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <utility>

#include "common/base/text.h"
#include "common/codec/event_json.h"
#include "common/store/state_directory.h"

namespace podqos::store {

namespace {

/// Most bytes of one file that are read: more than any setting allows.
constexpr std::int64_t kMostRead = 64LL << 20U;

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// Renames a full file.
/// @return false: another program is about to, so that this event still goes to this file
Result<bool> rename_full(const sys::Directory& state, int file, const struct stat& status) {
  // Ends when the file is closed.
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) return false;
  struct stat named{};
  const bool is_missing = ::fstatat(state.fd(), kEventsName, &named, AT_SYMLINK_NOFOLLOW) != 0;
  // Another program has renamed it since it was opened here.
  if (is_missing || !is_same(named, status)) return true;
  if (::renameat(state.fd(), kEventsName, state.fd(), kOlderEventsName) == 0) return true;
  return fail_errno(errno,
                    cat("rename ", state.path(), "/", kEventsName, " to ", kOlderEventsName));
}

Status write_line(const sys::Directory& state, int file, std::string_view line) {
  const ssize_t written = ::write(file, line.data(), line.size());
  const int err = written < 0 ? errno : ENOSPC;
  if (std::cmp_equal(written, line.size())) return {};
  return fail_errno(err, cat("write ", state.path(), "/", kEventsName));
}

/// Podman runs two hooks for one start of a container, which fail alike.
bool is_repeated(const EventList& list, core::Event event) {
  constexpr UnixMillis kStart{10'000};
  if (event.kind != core::EventKind::kFailed || list.events.empty()) return false;
  const core::Event& last = list.events.back();
  if (event.time - last.time > kStart) return false;
  event.time = last.time;
  return event == last;
}

void note_line(std::string_view line, EventList& out) {
  if (line.empty()) return;
  auto event = codec::parse_event(line);
  if (!event) {
    ++out.damaged;
    // The line may follow a part of another one, whose writer has died or had no space.
    const std::size_t start = line.rfind(codec::kEventStart);
    if (start != std::string_view::npos && start > 0)
      event = codec::parse_event(line.substr(start));
  }
  if (event && !is_repeated(out, *event)) out.events.push_back(*std::move(event));
}

}  // namespace

Status EventWriter::append(const sys::Directory& state, const core::Event& event) {
  if (!is_on()) return {};
  struct stat status{};
  // Other programs may fill a file while this one opens it, but hardly twice.
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (file_.valid()) {
      if (::fstat(file_.get(), &status) != 0)
        return fail_errno(errno, "stat the journal of events");
    } else {
      PODQOS_ASSIGN(auto opened, state.open_file(kEventsName, O_WRONLY | O_APPEND | O_CREAT));
      file_ = std::move(opened.fd);
      status = opened.status;
    }
    const bool is_removed = status.st_nlink == 0;
    bool is_left = is_removed;
    if (!is_removed && status.st_size >= half_) {
      PODQOS_ASSIGN(is_left, rename_full(state, file_.get(), status));
    }
    if (!is_left) return write_line(state, file_.get(), codec::format_event(event));
    file_ = {};
  }
  return fail(ErrorCode::kBusy, cat(state.path(), "/", kEventsName,
                                    ": other programs have filled it each time it was opened"));
}

Result<EventReader> EventReader::open(const std::string& state_dir) {
  PODQOS_ASSIGN(auto state, open_state_directory(state_dir));
  return EventReader{std::move(state)};
}

Result<EventList> EventReader::next() {
  PODQOS_TRY(find_files());
  EventList out;
  for (auto file = files_.begin(); file != files_.end();) {
    // What is removed before it is read is read to its end.
    struct stat status{};
    const bool removed = ::fstat(file->opened.fd.get(), &status) == 0 && status.st_nlink == 0;
    PODQOS_TRY(read(*file, out));
    file = removed ? files_.erase(file) : std::next(file);
  }
  return out;
}

Status EventReader::find_files() {
  // If the file is renamed in between, it is found twice, not missed.
  std::list<File> found;
  for (const char* const name : {kEventsName, kOlderEventsName}) {
    auto opened = state_.open_file(name, O_RDONLY);
    if (!opened && opened.error().code == ErrorCode::kNotFound) continue;
    if (!opened) return fail(std::move(opened).error());
    const auto is_known = [&](const File& file) {
      return is_same(file.opened.status, opened->status);
    };
    if (std::ranges::any_of(files_, is_known) || std::ranges::any_of(found, is_known)) continue;
    if (opened->status.st_size > kMostRead)
      ::lseek(opened->fd.get(), opened->status.st_size - kMostRead, SEEK_SET);
    found.push_front({.opened = *std::move(opened)});
  }
  files_.splice(files_.end(), found);
  return {};
}

Status EventReader::read(File& file, EventList& out) {
  constexpr std::size_t kPiece = std::size_t{64} << 10U;
  std::string piece(kPiece, '\0');
  while (true) {
    const ssize_t size = ::read(file.opened.fd.get(), piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno(errno, "read the journal of events");
    if (size == 0) return {};
    std::string_view text{piece.data(), static_cast<std::size_t>(size)};
    for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      note_line(file.rest.append(text.substr(0, end)), out);
      file.rest.clear();
      text.remove_prefix(end + 1);
    }
    // Of a line without an end only what may be an event is kept.
    file.rest.append(text);
    if (file.rest.size() > 2 * codec::kMaxEventLine)
      file.rest.erase(0, file.rest.size() - codec::kMaxEventLine);
  }
}

Result<EventList> read_events(const std::string& state_dir) {
  auto reader = EventReader::open(state_dir);
  if (!reader && reader.error().code == ErrorCode::kNotFound) return EventList{};
  if (!reader) return fail(std::move(reader).error());
  return reader->next();
}

}  // namespace podqos::store
