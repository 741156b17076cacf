#pragma once

#include <functional>
#include <string_view>

namespace podqos::nri {

/// Sets the receiver of libprotobuf's messages about invalid input, one line each. Without a
/// receiver they are dropped, and not written to standard error as by default. To bound the log,
/// only the 1st, 2nd, 4th, 8th and so on message is passed on, with its number. Applies to the
/// whole process; not thread-safe.
/// @param take  empty: no receiver
void set_protobuf_log(std::function<void(std::string_view line)> take);

}  // namespace podqos::nri
