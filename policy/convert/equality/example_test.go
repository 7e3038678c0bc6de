package equality_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/equality"
	"github.com/quaymaster/quaymaster/workload"
)

func ExampleCheck() {
	read := func(text string) []workload.Object {
		objects, _ := workload.Read(strings.NewReader(text), "example")
		return objects
	}
	source := read(rule("match: {any: [{resources: {kinds: [ConfigMap]}}]}\nvalidate: {failureAction: Enforce, allowExistingViolations: false, message: no data, pattern: {data: {open: \"?*\"}}}"))
	result := read(validating(configMaps, "validations: [{expression: \"has(object.data) && 'open' in object.data\", message: no data}]"))
	report, err := equality.Check(context.Background(), equality.Options{Source: source, Result: result, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	d := report.Differences[0]
	fmt.Println(d.By, d.Sample.Object["data"], d.Source.Result, d.Result.Result)
	// Output: verdict map[open:] denied admitted
}
