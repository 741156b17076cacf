#include "common/cgroup/systemd.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/bus_client.h"
#include "common/cgroup/bus_message.h"

namespace podqos::cgroup {

namespace {

constexpr std::string_view kNoSuchUnit = "org.freedesktop.systemd1.NoSuchUnit";
constexpr std::string_view kUseCgroupfs =
    "; where systemd does not run, let the engine use the cgroupfs driver";
constexpr std::string_view kMayNot =
    "; run it as root, or let the policy of the bus allow the call";
constexpr std::string_view kMasked = "; `systemctl unmask` it, if nobody forbade it on purpose";
constexpr std::string_view kHangs =
    "; should systemd hang, `systemctl is-system-running` and the journal of PID 1 tell why";
constexpr std::size_t kLongestWords = 512;

struct Meaning {
  std::string_view name;
  ErrorCode code;
  std::string_view remedy;
};

// The errors of systemd and of the bus that callers tell apart; every other is kIo.
constexpr std::array kMeanings{
    Meaning{"org.freedesktop.systemd1.UnitExists", ErrorCode::kAlreadyExists, ""},
    Meaning{kNoSuchUnit, ErrorCode::kNotFound, ""},
    Meaning{"org.freedesktop.systemd1.UnitMasked", ErrorCode::kConflict, kMasked},
    Meaning{DBUS_ERROR_ACCESS_DENIED, ErrorCode::kPermission, kMayNot},
    Meaning{DBUS_ERROR_AUTH_FAILED, ErrorCode::kPermission, kMayNot},
    Meaning{DBUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, ErrorCode::kPermission, kMayNot},
    Meaning{DBUS_ERROR_NO_REPLY, ErrorCode::kTimeout, kHangs},
    Meaning{DBUS_ERROR_TIMEOUT, ErrorCode::kTimeout, kHangs},
    // From a bus whose systemd is not there, which it cannot start either.
    Meaning{DBUS_ERROR_SERVICE_UNKNOWN, ErrorCode::kNotFound, kUseCgroupfs},
    Meaning{DBUS_ERROR_NAME_HAS_NO_OWNER, ErrorCode::kNotFound, kUseCgroupfs},
    Meaning{DBUS_ERROR_SPAWN_CHILD_EXITED, ErrorCode::kNotFound, kUseCgroupfs},
};

Meaning meaning_of(std::string_view name) {
  const auto* known = std::ranges::find(kMeanings, name, &Meaning::name);
  return known == kMeanings.end() ? Meaning{name, ErrorCode::kIo, ""} : *known;
}

/// Does this failure to connect mean that nobody listens there?
bool is_absent(const BusFailure& failure) {
  return failure.name == DBUS_ERROR_FILE_NOT_FOUND || failure.name == DBUS_ERROR_NO_SERVER;
}

/// Is a unit that is not loaded an answer like any other?
enum class Unloaded : std::uint8_t { kFails, kIsFine };

}  // namespace

/// The connection, and the words in which its calls fail.
class Systemd::Connection {
 public:
  explicit Connection(SystemdOptions options) : options_(std::move(options)) {
    // libdbus ends the process at a failed check and, if the environment says so, at any warning:
    // about a keyring, say, that a server talked it into reading. The programs that call systemd
    // execute no other that would inherit this.
    // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
    static_cast<void>(::setenv("DBUS_FATAL_WARNINGS", "0", /*replace*/ 1));
  }

  /// @param what  "StopUnit kubepods.slice", for the error.
  /// @return the reply; none for a unit that is not loaded where that is fine.
  Result<Message> call(std::string_view what, Result<Message> request,
                       Unloaded unloaded = Unloaded::kFails);

  [[nodiscard]] int round_trips() const { return round_trips_; }

 private:
  /// Connects if need be. A connection that has ended is let go of.
  BusResult<Message> attempt(DBusMessage* request);
  /// DBUS_ERROR_NO_SERVER where nobody listens at any address.
  BusResult<void> connect();
  BusResult<void> greet(Peer peer);
  BusResult<Message> exchange(DBusMessage* request);
  [[nodiscard]] Error error_for(std::string_view what, const BusFailure& failure) const;

  SystemdOptions options_;
  std::optional<BusClient::Deadline> deadline_;  // from the first call on
  std::optional<BusClient> client_;
  std::string address_;
  int round_trips_ = 0;
};

Result<Message> Systemd::Connection::call(std::string_view what, Result<Message> request,
                                          Unloaded unloaded) {
  if (!request) return fail(std::move(request).error().with_context(what));
  const auto now = std::chrono::steady_clock::now();
  if (!deadline_) deadline_ = now + options_.deadline;
  if (now >= *deadline_) {
    return fail(ErrorCode::kTimeout, cat(what, ": not asked, the ", options_.deadline.count(),
                                         " ms for all calls are over", kHangs));
  }
  auto reply = attempt(request->get());
  if (!reply && reply.error().name == DBUS_ERROR_DISCONNECTED) {
    // systemd leaves all its clients when it executes itself anew. Whether it has heard the call is
    // unknown, and each may be made twice.
    auto again = attempt(request->get());
    if (again || again.error().name != DBUS_ERROR_NO_SERVER) reply = std::move(again);
  }
  if (reply) return std::move(*reply);
  if (unloaded == Unloaded::kIsFine && reply.error().name == kNoSuchUnit) return Message{};
  return fail(error_for(what, reply.error()));
}

BusResult<Message> Systemd::Connection::attempt(DBusMessage* request) {
  if (!client_) {
    if (const auto connected = connect(); !connected) return std::unexpected(connected.error());
  }
  auto reply = exchange(request);
  if (!client_->is_connected()) client_.reset();
  return reply;
}

BusResult<void> Systemd::Connection::connect() {
  std::string tried;
  for (const SystemdAddress& place : options_.addresses) {
    address_ = place.address;
    auto client = BusClient::open(place.address, *deadline_);
    if (client) {
      client_ = std::move(*client);
      auto greeted = greet(place.peer);
      if (!greeted) client_.reset();
      return greeted;
    }
    if (!is_absent(client.error())) return std::unexpected(client.error());
    tried += cat(tried.empty() ? "" : "; ", client.error().text);
  }
  return std::unexpected(BusFailure{.name = DBUS_ERROR_NO_SERVER, .text = std::move(tried)});
}

BusResult<void> Systemd::Connection::greet(Peer peer) {
  const auto greeting = peer == Peer::kMessageBus ? hello_call() : ping_call();
  if (!greeting) {
    return std::unexpected(
        BusFailure{.name = DBUS_ERROR_NO_MEMORY, .text = greeting.error().message});
  }
  // systemd (252 to 257) reads the end of the authentication into 256 bytes, and what else comes
  // along in them waits until more arrives: a short call would get no answer. Behind another
  // message it does not fit.
  if (peer == Peer::kSystemd) return client_->announce(greeting->get());
  if (const auto welcome = exchange(greeting->get()); !welcome) {
    return std::unexpected(welcome.error());
  }
  return {};
}

BusResult<Message> Systemd::Connection::exchange(DBusMessage* request) {
  ++round_trips_;
  return client_->call(request, *deadline_);
}

Error Systemd::Connection::error_for(std::string_view what, const BusFailure& failure) const {
  if (failure.name == DBUS_ERROR_NO_SERVER) {
    return Error{ErrorCode::kNotFound,
                 cat(what, ": systemd does not answer: ", failure.text, kUseCgroupfs)};
  }
  const auto [name, code, remedy] = meaning_of(failure.name);
  const std::string allowed =
      code == ErrorCode::kTimeout ? cat("; ", options_.deadline.count(), " ms were allowed") : "";
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
  const auto reply = connection_->call(cat("StartTransientUnit ", printable(unit)),
                                       start_transient_call(unit, properties));
  if (!reply) return fail(reply.error());
  return {};
}

Status Systemd::start(const std::string& unit) {
  const auto reply =
      connection_->call(cat("StartUnit ", printable(unit)), job_call("StartUnit", unit));
  if (!reply) return fail(reply.error());
  return {};
}

Status Systemd::set_properties(const std::string& unit,
                               const std::vector<core::UnitProperty>& properties) {
  const auto reply = connection_->call(cat("SetUnitProperties ", printable(unit)),
                                       set_properties_call(unit, properties));
  if (!reply) return fail(reply.error());
  return {};
}

Status Systemd::stop(const std::string& unit) {
  const auto reply = connection_->call(cat("StopUnit ", printable(unit)),
                                       job_call("StopUnit", unit), Unloaded::kIsFine);
  if (!reply) return fail(reply.error());
  return {};
}

Status Systemd::reset_failed(const std::string& unit) {
  const auto reply = connection_->call(cat("ResetFailedUnit ", printable(unit)),
                                       reset_failed_call(unit), Unloaded::kIsFine);
  if (!reply) return fail(reply.error());
  return {};
}

Result<std::vector<ListedUnit>> Systemd::list(const std::string& pattern) {
  const std::string what = cat("ListUnitsByPatterns ", printable(pattern));
  const auto reply = connection_->call(what, list_call(pattern));
  if (!reply) return fail(reply.error());
  auto units = parse_units(reply->get());
  if (!units) return fail(std::move(units).error().with_context(what));
  return units;
}

int Systemd::round_trips() const {
  return connection_->round_trips();
}

bool systemd_runs_here() {
  struct stat status{};
  return ::lstat("/run/systemd/system", &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace podqos::cgroup
