package status_test

import (
	"fmt"
	"testing"

	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/internal/status"
)

func TestStatuses(t *testing.T) {
	for code, temporary := range map[int]bool{400: false, 404: false, 408: true, 425: true, 429: true, 500: true, 501: false, 502: true, 503: true, 504: true, 507: false} {
		if got := status.IsTemporary(code); got != temporary {
			t.Errorf("%d passes: %t", code, got)
		}
	}
	for code, kind := range map[int]image.Kind{400: image.Corrupt, 405: image.Corrupt, 408: image.Unavailable, 422: image.Corrupt, 425: image.Unavailable, 429: image.Unavailable, 499: image.Corrupt, 401: image.Refused, 403: image.Refused, 404: image.NotFound, 410: image.NotFound, 500: image.Unavailable} {
		if got := status.Kind(code); got != kind {
			t.Errorf("%d is %s, want %s", code, got, kind)
		}
	}
	for code, blames := range map[int]bool{200: false, 400: true, 401: true, 404: false, 410: false, 422: true, 429: false, 499: true, 500: false} {
		if got := status.BlamesCredential(code); got != blames {
			t.Errorf("%d blames the credential: %t", code, got)
		}
	}
}

func TestIsAboutContent(t *testing.T) {
	for code, want := range map[string]bool{"DIGEST_INVALID": true, "MANIFEST_INVALID": true, "UNSUPPORTED": true, "DENIED": false, "NAME_INVALID": false, "": false} {
		err := fmt.Errorf("fetch: %w", errcode.Errors{{Code: "FAULT"}, {Code: code}})
		if got := status.IsAboutContent(err); got != want {
			t.Errorf("%s: %t", code, got)
		}
	}
	if status.IsAboutContent(nil) {
		t.Error("no codes are about content")
	}
}
