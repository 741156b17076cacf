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

func main() {
	log.SetFlags(0)
	var data map[string]interface{}
	if err := json.NewDecoder(os.Stdin).Decode(&data); err != nil {
		log.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(os.Args[1], "*.yaml"))
	if err != nil || len(files) == 0 {
		log.Fatalf("%s holds no templates", os.Args[1])
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			log.Fatal(err)
		}
		// A value that is not there is a mistake in a template.
		chart := template.New(file).Option("missingkey=error").Funcs(sprig.TxtFuncMap())
		chart, err = chart.Funcs(template.FuncMap{"toYaml": toYaml}).Parse(string(text))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("---")
		if err := chart.Execute(os.Stdout, data); err != nil {
			log.Fatal(err)
		}
	}
}
