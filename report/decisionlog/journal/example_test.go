package journal_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
)

func Example() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	j, err := journal.New(journal.Config{Folder: folder, Replica: "replica-a", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := decisionlog.GenerateKey()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- j.Run(ctx, key) }()

	since := j.Mark()
	j.Take(report.Decided{Occasion: report.Occasion{User: "jo", Undecided: "queue-full"}})
	fmt.Println("on disk:", j.Flush(ctx, since) == nil)

	stop()
	if err := <-ended; err != nil {
		fmt.Println(err)
	}
	for line, err := range decisionlog.Read(folder, 1) {
		fmt.Println(line.Seq, line.Kind, err)
	}
	// Output:
	// on disk: true
	// 1 open <nil>
	// 2 decision <nil>
	// 3 checkpoint <nil>
}
