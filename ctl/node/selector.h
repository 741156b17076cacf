#pragma once

#include <span>
#include <string_view>

#include "common/base/error.h"
#include "common/core/record.h"

namespace podqos::ctl {

/// What `--help` says of an argument for select().
constexpr std::string_view kSelectorHelp =
    "[ENGINE:][NAMESPACE/]POD, uid, or at least 4 digits of an id";
constexpr std::string_view kContainerSelectorHelp =
    "[ENGINE:][NAMESPACE/]POD[/CONTAINER], uid, or at least 4 digits of an id";

/// What an argument names, of the records that it was looked for in.
struct Selection {
  const core::PodRecord* pod = nullptr;
  const core::ContainerRecord* container = nullptr;  ///< nullptr: the pod as a whole
  friend bool operator==(const Selection&, const Selection&) = default;
};

/// Finds the pod or container that a user names: "[ENGINE:]NAMESPACE/POD[/CONTAINER]", a pod's name
/// or uid with or without a container, a container's name, or the first digits of the id of either.
/// Names go before ids, and pods before containers. A sandbox is not selected but its pod.
/// @param pods  have to outlive the selection
/// @return kNotFound with the nearest name or those that exist; kInvalidArgument if several have
///         it, with what names each of them, and for an unknown engine
[[nodiscard]] Result<Selection> select(std::span<const core::PodRecord> pods,
                                       std::string_view argument);

}  // namespace podqos::ctl
