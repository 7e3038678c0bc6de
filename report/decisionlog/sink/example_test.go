package sink_test

import (
	"context"
	"fmt"
	"os"

	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/report/decisionlog/sink"
)

// A receiver gets the lines as they are.
func ExampleStream() {
	to := sink.Stream{To: os.Stdout}
	if err := to.Deliver(context.Background(), []decisionlog.Line{{Raw: []byte(`{"v":2,"seq":1}`)}, {Raw: []byte(`{"v":2,"seq":2}`)}}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"v":2,"seq":1}
	// {"v":2,"seq":2}
}
