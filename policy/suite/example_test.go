package suite_test

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/policy/suite"
)

func ExampleRun() {
	paths, err := suite.Find([]string{"testdata/older"}, suite.FileName)
	if err != nil {
		fmt.Println(err)
		return
	}
	report := suite.Run(context.Background(), paths, suite.Options{})
	for _, check := range report.Suites[0].Checks {
		fmt.Println(check.Resource, check.Want, check.Outcome)
	}
	fmt.Println(report.Summary())
	// Output:
	// Pod/default/good pass passed
	// Deployment/default/bad fail passed
	// 2 passed, 0 failed, 0 skipped
}
