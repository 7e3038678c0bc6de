package certificate_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/quaymaster/quaymaster/webhook/certificate"
)

// An own authority, kept in memory. In a cluster the Store is a Secret.
func Example() {
	own, err := certificate.NewOwn(certificate.OwnConfig{
		Store: &certificate.Memory{}, Where: "memory",
		Names: []string{"quaymaster.quaymaster.svc"},
		Log:   slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("before:", own.Ready())
	if err := own.Refresh(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println("after:", own.Ready())
	// Output:
	// before: no certificate was loaded yet
	// after: <nil>
}
