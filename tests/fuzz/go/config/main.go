// Changes config.json at random, and compares what Go makes of each with what podqos does: runc reads it with Go's
// encoding/json into runtime-spec's own types. What Go takes, podqos takes with the same values, or refuses for a reason
// that is allowed; what podqos edits is, decoded by Go, as before but for what it says that it has changed.
//
//	config READER SEED COUNT FILE...      READER: the program of tests/fuzz/read_config.cpp
//
// Prints how often what was found; exit status 1 if anything differs.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

var tokens = regexp.MustCompile(`(?s)"(?:\\.|[^"\\])*"|[-+0-9.eE]+|true|false|null|[{}\[\]:,]|\s+`)

// What podqos refuses though Go takes it: parsers differ in which of the values they use, Go has not read so far, or the
// kernel has no such path.
var refused = regexp.MustCompile(`member is repeated|NUL byte|expected the end of the text|path contains control bytes`)

var names = strings.Fields("linux resources cpu shares quota period memory limit reservation cgroupsPath process " +
	"oomScoreAdj annotations hooks createRuntime prestart poststop path args pids unified swap podqos.io/pod " +
	"io.kubernetes.cri.sandbox-id")

var values = []string{"null", "0", "-0", "-1", "1", "1.0", "1e2", "0.5", "18446744073709551615", "18446744073709551616",
	"9223372036854775807", "-9223372036854775808", `""`, `"a"`, `"/x/y"`, "[]", "{}", "true", "[null]", `{"a":null}`,
	`"\u0000"`, `"\ud800"`, `"\ud83d\ude00"`, "\"\xff\"", `"\/"`, "01", "1.", ".5", "+1", "NaN", "\"a\nb\"", "1e999", "-"}

var between = []string{" ", "\t", "\r\n", "\ufeff", "/**/", "\f", "\u00a0"}
var behind = []string{" ", "\n", "x", "{}", "\x00", "]", `"`}

const small = `{"process":{"args":["x"],"oomScoreAdj":5},"annotations":{"podqos.io/pod-uid":"u",` +
	`"io.kubernetes.cri.sandbox-id":"s"},"linux":{"cgroupsPath":"/a/b","resources":{"cpu":{"shares":100,"quota":5000,` +
	`"period":100000},"memory":{"limit":1000000,"reservation":5},"pids":{"limit":7}}}}`

type mutator struct{ *rand.Rand }

func (m mutator) of(list []string) string { return list[m.Intn(len(list))] }

func (m mutator) otherCase(name string) string {
	changed := []byte(name)
	for i, c := range changed {
		if letter := c &^ 32; letter >= 'A' && letter <= 'Z' && m.Intn(3) == 0 {
			changed[i] ^= 32
		}
	}
	return string(changed)
}

func insert(list []string, at int, what ...string) []string {
	return append(append(append([]string{}, list[:at]...), what...), list[at:]...)
}

// change makes one change to the tokens of a text.
func (m mutator) change(text []string) []string {
	var members, objects []int
	for i, token := range text {
		if token[0] == '"' && i+2 < len(text) && text[i+1] == ":" {
			members = append(members, i)
		}
		if token == "{" {
			objects = append(objects, i)
		}
	}
	if len(members) == 0 {
		return text
	}
	at := members[m.Intn(len(members))]
	name, value := strings.Trim(text[at], `"`), text[at+2]
	isSimple := value != "{" && value != "["
	switch m.Intn(10) {
	case 0:
		text[at] = `"` + m.otherCase(name) + `"`
	case 1: // Go folds these two as well
		text[at] = `"` + strings.NewReplacer("k", "\u212a", "s", "\u017f").Replace(name) + `"`
	case 2:
		if name != "" && name[0] < 0x80 && name[0] != '\\' {
			text[at] = fmt.Sprintf(`"\u%04x%s"`, name[0], name[1:])
		}
	case 3:
		return insert(text, at, `"`+m.otherCase(name)+`"`, ":", m.of(values), ",")
	case 4:
		if isSimple {
			return insert(text, at+3, ",", text[at], ":", m.of(values))
		}
	case 5:
		if isSimple {
			text[at+2] = m.of(values)
		}
	case 6:
		object := objects[m.Intn(len(objects))]
		member := []string{`"` + m.of(names) + `"`, ":", m.of(values)}
		if object+1 < len(text) && text[object+1] != "}" {
			member = append(member, ",")
		}
		return insert(text, object+1, member...)
	case 7:
		return append(text, m.of(behind))
	case 8:
		return insert(text, m.Intn(len(text)), m.of(between))
	case 9:
		if !isSimple {
			return insert(text, at, text[at], ":", "null", ",")
		}
	}
	return text
}

func decode(text []byte) (*specs.Spec, error) {
	var spec *specs.Spec
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&spec); err != nil {
		return nil, err
	}
	if spec == nil {
		return nil, fmt.Errorf("null")
	}
	return spec, nil
}

// apply changes what READER's edit sets, and what of it podqos has read before.
func apply(spec *specs.Spec) {
	shares, limit, score := uint64(512), int64(1)<<30, -998
	if spec.Linux == nil {
		spec.Linux = &specs.Linux{}
	}
	if spec.Linux.Resources == nil {
		spec.Linux.Resources = &specs.LinuxResources{}
	}
	resources := spec.Linux.Resources
	if resources.CPU == nil {
		resources.CPU = &specs.LinuxCPU{}
	}
	if resources.Memory == nil {
		resources.Memory = &specs.LinuxMemory{}
	}
	if spec.Process == nil {
		spec.Process = &specs.Process{}
	}
	spec.Linux.CgroupsPath, spec.Process.OOMScoreAdj = "/kubepods/pod1/c", &score
	resources.CPU.Shares, resources.Memory.Limit = &shares, &limit
	spec.Hooks = nil
}

// facts are what READER prints of a text: values as decimal numbers, absent ones as "-".
func facts(spec *specs.Spec) string {
	// Engines write 0 for what is not set.
	number := func(value *int64) string {
		if value == nil || *value == 0 {
			return "-"
		}
		return strconv.FormatInt(*value, 10)
	}
	resources := specs.LinuxResources{}
	path := ""
	if spec.Linux != nil {
		path = spec.Linux.CgroupsPath
		if spec.Linux.Resources != nil {
			resources = *spec.Linux.Resources
		}
	}
	if resources.CPU == nil {
		resources.CPU = &specs.LinuxCPU{}
	}
	if resources.Memory == nil {
		resources.Memory = &specs.LinuxMemory{}
	}
	score := "-"
	if spec.Process != nil && spec.Process.OOMScoreAdj != nil {
		score = strconv.Itoa(*spec.Process.OOMScoreAdj)
	}
	said := []string{strconv.Quote(path), score, number(resources.CPU.Quota), number(resources.Memory.Limit),
		number(resources.Memory.Reservation)}
	for _, name := range []string{"podqos.io/pod-uid", "io.kubernetes.cri.sandbox-id"} {
		said = append(said, strconv.Quote(spec.Annotations[name]))
	}
	return strings.Join(said, " ")
}

type answer struct {
	Error string
	// Bytes, that JSON cannot hold where they are no UTF-8.
	Path, PodUID, Sandbox, Edited []byte
	Numbers                       [4]*int64
}

func (a answer) facts() string {
	said := []string{strconv.Quote(string(a.Path))}
	for _, value := range a.Numbers {
		if value == nil {
			said = append(said, "-")
		} else {
			said = append(said, strconv.FormatInt(*value, 10))
		}
	}
	return strings.Join(append(said, strconv.Quote(string(a.PodUID)), strconv.Quote(string(a.Sandbox))), " ")
}

// judge says what is wrong; "" and what was found if nothing is.
func judge(text []byte, got answer) (wrong, found string) {
	spec, err := decode(text)
	switch {
	case err != nil:
		return "", "not taken by Go"
	case got.Error != "" && !refused.MatchString(got.Error):
		return "Go takes what podqos refuses: " + got.Error, ""
	case got.Error != "":
		return "", "taken by Go, refused by podqos: " + refused.FindString(got.Error)
	case facts(spec) != got.facts():
		return fmt.Sprintf("Go reads %s, podqos %s", facts(spec), got.facts()), ""
	}
	edited, err := decode(got.Edited)
	if err != nil {
		return "Go does not take what podqos has edited: " + err.Error(), ""
	}
	if edited.Hooks == nil {
		return "podqos has registered no hooks", ""
	}
	apply(spec)
	edited.Hooks = nil
	if !reflect.DeepEqual(spec, edited) {
		return "an edit has changed something else", ""
	}
	return "", "the same, edited too"
}

func run(reader string, seed int64, count int, files []string) error {
	texts := []string{small, `{"linux":{}}`, `{}`}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		texts = append(texts, string(text))
	}
	command := exec.Command(reader)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	answers, found, m := json.NewDecoder(bufio.NewReader(out)), map[string]int{}, mutator{rand.New(rand.NewSource(seed))}
	for range make([]struct{}, count) {
		parts := tokens.FindAllString(m.of(texts), -1)
		for left := 1 + m.Intn(4); left > 0; left-- {
			parts = m.change(parts)
		}
		text := []byte(strings.Join(parts, ""))
		var got answer
		fmt.Fprintf(in, "%d\n%s", len(text), text)
		if err := answers.Decode(&got); err != nil {
			return fmt.Errorf("no answer to %q: %w", text, err)
		}
		wrong, what := judge(text, got)
		if wrong != "" {
			return fmt.Errorf("%s: %q", wrong, text)
		}
		found[what]++
	}
	in.Close()
	if _, err := io.Copy(io.Discard, out); err != nil {
		return err
	}
	var said []string
	for what, times := range found {
		said = append(said, fmt.Sprintf("%d %s", times, what))
	}
	sort.Strings(said)
	fmt.Println(strings.Join(said, "; "))
	return command.Wait()
}

func main() {
	seed, err := strconv.ParseInt(os.Args[2], 10, 64)
	count := 0
	if err == nil {
		count, err = strconv.Atoi(os.Args[3])
	}
	if err == nil {
		err = run(os.Args[1], seed, count, os.Args[4:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
