package sarif_test

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/finding"
	"github.com/quaymaster/quaymaster/report/sarif"
)

func ExampleWrite() {
	var b bytes.Buffer
	run := finding.Of(report.Failed("the trusted root could not be fetched"))
	if err := sarif.Write(&b, run, "1.2.3"); err != nil {
		fmt.Println(err)
	}
	var document struct {
		Version string
		Runs    []struct {
			Invocations []struct {
				ExecutionSuccessful        bool
				ToolExecutionNotifications []struct{ Message struct{ Text string } }
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &document); err != nil {
		fmt.Println(err)
	}
	told := document.Runs[0].Invocations[0]
	fmt.Println(document.Version, told.ExecutionSuccessful, told.ToolExecutionNotifications[0].Message.Text)
	// Output: 2.1.0 false nothing was decided: the trusted root could not be fetched
}
