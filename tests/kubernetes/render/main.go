// Renders templates of a Helm chart, as far as podqos's chart uses what Helm adds to Go's templates: the functions of
// sprig, and toYaml.
//
// usage: render TEMPLATE... <DATA, where DATA is JSON: {"Values": {...}, "Release": {"Namespace": "..."}}
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

func toYaml(value interface{}) (string, error) {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(value)
	return strings.TrimSuffix(text.String(), "\n"), err
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
	for _, file := range os.Args[1:] {
		// A value that is not there is a mistake in a template.
		chart := template.New(file).Option("missingkey=error").Funcs(sprig.TxtFuncMap())
		chart = must(chart.Funcs(template.FuncMap{"toYaml": toYaml}).Parse(string(must(os.ReadFile(file)))))
		var text bytes.Buffer
		must(0, chart.Execute(&text, data))
		if object := strings.TrimSpace(text.String()); object != "" {
			fmt.Printf("---\n%s\n", object)
		}
	}
}
