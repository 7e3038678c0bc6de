package scan

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
)

// signerFlags select a signer and the source: a gateway's inventory or its records.
type signerFlags struct {
	signer, gateway, tokenFile, caFile string
	decisionLogs                       []string
	reports                            bool
}

const (
	// signerTimeout bounds one request to a gateway, and maxAnswer its response in bytes.
	signerTimeout = 30 * time.Second
	maxAnswer     = 32 << 20
)

func (f *signerFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.signer, "signer", "", "list workloads that depend on a `key` (file or fingerprint), identity, digest or policy")
	flags.StringVar(&f.gateway, "gateway", "", "`URL` of the gateway's dashboard, for --signer")
	flags.StringArrayVar(&f.decisionLogs, "decision-log", nil, "decision log `folder`, for --signer or --compare; for --compare also a file, and repeated")
	flags.BoolVar(&f.reports, "reports", false, "read the reports in the cluster (--context), for --signer in place of --gateway")
	flags.StringVar(&f.tokenFile, "token-file", "", "`file` of the bearer token for --gateway")
	flags.StringVar(&f.caFile, "gateway-ca", "", "PEM `file` of certificate authorities for --gateway, in addition to the system's")
}

// query is the request's query for the gateway's API.
func (f *signerFlags) query() (url.Values, error) {
	named := strings.TrimSpace(f.signer)
	switch {
	case strings.HasPrefix(named, "sha256:") || strings.HasPrefix(named, "sha512:"):
		return url.Values{"digest": {named}}, nil
	case strings.HasPrefix(named, "policy:"):
		return url.Values{"policy": {strings.TrimPrefix(named, "policy:")}}, nil
	case isFingerprint(named):
		return url.Values{"key": {strings.ToLower(named)}}, nil
	}
	fingerprint, err := fingerprintOf(named)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, errNoKey) && !strings.HasSuffix(named, ".pub") {
		return url.Values{"signer": {named}}, nil
	}
	return url.Values{"key": {fingerprint}}, err
}

// isFingerprint reports whether a text is the SHA-256 of a key, or a long prefix of one.
func isFingerprint(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) >= 16 && len(text) <= 2*sha256.Size
}

var errNoKey = errors.New("no public key in it (PEM, PKIX)")

// fingerprintOf reads the file of a public key, or of a certificate, and returns the key's
// fingerprint.
func fingerprintOf(path string) (string, error) {
	text, err := limit.ReadFile(path, command.MaxKeyFile, "the key")
	if err != nil {
		return "", fmt.Errorf("--signer %s: %w", path, err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return "", fmt.Errorf("--signer %s: %w", path, errNoKey)
	}
	der := block.Bytes
	if block.Type == "CERTIFICATE" {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return "", fmt.Errorf("--signer %s: %w", path, err)
		}
		der = certificate.RawSubjectPublicKeyInfo
	} else if _, err := x509.ParsePKIXPublicKey(der); err != nil {
		return "", fmt.Errorf("--signer %s: %w", path, errNoKey)
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}

// stands are the images and workloads that depend on a signer.
type stands struct {
	output.Verdicts `json:"-"`

	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Signer     string              `json:"signer"`
	About      inventory.About     `json:"about"`
	Images     []inventory.Details `json:"images"`
	// NotRead counts the invalid reports.
	NotRead int `json:"notRead,omitempty"`

	inReports bool // reports have less data
}

func newStands() *stands {
	return &stands{APIVersion: report.APIVersion, Kind: "SignerUses", Images: []inventory.Details{}}
}

// Write implements runResult.
func (s *stands) Write(w io.Writer, to output.Destination) error {
	switch {
	case to.Format == output.JSON && s.Failure != nil:
		return command.WriteJSON(w, scanFailure{report.APIVersion, "SignerUses", s.Reason()})
	case to.Format == output.JSON:
		return command.WriteJSON(w, s)
	case s.Failure == nil:
		return s.text(w)
	}
	return s.Verdicts.Write(w, to)
}

// signerSource explains the access to a gateway's inventory. The dashboard listens on loopback
// unless it requires tokens, and the API server's proxy to Services consumes the token as its
// own.
const signerSource = `--signer asks what a gateway remembers: want one of --gateway URL, --decision-log FOLDER and --reports.
Of a dashboard that listens on loopback, as it does unless dashboard.address is set, in another terminal:
  kubectl -n quaymaster port-forward pod/$(kubectl -n quaymaster get lease quaymaster -o jsonpath='{.spec.holderIdentity}') 8001
(the pod that leads is the one that scans) and then --gateway http://127.0.0.1:8001
Of one at another address: --gateway https://HOST:PORT --gateway-ca FILE --token-file FILE, with a token
of somebody who may get its path (kubectl create token NAME).
Where reports are written: --reports, with --context NAME for another than the current cluster.
Where a decision log is kept: --decision-log with a copy of a replica's folder`

// runSigner lists the images and workloads that depend on a signer.
func (f *scanFlags) runSigner(ctx context.Context, t command.Terminal) error {
	asked := 0
	for _, is := range []bool{f.signer.gateway != "", len(f.signer.decisionLogs) == 1, f.signer.reports} {
		if is {
			asked++
		}
	}
	if asked != 1 {
		return errors.New(signerSource)
	}
	if f.outputs.HasOther(output.Text, output.JSON) {
		return errors.New("-o: with --signer, want text or json")
	}
	query, err := f.signer.query()
	if err != nil {
		return err
	}
	files, err := f.outputs.Open(t)
	if err != nil {
		return err
	}
	found, err := f.stands(ctx, t, query)
	if err != nil {
		found = &stands{Verdicts: output.Verdicts{Failure: err}}
	}
	found.Signer = f.signer.signer
	err = writeAll(t, files, found, found.Failure)
	if err == nil && found.NotRead > 0 {
		return command.Status(command.ExitError)
	}
	return err
}

// stands reads from the source that the flags name.
func (f *scanFlags) stands(ctx context.Context, t command.Terminal, query url.Values) (*stands, error) {
	var found *stands
	var err error
	source := "--decision-log"
	switch {
	case f.signer.gateway != "":
		asks, wrong := f.signer.client()
		if wrong != nil {
			return nil, wrong
		}
		source = "--gateway " + f.signer.gateway
		found, err = asks.ask(ctx, query)
	case f.signer.reports:
		client, wrong := f.client(t)
		if wrong != nil {
			return nil, wrong
		}
		source = "--reports"
		found, err = standsInReports(ctx, client.Dynamic, query)
	default:
		found, err = standsInLog(f.signer.decisionLogs[0], query)
	}
	if err != nil {
		return nil, roundError{fmt.Errorf("%s: %w", source, err)}
	}
	return found, nil
}

// asker is a client of a gateway.
type asker struct {
	base   *url.URL
	client *http.Client
	token  string
}

func (f *signerFlags) client() (*asker, error) {
	base, err := url.Parse(strings.TrimSuffix(f.gateway, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" {
		return nil, fmt.Errorf("--gateway %s: want http://host:port or https://host:port", f.gateway)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the default transport has this type
	if f.caFile != "" {
		pool, err := setup.CertificatePool(f.caFile)
		if err != nil {
			return nil, fmt.Errorf("--gateway-ca: %w", err)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	a := &asker{base: base, client: &http.Client{Timeout: signerTimeout, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if f.tokenFile != "" {
		text, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		a.token = strings.TrimSpace(string(text))
	}
	return a, nil
}

// ask reads all images that match the query, with their workloads.
func (a *asker) ask(ctx context.Context, query url.Values) (*stands, error) {
	found := newStands()
	for offset := 0; ; {
		query.Set("offset", strconv.Itoa(offset))
		query.Set("limit", strconv.Itoa(inventory.MaxPage))
		query.Set("sort", string(inventory.ByReference))
		var page struct {
			About inventory.About   `json:"about"`
			Total int               `json:"total"`
			Items []inventory.Image `json:"items"`
		}
		if err := a.get(ctx, "/api/v1/images?"+query.Encode(), &page); err != nil {
			return nil, err
		}
		found.About = page.About
		for _, item := range page.Items {
			var details inventory.Details
			if err := a.get(ctx, "/api/v1/images/"+url.PathEscape(item.ID), &details); err != nil {
				return nil, err
			}
			details.Record = nil
			found.Images = append(found.Images, details)
		}
		offset += len(page.Items)
		if len(page.Items) == 0 || offset >= page.Total {
			return found, nil
		}
	}
}

func (a *asker) get(ctx context.Context, path string, into any) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base.String()+path, http.NoBody)
	if err != nil {
		return err
	}
	if a.token != "" {
		request.Header.Set("Authorization", "Bearer "+a.token)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	body, err := limit.ReadAll(response.Body, maxAnswer, "the answer")
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, report.Escape(firstLine(body)))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("this is no answer of a gateway's dashboard: %w", err)
	}
	return nil
}

// firstLine is the first line of an error's body, shortened.
func firstLine(body []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	const most = 300
	if len(line) > most {
		line = line[:most]
	}
	return line
}

// text writes a line for each image and workload.
func (s *stands) text(w io.Writer) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	workloads, pods := 0, 0
	if len(s.Images) > 0 {
		fmt.Fprintln(table, "IMAGE\tDIGEST\tVERDICT\tWORKLOAD\tPODS")
	}
	for _, image := range s.Images {
		line := func(workload string, count int) {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\n", inRow(image.Reference), shortDigest(image.Digest), image.Verdict, inRow(workload), count)
		}
		running := 0
		for _, use := range image.Uses {
			if !use.Running {
				continue
			}
			running++
			workloads++
			pods += use.Pods
			line(strings.TrimSpace(use.Namespace+" "+use.Kind+"/"+use.Name), use.Pods)
		}
		if running == 0 {
			line("(nothing runs it)", 0)
		}
		if image.UsesLeftOut > 0 {
			line(fmt.Sprintf("(and %d more)", image.UsesLeftOut), 0)
		}
	}
	_ = table.Flush() // into memory
	if s.NotRead > 0 {
		fmt.Fprintf(&b, "not read: %d reports of the gateway that make no sense\n", s.NotRead)
	}
	fmt.Fprintf(&b, "%d images, %d workloads and %d pods at least stand on %s, %s\n", len(s.Images), workloads, pods, report.Escape(s.Signer), s.source())
	_, err := io.WriteString(w, b.String())
	return err
}

// source names the source of the data.
func (s *stands) source() string {
	if s.inReports {
		return "as the reports in the cluster say, which name the first signer that a rule met"
	}
	source := fmt.Sprintf("as replica %s remembers since %s", report.Escape(s.About.Replica), s.About.Since.UTC().Format(time.RFC3339))
	if s.About.Scanned.IsZero() {
		source += "; it has told of no scan yet, so that what came before is missing"
	}
	return source
}

// shortDigest is a prefix of a digest for display.
func shortDigest(digest string) string {
	const enough = len("sha256:") + 12
	if len(digest) > enough {
		return digest[:enough]
	}
	return digest
}
