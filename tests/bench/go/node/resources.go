package node

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Resources are thousandths of a CPU, and bytes.
type Resources struct {
	CPU    int64 `json:"cpu"`
	Memory int64 `json:"memory"`
}

// Period of CPU quotas, in microseconds.
const Period = 100_000

const prefix = "podqos.io/"

var suffixes = []struct {
	suffix string
	factor float64
}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"m", 1e-3}}

// quantity in units of which `unit` are one.
func quantity(text string, unit float64) (int64, error) {
	for _, each := range suffixes {
		if number, found := strings.CutSuffix(text, each.suffix); found {
			text, unit = number, unit*each.factor
			break
		}
	}
	value, err := strconv.ParseFloat(text, 64)
	return int64(math.Ceil(value * unit)), err
}

// parse reads "cpu=100m,memory=64Mi".
func parse(text string) (found Resources, err error) {
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "cpu":
			found.CPU, err = quantity(value, 1000)
		case "memory":
			found.Memory, err = quantity(value, 1)
		}
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// Annotated reads what annotations say of a container and its pod; the UID is empty where they say nothing.
func Annotated(annotations map[string]string) (uid string, container Container, err error) {
	uid, container.Name = annotations[prefix+"pod-uid"], annotations[prefix+"container"]
	if container.Requests, err = parse(annotations[prefix+"requests."+container.Name]); err != nil {
		return
	}
	container.Limits, err = parse(annotations[prefix+"limits."+container.Name])
	return
}

// amounts in the JSON of a pod.
type amounts struct {
	CPU    string `json:"cpu"`
	Memory string `json:"memory"`
}

func (a amounts) resources() (found Resources, err error) {
	if a.CPU != "" {
		found.CPU, err = quantity(a.CPU, 1000)
	}
	if a.Memory != "" && err == nil {
		found.Memory, err = quantity(a.Memory, 1)
	}
	return found, err
}

// Specified reads podqos.io/pod: all containers of a pod.
func Specified(annotations map[string]string) (containers []Container, err error) {
	var pod struct {
		Containers []struct {
			Name      string `json:"name"`
			Resources struct {
				Requests amounts `json:"requests"`
				Limits   amounts `json:"limits"`
			} `json:"resources"`
		} `json:"containers"`
	}
	if err := json.Unmarshal([]byte(annotations[prefix+"pod"]), &pod); err != nil {
		return nil, err
	}
	for _, each := range pod.Containers {
		container := Container{Name: each.Name}
		if container.Requests, err = each.Resources.Requests.resources(); err != nil {
			return nil, err
		}
		if container.Limits, err = each.Resources.Limits.resources(); err != nil {
			return nil, err
		}
		containers = append(containers, container)
	}
	return containers, nil
}

// Tier of a pod, by its containers.
func Tier(containers ...Container) string {
	tier, guaranteed := "besteffort", true
	for _, each := range containers {
		if each.Requests != (Resources{}) || each.Limits != (Resources{}) {
			tier = "burstable"
		}
		guaranteed = guaranteed && each.Limits.CPU != 0 && each.Limits.Memory != 0 && each.Requests == each.Limits
	}
	if guaranteed {
		return ""
	}
	return tier
}

// CPUShares of a request.
func CPUShares(milli int64) uint64 {
	return uint64(min(max(milli*1024/1000, 2), 262144))
}

// CPUQuota of a limit.
func CPUQuota(milli int64) int64 {
	return max(milli*Period/1000, 1000)
}
