package ratelimit_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

func Example() {
	book := ratelimit.New()
	hub := ratelimit.Account{Host: "hub.example"}
	ticket, err := book.Enter(context.Background(), hub, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	ticket.Heard(http.StatusOK, http.Header{"Ratelimit-Limit": {"100;w=21600"}, "Ratelimit-Remaining": {"20;w=21600"}})
	ticket.Leave()

	_, scan := book.Enter(context.Background(), hub, true)
	_, admission := book.Enter(context.Background(), hub, false)
	fmt.Println(scan != nil, admission == nil)
	// Output:
	// true true
}
