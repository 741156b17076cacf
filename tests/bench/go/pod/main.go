// The job of podqos for one container, as it would be written in Go: a wrapper that places the container in the cgroup of
// its pod before runc makes it, and two hooks.
//
//	pod runtime -root CGROUP -state DIR -runc PATH -- RUNC_ARGUMENT...
//	pod createRuntime|poststop -root CGROUP -state DIR            the state of the container on standard input
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/opencontainers/runc/libcontainer/cgroups"
	"github.com/opencontainers/runtime-spec/specs-go"

	"../node"
)

type options struct {
	root, state, runc string
}

// bundleAndID of `runc ... create|run ... --bundle DIR ... ID`; empty where another verb is called.
func bundleAndID(arguments []string) (bundle, id string) {
	making := false
	for i, argument := range arguments {
		switch argument {
		case "create", "run":
			making = true
		case "--bundle", "-b":
			if i+1 < len(arguments) {
				bundle = arguments[i+1]
			}
		}
	}
	if !making || bundle == "" {
		return "", ""
	}
	return bundle, arguments[len(arguments)-1]
}

// object is a JSON object whose other members stay as they are.
type object map[string]json.RawMessage

// edit lets a change be made to the member of that name.
func edit[T any](o object, name string, change func(*T) error) error {
	var value T
	if text, found := o[name]; found {
		if err := json.Unmarshal(text, &value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := change(&value); err != nil {
		return err
	}
	text, err := json.Marshal(value)
	if err == nil {
		o[name] = text
	}
	return err
}

func setResources(container *node.Container) func(*object) error {
	return func(resources *object) error {
		if *resources == nil {
			*resources = object{}
		}
		err := edit(*resources, "cpu", func(cpu *specs.LinuxCPU) error {
			shares := node.CPUShares(container.Requests.CPU)
			cpu.Shares = &shares
			if container.Limits.CPU != 0 {
				quota, period := node.CPUQuota(container.Limits.CPU), uint64(node.Period)
				cpu.Quota, cpu.Period = &quota, &period
			}
			return nil
		})
		if err != nil || container.Limits.Memory == 0 {
			return err
		}
		return edit(*resources, "memory", func(memory *specs.LinuxMemory) error {
			memory.Limit = &container.Limits.Memory
			return nil
		})
	}
}

// rewrite gives config.json the cgroup and the limits of its container.
func rewrite(file string, config object, cgroup string, container *node.Container) error {
	err := edit(config, "linux", func(linux *object) error {
		if err := edit(*linux, "cgroupsPath", func(path *string) error { *path = cgroup; return nil }); err != nil {
			return err
		}
		return edit(*linux, "resources", setResources(container))
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// place does what is to be done before runc makes the container.
func place(given options, bundle, id string) error {
	file := filepath.Join(bundle, "config.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	config := object{}
	if err := json.Unmarshal(text, &config); err != nil {
		return err
	}
	annotations := map[string]string{}
	if text, found := config["annotations"]; found {
		if err := json.Unmarshal(text, &annotations); err != nil {
			return err
		}
	}
	uid, container, err := node.Annotated(annotations)
	if err != nil || uid == "" {
		return err
	}
	if err := container.Identify(os.Getpid()); err != nil {
		return err
	}
	return node.With(given.root, given.state, func(n *node.Node) error {
		if err := n.Place(uid, id, container); err != nil {
			return err
		}
		return rewrite(file, config, filepath.Join(n.PodPath(uid), id), &container)
	})
}

func runRuntime(given options, arguments []string) error {
	if bundle, id := bundleAndID(arguments); bundle != "" {
		if err := place(given, bundle, id); err != nil {
			return err
		}
	}
	return syscall.Exec(given.runc, append([]string{given.runc}, arguments...), os.Environ())
}

// confirm notes the container's own process, if it is in the cgroup of its pod.
func confirm(n *node.Node, state *specs.State) error {
	uid, container := n.Find(state.ID)
	if container == nil {
		return errors.New("not placed")
	}
	paths, err := cgroups.ParseCgroupFile(fmt.Sprintf("/proc/%d/cgroup", state.Pid))
	if err != nil {
		return err
	}
	path, found := paths["memory"]
	if !found {
		path = paths[""]
	}
	if !strings.HasPrefix(path, n.PodPath(uid)+"/") {
		return fmt.Errorf("in cgroup %s, not below %s", path, n.PodPath(uid))
	}
	if err := container.Identify(state.Pid); err != nil {
		return err
	}
	return n.Save()
}

func runHook(given options, stage string) error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var state specs.State
	if err := json.Unmarshal(text, &state); err != nil {
		return err
	}
	return node.With(given.root, given.state, func(n *node.Node) error {
		if stage == "createRuntime" {
			return confirm(n, &state)
		}
		return n.Release(state.ID)
	})
}

func run(arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("usage: see the head of main.go")
	}
	var given options
	flags := flag.NewFlagSet(arguments[1], flag.ExitOnError)
	flags.StringVar(&given.root, "root", "/pods", "cgroup of all pods")
	flags.StringVar(&given.state, "state", "/run/pods", "directory")
	flags.StringVar(&given.runc, "runc", "/usr/sbin/runc", "the runtime")
	if err := flags.Parse(arguments[2:]); err != nil {
		return err
	}
	switch stage := arguments[1]; stage {
	case "runtime":
		return runRuntime(given, flags.Args())
	case "createRuntime", "poststop":
		return runHook(given, stage)
	default:
		return fmt.Errorf("no stage %q", stage)
	}
}

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "pod:", err)
		os.Exit(1)
	}
}
