package decisionlog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// A line that was changed is found by the one after it.
func ExampleVerify() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	chain, err := decisionlog.NewChain("replica-a", decisionlog.Position{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var text []byte
	for _, user := range []string{"jo", "sam", "kim"} {
		text, err = chain.Append(text, &decisionlog.Entry{
			Kind: decisionlog.KindDecision, Time: time.Unix(1800000000, 0), Decision: &decisionlog.Decision{User: user},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	path := filepath.Join(folder, decisionlog.SegmentName(1))
	for _, written := range []string{string(text), strings.Replace(string(text), "sam", "tom", 1)} {
		if err := os.WriteFile(path, []byte(written), 0o600); err != nil {
			fmt.Println(err)
			return
		}
		summary, err := decisionlog.Verify(folder, decisionlog.VerifyOptions{})
		what, _, _ := strings.Cut(fmt.Sprint(err), ": expected")
		fmt.Println(summary.Lines, what)
	}
	// Output:
	// 3 <nil>
	// 2 decisions-00000000000000000001.jsonl, line 3 (number 3 of the log): the hash of the line before it
}
