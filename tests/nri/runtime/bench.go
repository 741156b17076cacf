package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/nri/pkg/api"
	"google.golang.org/protobuf/proto"
)

// bench creates and removes containers, in one runtime after the other, so that a ratio compares calls of the same
// minutes:
//
//	{"do": "bench", "turns": ["podqos", "go"], "pids": [PID, PID], "first": N, "rounds": N, "of": [POD...],
//	 "box": CONTAINER}
//
// Round i gives the container the id "box-<i>" and one of the pods, to each pod inARow of them. With "grow" it gets that
// for a name, too, so that its pod has no container like it. A call's time is from NRI's call to its return; its
// CPU time is what the plugin's threads have used between those two, as the scheduler counts it.
// inARow containers come to a pod, as a runtime makes them.
const inARow = 3

type bench struct {
	Turns  []string
	Pids   []int
	First  int
	Rounds int
	Of     []json.RawMessage
	Box    json.RawMessage
	Grow   bool
}

type results struct {
	Times [][]int64 `json:"times"` // nanoseconds of each call, by runtime
	CPU   []int64   `json:"cpu"`   // nanoseconds of all calls, by runtime
}

// cpuTime of all threads that a process has now.
func cpuTime(pid int) (int64, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		return 0, fmt.Errorf("process %d has no threads", pid)
	}
	var sum int64
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			return 0, err
		}
		first, _, _ := bytes.Cut(text, []byte(" "))
		used, err := strconv.ParseInt(string(first), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

func (b *bench) run() (*results, error) {
	var pods []*api.PodSandbox
	for _, text := range b.Of {
		pod := &api.PodSandbox{}
		if err := parse(text, pod); err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	box := &api.Container{}
	if err := parse(b.Box, box); err != nil {
		return nil, err
	}
	found := &results{Times: make([][]int64, len(b.Turns)), CPU: make([]int64, len(b.Turns))}
	for round := b.First; round < b.First+b.Rounds; round++ {
		pod := pods[round/inARow%len(pods)]
		for turn := range b.Turns {
			container := proto.Clone(box).(*api.Container)
			container.Id = "box-" + strconv.Itoa(round)
			container.PodSandboxId = pod.Id
			if b.Grow {
				rename(container, container.Id)
			}
			if err := b.call(found, turn, proto.Clone(pod).(*api.PodSandbox), container); err != nil {
				return nil, err
			}
		}
	}
	for _, times := range found.Times {
		slices.Sort(times)
	}
	return found, nil
}

// rename lets a container have another name, and those of its annotations that name it.
func rename(container *api.Container, name string) {
	annotations := map[string]string{}
	for key, value := range container.Annotations {
		if kind, found := strings.CutSuffix(key, "."+container.Name); found {
			key = kind + "." + name
		}
		annotations[key] = value
	}
	container.Name, container.Annotations = name, annotations
}

func (b *bench) call(found *results, turn int, pod *api.PodSandbox, container *api.Container) error {
	r, ok := runtimes[b.Turns[turn]]
	if !ok {
		return fmt.Errorf("no runtime %q", b.Turns[turn])
	}
	ctx := context.Background()
	before, err := cpuTime(b.Pids[turn])
	if err != nil {
		return err
	}
	begin := time.Now()
	response, err := r.nri.CreateContainer(ctx, &api.CreateContainerRequest{Pod: pod, Container: container})
	spent := time.Since(begin)
	if err != nil {
		return err
	}
	if response.Adjust.GetLinux().GetCgroupsPath() == "" {
		return fmt.Errorf("%s has adjusted nothing in pod %s", b.Turns[turn], pod.Uid)
	}
	after, err := cpuTime(b.Pids[turn])
	if err != nil {
		return err
	}
	found.Times[turn] = append(found.Times[turn], spent.Nanoseconds())
	found.CPU[turn] += after - before
	return r.nri.RemoveContainer(ctx, &api.StateChangeEvent{Pod: pod, Container: container})
}
