// Package status classifies HTTP statuses of registries and token services (OCI Distribution
// Specification 1.1).
package status

import (
	"errors"
	"net/http"
	"slices"

	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/quaymaster/quaymaster/image"
)

// Kind returns the kind of a status that is no success. A 4xx about neither access nor the rate of
// requests is an answer: a user with push access can cause it by a digest that the registry rejects,
// so no failure setting admits it.
func Kind(status int) image.Kind {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return image.Refused
	case status == http.StatusNotFound, status == http.StatusGone:
		return image.NotFound
	case BlamesCredential(status):
		return image.Corrupt
	}
	return image.Unavailable
}

// IsTemporary reports whether the same request may succeed later.
func IsTemporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// BlamesCredential reports whether a status means that a request with this credential is
// refused: every 4xx that concerns neither the resource nor the rate of requests.
func BlamesCredential(status int) bool {
	switch status {
	case http.StatusNotFound, http.StatusGone, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError
}

// IsAboutContent reports whether the codes of a failure are about a digest or the content that it
// identifies.
func IsAboutContent(err error) bool {
	codes, _ := errors.AsType[errcode.Errors](err)
	return slices.ContainsFunc(codes, func(e errcode.Error) bool {
		switch e.Code {
		case errcode.ErrorCodeDigestInvalid, errcode.ErrorCodeManifestInvalid, errcode.ErrorCodeBlobUnknown,
			errcode.ErrorCodeManifestUnknown, errcode.ErrorCodeUnsupported:
			return true
		}
		return false
	})
}
