// Renders the templates of a Helm chart, as far as podqos's chart uses what Helm adds to Go's templates: the functions of
// sprig, and toYaml.
//
// usage: render DIRECTORY <DATA, where DATA is JSON: {"Values": {...}, "Release": {"Namespace": "..."}}
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

func toYaml(value interface{}) (string, error) {
	text, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(text), "\n"), err
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	log.SetFlags(0)
	var data map[string]interface{}
	must(0, json.NewDecoder(os.Stdin).Decode(&data))
	files := must(filepath.Glob(filepath.Join(os.Args[1], "*.yaml")))
	if len(files) == 0 {
		log.Fatalf("%s holds no templates", os.Args[1])
	}
	for _, file := range files {
		// A value that is not there is a mistake in a template.
		chart := template.New(file).Option("missingkey=error").Funcs(sprig.TxtFuncMap())
		chart = must(chart.Funcs(template.FuncMap{"toYaml": toYaml}).Parse(string(must(os.ReadFile(file)))))
		fmt.Println("---")
		must(0, chart.Execute(os.Stdout, data))
	}
}
