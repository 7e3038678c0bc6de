package endpoints

import (
	"errors"
	"testing"

	"github.com/quaymaster/quaymaster/gateway"
)

// TestNotReady: the gateway is ready once the certificate and all requirements are.
func TestNotReady(t *testing.T) {
	met := make(chan struct{})
	certified := errors.New("no certificate yet")
	ready := AllReady(Checks(func() error { return certified }, []gateway.Requirement{{Met: met}}))
	if ready() {
		t.Error("ready before the requirement is met")
	}
	close(met)
	if ready() {
		t.Error("ready without a certificate")
	}
	certified = nil
	if !ready() {
		t.Error("not ready although everything is")
	}
}
