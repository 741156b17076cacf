"""Many pods in the state, and many hooks at once."""

import json
import shutil

import harness
import scenario
import spawn
from spawn import Program

POD_SIZE = 10  # containers
NODE = {"nodeMemory": "1Ti", "nodeCpu": "10000"}  # large enough to grant all that is asked for


def stripped_size(directory):
    """Bytes of the hook without symbols."""
    copy = directory / "podqos-hook.stripped"
    scenario.run(["strip", "-o", copy, harness.HOOK])
    return copy.stat().st_size


def instructions(pods):
    """Instructions of one createRuntime with `pods` pods in the state."""
    with scenario.Scenario(f"pods-{pods}", **NODE) as ground:
        ground.first_container()
        ground.copy_pods(pods)
        second = ground.second_container()
        before = sums(ground)
        steps = spawn.instructions(program_for(ground, second))
        after = sums(ground)
        if after["pods"] != pods or after["cpuMilli"] != before["cpuMilli"] + 100:
            raise RuntimeError(f"the sums went from {before} to {after}")
        return steps


def program_for(ground, container):
    return Program([*ground.hook, "createRuntime"], container.state().encode(), container.bundle)


def sums(ground):
    tiers = json.loads((ground.state / "tiers.json").read_text(encoding="utf-8"))
    return tiers["sums"][scenario.TIER]


def run_many(count, at_a_time):
    """Seconds of `count` createRuntime that register containers, `at_a_time` side by side; checks that none is lost."""
    with scenario.Scenario(f"many-{at_a_time}", lockDeadline="60s", **NODE) as ground:
        ground.first_container()
        before = sums(ground)
        programs = []
        for number in range(count):
            uid = f"{number // POD_SIZE + 1:08x}{scenario.UID[8:]}"
            made = ground.container(f"c{number}", uid, requests="cpu=10m,memory=1Mi", limits="memory=4Mi")
            programs.append(program_for(ground, ground.spawn(made)))
        seconds = spawn.run_all(programs, at_a_time)
        check_sums(ground, before, count)
        shutil.rmtree(ground.state)
        return seconds


def check_sums(ground, before, count):
    """Records, sums and the kernel agree on `count` containers of 10m and 1Mi more than before."""
    wanted = {"pods": before["pods"] + count // POD_SIZE, "cpuMilli": before["cpuMilli"] + 10 * count,
              "memoryBytes": before["memoryBytes"] + harness.MI * count}
    if sums(ground) != wanted:
        raise RuntimeError(f"lost update: the sums are {sums(ground)}, not {wanted}")
    records = [json.loads(p.read_text(encoding="utf-8")) for p in (ground.state / "pods").glob("*.json")]
    known = sum(len(record["containers"]) for record in records)
    if known != count + 1:
        raise RuntimeError(f"lost update: {known} containers in the records, not {count + 1}")
    tier = f"{ground.root}/kubepods/{scenario.TIER}"
    expected = ground.machine.expected_share(wanted["cpuMilli"] * 1024 // 1000)
    if ground.machine.share(tier) != expected:
        raise RuntimeError(f"the tier's cpu is {ground.machine.share(tier)}, not {expected}")
