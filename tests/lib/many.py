"""Many pods in the state, and many hooks at once."""

import json
import shutil

import harness
import patience
import rows
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
        program = program_for(ground, second)
        # valgrind knows no seccomp(2), which the hook itself insists on.
        steps = spawn.instructions(program._replace(argv=[f"{harness.HOOK}-unfiltered", *program.argv[1:]]))
        after = sums(ground)
        if after["pods"] != pods or after["cpuMilli"] != before["cpuMilli"] + 100:
            raise RuntimeError(f"the sums went from {before} to {after}")
        return steps


def program_for(ground, container):
    return Program([*ground.hook, "createRuntime"], container.state().encode(), container.bundle)


def sums(ground):
    return rows.sums(ground.state, scenario.CLASS)


def run_many(count, at_a_time):
    """Seconds in which `count` containers are registered, `at_a_time` side by side; the first half ends meanwhile.

    Of the pods of the first half the one half ends, the other goes on with containers of the second. Checks that no
    update is lost, and that nothing of what has ended is left.
    """
    with scenario.Scenario(f"many-{at_a_time}", lockDeadline="60s", **NODE) as ground:
        ground.first_container()
        before = sums(ground)
        uids = [f"{number % (count * 3 // 4) // POD_SIZE + 1:08x}{scenario.UID[8:]}" for number in range(count)]
        made = [ground.spawn(ground.container(f"c{number}", uid, requests="cpu=10m,memory=1Mi", limits="memory=4Mi"))
                for number, uid in enumerate(uids)]
        starts = [program_for(ground, each) for each in made]
        half = count // 2
        seconds = spawn.run_all(starts[:half], at_a_time)
        check_sums(ground, before, made[:half], uids[:half])
        for each in made[:half]:
            ground.leave(each)
        ends = [poststop_of(ground, each) for each in made[:half]]
        seconds += spawn.run_all([program for pair in zip(starts[half:], ends) for program in pair], at_a_time)
        check_sums(ground, before, made[half:], uids[half:])
        check_gone(ground, set(uids) - set(uids[half:]))
        shutil.rmtree(ground.state)
        return seconds


def poststop_of(ground, container):
    """The program of the event of a container that has left."""
    state = json.loads(container.state()) | {"status": "stopped", "pid": 0}
    return Program([*ground.hook, "poststop"], json.dumps(state).encode(), "/")


def check_gone(ground, uids):
    """The pods have neither a record nor a cgroup, which the kernel may hold for a moment, until reconcile."""
    def left():
        return [uid for uid in uids
                if ground.machine.exists(ground.pod_path(uid)) or (ground.state / "pods" / f"{uid}.json").exists()]

    for _ in patience.turns(6):
        if not left():
            return
        ground.podqos.ctl("reconcile")
    raise RuntimeError(f"left of pods that have ended: {left()}")


def check_sums(ground, before, living, uids):
    """Records, index, sums and the kernel agree on these containers of 10m and 1Mi beside what there was before."""
    count = len(living)
    wanted = {"pods": before["pods"] + len(set(uids)), "cpuMilli": before["cpuMilli"] + 10 * count,
              "memoryBytes": before["memoryBytes"] + harness.MI * count}
    if sums(ground) != wanted:
        raise RuntimeError(f"lost update: the sums are {sums(ground)}, not {wanted}")
    records = [json.loads(p.read_text(encoding="utf-8")) for p in (ground.state / "pods").glob("*.json")]
    known = {each["id"] for record in records for each in record["containers"]} - {each.identifier for each in living}
    if len(known) != 1:
        raise RuntimeError(f"lost update: the records have {known} beside the {count} that live")
    entries = len(list((ground.state / "containers").iterdir()))
    if entries != count + 1:
        raise RuntimeError(f"lost update: {entries} containers in the index, not {count + 1}")
    tier = f"{ground.root}/kubepods/{scenario.TIER}"
    expected = ground.machine.expected_share(wanted["cpuMilli"] * 1024 // 1000)
    if ground.machine.share(tier) != expected:
        raise RuntimeError(f"the tier's cpu is {ground.machine.share(tier)}, not {expected}")
