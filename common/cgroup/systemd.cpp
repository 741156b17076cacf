#include "common/cgroup/systemd.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/bus_client.h"
#include "common/cgroup/bus_message.h"

namespace podqos::cgroup {

namespace {

constexpr std::string_view kNoSuchUnit = "org.freedesktop.systemd1.NoSuchUnit";
constexpr std::string_view kUseCgroupfs =
    "; if systemd is not running, configure the engine to use the cgroupfs driver";
constexpr std::string_view kMayNot = "; run as root, or allow the call in the bus policy";
constexpr std::string_view kMasked = "; `systemctl unmask` it unless it was masked deliberately";
constexpr std::string_view kHangs =
    "; if systemd hangs, check `systemctl is-system-running` and the journal of PID 1";
// Longer error messages of systemd are cut.
constexpr std::size_t kLongestWords = 512;

/// The error code and the remedy for a D-Bus error name.
struct Meaning {
  std::string_view name;
  ErrorCode code;
  std::string_view remedy;
};

// Errors of systemd and of the bus that callers distinguish; all others are kIo.
constexpr std::array kMeanings{
    Meaning{"org.freedesktop.systemd1.UnitExists", ErrorCode::kAlreadyExists, ""},
    Meaning{kNoSuchUnit, ErrorCode::kNotFound, ""},
    Meaning{"org.freedesktop.systemd1.UnitMasked", ErrorCode::kConflict, kMasked},
    Meaning{DBUS_ERROR_ACCESS_DENIED, ErrorCode::kPermission, kMayNot},
    Meaning{DBUS_ERROR_AUTH_FAILED, ErrorCode::kPermission, kMayNot},
    Meaning{DBUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, ErrorCode::kPermission, kMayNot},
    Meaning{DBUS_ERROR_NO_REPLY, ErrorCode::kTimeout, kHangs},
    Meaning{DBUS_ERROR_TIMEOUT, ErrorCode::kTimeout, kHangs},
    // systemd's error for an unknown property.
    Meaning{DBUS_ERROR_PROPERTY_READ_ONLY, ErrorCode::kUnsupported, ""},
    // From a message bus if systemd is not running and cannot be started by it.
    Meaning{DBUS_ERROR_SERVICE_UNKNOWN, ErrorCode::kNotFound, kUseCgroupfs},
    Meaning{DBUS_ERROR_NAME_HAS_NO_OWNER, ErrorCode::kNotFound, kUseCgroupfs},
    Meaning{DBUS_ERROR_SPAWN_CHILD_EXITED, ErrorCode::kNotFound, kUseCgroupfs},
};

Meaning meaning_of(std::string_view name) {
  const auto* known = std::ranges::find(kMeanings, name, &Meaning::name);
  return known == kMeanings.end() ? Meaning{name, ErrorCode::kIo, ""} : *known;
}

constexpr std::chrono::milliseconds kRestartPause{20};

/// Whether a failure to connect means that nothing listens on the socket.
bool is_absent(const BusFailure& failure) {
  return failure.name == DBUS_ERROR_FILE_NOT_FOUND || failure.name == DBUS_ERROR_NO_SERVER;
}

/// Whether systemd has disconnected, so that no reply will arrive. A message bus reports this with
/// errors of its own.
/// @param in_time  the call's deadline has not passed
bool has_left(const BusResult<Message>& reply, bool in_time) {
  if (reply) return false;
  const std::string& name = reply.error().name;
  // Before the deadline, NoReply comes from the bus: its peer has gone.
  if (name == DBUS_ERROR_NO_REPLY) return in_time;
  return name == DBUS_ERROR_DISCONNECTED || name == DBUS_ERROR_SERVICE_UNKNOWN ||
         name == DBUS_ERROR_NAME_HAS_NO_OWNER;
}

Status status_of(const Result<Message>& answer) {
  if (!answer) return fail(answer.error());
  return {};
}

/// Whether NoSuchUnit is an error for this call.
enum class Unloaded : std::uint8_t { kFails, kIsFine };

}  // namespace

/// The connection, and the error messages of its calls.
class Systemd::Connection {
 public:
  explicit Connection(SystemdOptions options) : options_(std::move(options)) {
    // libdbus aborts the process on a failed check and, if the environment asks for it, on a
    // warning, for example about a keyring that a server made it read. Programs that call systemd
    // do not execute others, which would inherit this variable.
    // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
    static_cast<void>(::setenv("DBUS_FATAL_WARNINGS", "0", /*replace*/ 1));
  }

  /// A call and its name for errors: "StopUnit kubepods.slice".
  struct Request {
    std::string what;
    Result<Message> message;
    Unloaded unloaded = Unloaded::kFails;
  };

  /// @return the reply; null for a unit that is not loaded, if that is accepted.
  Result<Message> call(Request request);
  /// Makes all calls in one round trip; the replies are in the order of the requests.
  std::vector<Result<Message>> call(std::vector<Request> requests);

  [[nodiscard]] int round_trips() const { return round_trips_; }

 private:
  using Replies = std::vector<BusResult<Message>>;

  /// Repeats the calls whose connection was closed.
  Replies call_with_retry(std::span<DBusMessage* const> requests);
  /// Connects if necessary. A connection that was closed is dropped.
  Replies attempt(std::span<DBusMessage* const> requests);
  /// DBUS_ERROR_NO_SERVER if nothing listens on any address.
  BusResult<void> connect();
  BusResult<void> handshake(Peer peer);
  Replies exchange(std::span<DBusMessage* const> requests);
  /// Sets the deadline of a call; kTimeout after an earlier call has timed out.
  Status start_clock(std::string_view what);
  [[nodiscard]] bool in_time() const { return clock().now() < *deadline_; }
  [[nodiscard]] Error error_for(std::string_view what, const BusFailure& failure) const;
  [[nodiscard]] const sys::Clock& clock() const { return *options_.clock; }

  SystemdOptions options_;
  std::optional<BusClient::Deadline> deadline_;  // of the latest call
  bool hangs_ = false;                           // a call has timed out
  std::optional<BusClient> client_;
  std::string address_;
  int round_trips_ = 0;
};

Result<Message> Systemd::Connection::call(Request request) {
  std::vector<Request> one;
  one.push_back(std::move(request));
  return std::move(call(std::move(one)).front());
}

std::vector<Result<Message>> Systemd::Connection::call(std::vector<Request> requests) {
  std::vector<DBusMessage*> messages;
  std::vector<Result<Message>> answers;
  for (Request& request : requests) {
    if (!request.message) {
      answers.emplace_back(fail(std::move(request.message).error().with_context(request.what)));
    } else if (const Status in_time = start_clock(request.what); !in_time) {
      answers.emplace_back(fail(in_time.error()));
    } else {
      messages.push_back(request.message->get());
      answers.emplace_back(Message{});
    }
  }
  Replies replies = call_with_retry(messages);
  // The wait may end slightly before the deadline.
  hangs_ = !messages.empty() && clock().now() + kRestartPause >= *deadline_;
  auto reply = replies.begin();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (!answers[i]) continue;
    const auto& [what, message, unloaded] = requests[i];
    if (*reply) {
      answers[i] = std::move(**reply);
    } else if (unloaded == Unloaded::kFails || reply->error().name != kNoSuchUnit) {
      answers[i] = fail(error_for(what, reply->error()));
    }
    ++reply;
  }
  return answers;
}

Status Systemd::Connection::start_clock(std::string_view what) {
  const auto now = clock().now();
  if (hangs_) {
    return fail(ErrorCode::kTimeout,
                cat(what, ": not called, since an earlier call timed out after ",
                    options_.deadline.count(), " ms", kHangs));
  }
  if (now >= options_.end) {
    return fail(
        ErrorCode::kTimeout,
        cat(what, ": not called, since the deadline for the reply to the runtime has passed"));
  }
  deadline_ = std::min(now + options_.deadline, options_.end);
  return {};
}

Systemd::Connection::Replies Systemd::Connection::call_with_retry(
    std::span<DBusMessage* const> requests) {
  if (requests.empty()) return {};
  Replies replies = attempt(requests);
  // During daemon-reexec systemd disconnects all clients, and its socket is missing for a moment.
  // Whether it has received a call is unknown, so that a call may be made twice.
  const auto give_up = std::min(clock().now() + options_.restart, *deadline_);
  while (clock().now() < give_up) {
    std::vector<BusResult<Message>*> unanswered;
    std::vector<Message> copies;  // a sent message keeps its connection's serial number
    std::vector<DBusMessage*> again;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (!has_left(replies[i], in_time())) continue;
      Message copy{dbus_message_copy(requests[i])};
      if (!copy) return replies;
      unanswered.push_back(&replies[i]);
      again.push_back(copy.get());
      copies.push_back(std::move(copy));
    }
    if (unanswered.empty()) return replies;
    static_cast<void>(clock().poll({}, clock().now() + kRestartPause));
    Replies answers = attempt(again);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      // Still not running: the first error of the call tells more.
      const bool absent = !answers[i] && answers[i].error().name == DBUS_ERROR_NO_SERVER;
      if (!absent && !has_left(answers[i], in_time())) *unanswered[i] = std::move(answers[i]);
    }
  }
  return replies;
}

Systemd::Connection::Replies Systemd::Connection::attempt(std::span<DBusMessage* const> requests) {
  if (!client_) {
    if (const auto connected = connect(); !connected) {
      Replies replies;
      for (std::size_t i = 0; i < requests.size(); ++i)
        replies.emplace_back(std::unexpected(connected.error()));
      return replies;
    }
  }
  Replies replies = exchange(requests);
  // The bus may notice systemd's restart later than its own socket does.
  const bool left =
      std::ranges::any_of(replies, [&](const auto& reply) { return has_left(reply, in_time()); });
  if (left || !client_->is_connected()) client_.reset();
  return replies;
}

BusResult<void> Systemd::Connection::connect() {
  std::string tried;
  for (const SystemdAddress& place : options_.addresses) {
    address_ = place.address;
    auto client = BusClient::open(place.address, *deadline_, clock());
    if (client) {
      client_ = std::move(*client);
      auto done = handshake(place.peer);
      if (!done) client_.reset();
      return done;
    }
    if (!is_absent(client.error())) return std::unexpected(client.error());
    tried += cat(tried.empty() ? "" : "; ", client.error().text);
  }
  return std::unexpected(BusFailure{.name = DBUS_ERROR_NO_SERVER, .text = std::move(tried)});
}

BusResult<void> Systemd::Connection::handshake(Peer peer) {
  const auto first = peer == Peer::kMessageBus ? hello_call() : ping_call();
  if (!first) {
    return std::unexpected(BusFailure{.name = DBUS_ERROR_NO_MEMORY, .text = first.error().message});
  }
  // systemd 252 to 257 reads the end of the authentication into a buffer of 256 bytes, and does not
  // process what else is in the buffer until more data arrives: a short call would get no reply.
  // After another message it does not fit into the buffer.
  if (peer == Peer::kSystemd) return client_->send_without_reply(first->get());
  const Replies replies = exchange(std::array{first->get()});
  if (!replies.front()) return std::unexpected(replies.front().error());
  return {};
}

Systemd::Connection::Replies Systemd::Connection::exchange(std::span<DBusMessage* const> requests) {
  ++round_trips_;
  return client_->call(requests, *deadline_);
}

Error Systemd::Connection::error_for(std::string_view what, const BusFailure& failure) const {
  if (failure.name == DBUS_ERROR_NO_SERVER) {
    return Error{ErrorCode::kNotFound,
                 cat(what, ": cannot connect to systemd: ", failure.text, kUseCgroupfs)};
  }
  const auto [name, code, remedy] = meaning_of(failure.name);
  const std::string allowed =
      code == ErrorCode::kTimeout ? cat("; the timeout is ", options_.deadline.count(), " ms") : "";
  return Error{code, cat(what, " at ", address_, ": ", printable(failure.text, kLongestWords), " (",
                         printable(failure.name), ")", allowed, remedy)};
}

Systemd::Systemd(SystemdOptions options)
    : connection_(std::make_unique<Connection>(std::move(options))) {}
Systemd::~Systemd() = default;
Systemd::Systemd(Systemd&&) noexcept = default;
Systemd& Systemd::operator=(Systemd&&) noexcept = default;

Status Systemd::start_transient(const std::string& unit,
                                const std::vector<core::UnitProperty>& properties) {
  return status_of(connection_->call({.what = cat("StartTransientUnit ", printable(unit)),
                                      .message = start_transient_call(unit, properties)}));
}

Status Systemd::start(const std::string& unit) {
  return status_of(connection_->call(
      {.what = cat("StartUnit ", printable(unit)), .message = job_call("StartUnit", unit)}));
}

Status Systemd::set_properties(const std::string& unit,
                               const std::vector<core::UnitProperty>& properties) {
  return set_and_find({{.unit = unit, .properties = properties}}, {}).set.front();
}

UnitAnswers Systemd::set_and_find(const std::vector<UnitChange>& changes,
                                  const std::vector<UnitPlace>& places) {
  std::vector<Connection::Request> requests;
  requests.reserve(changes.size() + places.size());
  for (const auto& [unit, properties] : changes) {
    requests.push_back({.what = cat("SetUnitProperties ", printable(unit)),
                        .message = set_properties_call(unit, properties)});
  }
  for (const auto& [unit, cgroup] : places) {
    requests.push_back({.what = cat("GetUnitByControlGroup ", printable(cgroup)),
                        .message = find_call(cgroup),
                        .unloaded = Unloaded::kIsFine});
  }
  UnitAnswers answers;
  if (requests.empty()) return answers;
  const std::vector<Result<Message>> replies = connection_->call(std::move(requests));
  for (std::size_t i = 0; i < changes.size(); ++i)
    answers.set.push_back(status_of(replies[i]));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Result<Message>& reply = replies[changes.size() + i];
    if (!reply) {
      answers.held.emplace_back(fail(reply.error()));
    } else {
      answers.held.emplace_back(*reply && names_unit(reply->get(), places[i].unit));
    }
  }
  return answers;
}

Status Systemd::stop(const std::string& unit) {
  return status_of(connection_->call({.what = cat("StopUnit ", printable(unit)),
                                      .message = job_call("StopUnit", unit),
                                      .unloaded = Unloaded::kIsFine}));
}

Status Systemd::reset_failed(const std::string& unit) {
  return status_of(connection_->call({.what = cat("ResetFailedUnit ", printable(unit)),
                                      .message = reset_failed_call(unit),
                                      .unloaded = Unloaded::kIsFine}));
}

Result<std::vector<ListedUnit>> Systemd::list(const std::string& pattern) {
  const std::string what = cat("ListUnitsByPatterns ", printable(pattern));
  PODQOS_ASSIGN(const auto reply, connection_->call({.what = what, .message = list_call(pattern)}));
  auto units = parse_units(reply.get());
  if (!units) return fail(std::move(units).error().with_context(what));
  return units;
}

Result<bool> Systemd::holds(const UnitPlace& place) {
  return std::move(set_and_find({}, {place}).held.front());
}

int Systemd::round_trips() const {
  return connection_->round_trips();
}

bool systemd_runs_here() {
  struct stat status{};
  return ::lstat("/run/systemd/system", &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace podqos::cgroup
