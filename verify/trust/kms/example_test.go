package kms_test

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/trust/kms"
)

func Example() {
	store, err := trust.New(trust.Options{KMS: kms.Providers{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A policy's author does not choose the destination of our credentials.
	_, err = store.Snapshot().Resolve(context.Background(), keyAt("awskms://kms.example/alias/signing"))
	fmt.Println(err)
	// Output:
	// authority key: look up key awskms://kms.example/alias/signing: awskms://kms.example/alias/signing names the endpoint kms.example; write awskms:///KEY, or allow endpoints of your own
}
