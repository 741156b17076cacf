#include "common/base/utc_time.h"

#include <chrono>
#include <cstdint>

#include "common/base/text.h"

namespace podqos {

namespace {

using std::chrono::milliseconds;
using std::chrono::sys_time;

/// The number with leading zeros. @param round  a power of ten above all numbers
std::string digits(std::int64_t number, std::int64_t round) {
  return std::to_string(round + number).substr(1);
}

}  // namespace

std::string format_utc(UnixMillis time) {
  using namespace std::chrono;
  const sys_time<milliseconds> point{milliseconds{time.value()}};
  const auto day = floor<days>(point);
  const year_month_day date{day};
  const hh_mm_ss since{point - day};
  return cat(int{date.year()}, "-", digits(unsigned{date.month()}, 100), "-",
             digits(unsigned{date.day()}, 100), "T", digits(since.hours().count(), 100), ":",
             digits(since.minutes().count(), 100), ":", digits(since.seconds().count(), 100), ".",
             digits(since.subseconds().count(), 1000), "Z");
}

std::optional<UnixMillis> parse_utc(std::string_view text) {
  using namespace std::chrono;
  constexpr std::string_view kForm = "2026-01-31T23:59:59.999Z";
  if (text.size() != kForm.size() || !is_digit(text.front())) return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t length) {
    return static_cast<int>(parse_int(text.substr(at, length)).value_or(-1));
  };
  const year_month_day date{year{number(0, 4)}, month{static_cast<unsigned>(number(5, 2))},
                            day{static_cast<unsigned>(number(8, 2))}};
  if (!date.ok()) return std::nullopt;
  const auto since = hours{number(11, 2)} + minutes{number(14, 2)} + seconds{number(17, 2)} +
                     milliseconds{number(20, 3)};
  const UnixMillis time{milliseconds{sys_days{date}.time_since_epoch() + since}.count()};
  return format_utc(time) == text ? std::optional{time} : std::nullopt;
}

}  // namespace podqos
