package notation

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/notaryproject/notation-core-go/revocation/crl"
)

// Fetch implements crl.Fetcher: it responds from the cache or downloads a list, and records it.
func (k *revocationRequests) Fetch(ctx context.Context, url string) (*crl.Bundle, error) {
	issuers, err := k.issuers(url)
	if err != nil {
		return nil, err
	}
	asked := question{method: "CRL", url: url, issuers: issuers}
	if known, ok := k.client.memory.Get(asked); ok {
		k.hear(asked, known)
		return known.list, speaksOf(known.list.BaseCRL, url, k.chain)
	}
	download := &listDownload{client: k.client}
	defer download.release()
	fetcher, err := crl.NewHTTPFetcher(k.httpClient(download))
	if err != nil {
		return nil, err
	}
	list, err := fetcher.Fetch(ctx, url)
	if err != nil {
		return nil, err
	}
	if err := speaksOf(list.BaseCRL, url, k.chain); err != nil {
		return nil, err
	}
	heard := &answer{list: list, next: list.BaseCRL.NextUpdate}
	trim(list.BaseCRL)
	if delta := list.DeltaCRL; delta != nil {
		trim(delta)
		if delta.NextUpdate.Before(heard.next) {
			heard.next = delta.NextUpdate
		}
	}
	k.hear(asked, heard)
	return list, nil
}

// issuers returns the keys that issued the certificates with this URL. It refuses certificates with many URLs:
// notation downloads all of them.
func (k *revocationRequests) issuers(url string) (string, error) {
	var keys []byte
	for i, certificate := range k.chain[:len(k.chain)-1] {
		if !slices.Contains(certificate.CRLDistributionPoints, url) {
			continue
		}
		if points := len(certificate.CRLDistributionPoints); points > maxPoints {
			return "", fmt.Errorf("the certificate names %d revocation lists, more than the bound of %d", points, maxPoints)
		}
		keys = append(keys, k.chain[i+1].RawSubjectPublicKeyInfo...)
	}
	return string(keys), nil
}

// trim removes what a parsed list has twice (a deprecated field that notation does not read), and spare capacity.
func trim(list *x509.RevocationList) {
	list.RevokedCertificates = nil //nolint:staticcheck // it is removed
	list.RevokedCertificateEntries = slices.Clone(list.RevokedCertificateEntries)
}

// listDownload is the transport for one list and its delta. A parsed list takes many times its size, so the
// process parses one at a time: the response is read first, and returned when no other list is parsed.
type listDownload struct {
	client *revocationClient
	parses bool
}

// RoundTrip implements http.RoundTripper.
func (d *listDownload) RoundTrip(request *http.Request) (*http.Response, error) {
	d.release() // the delta of a list is requested after the list was parsed
	response, err := d.client.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	select {
	case d.client.parsing <- struct{}{}:
		d.parses = true
		return response, nil
	case <-request.Context().Done():
		return nil, fmt.Errorf("wait for other lists: %w", context.Cause(request.Context()))
	}
}

func (d *listDownload) release() {
	if d.parses {
		<-d.client.parsing
		d.parses = false
	}
}
