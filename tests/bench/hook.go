// The least that a hook written in Go does: it parses the state and the bundle's config.json with the types of the
// runtime specification's own package, and ends.
package main

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/opencontainers/runtime-spec/specs-go"
)

func main() {
	var state specs.State
	if err := json.NewDecoder(os.Stdin).Decode(&state); err != nil {
		os.Exit(1)
	}
	text, err := os.ReadFile(filepath.Join(state.Bundle, "config.json"))
	if err != nil {
		os.Exit(1)
	}
	var config specs.Spec
	if err := json.Unmarshal(text, &config); err != nil {
		os.Exit(1)
	}
}
