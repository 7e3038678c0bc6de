package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/certpool"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/dependents"
)

// signerFlags select a signer and the source: a gateway's inventory or its records.
type signerFlags struct {
	signer, gateway, tokenFile, caFile string
	decisionLogs                       []string
	reports                            bool
}

// signerTimeout bounds one request to a gateway.
const signerTimeout = 30 * time.Second

func (f *signerFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.signer, "signer", "", "list workloads that depend on a `key` (file or fingerprint), identity, digest or policy")
	flags.StringVar(&f.gateway, "gateway", "", "`URL` of the gateway's dashboard, for --signer")
	flags.StringArrayVar(&f.decisionLogs, "decision-log", nil, "decision log `folder`, for --signer or --compare; for --compare also a file, and repeated")
	flags.BoolVar(&f.reports, "reports", false, "read the reports in the cluster (--context), for --signer in place of --gateway")
	flags.StringVar(&f.tokenFile, "token-file", "", "`file` of the bearer token for --gateway")
	flags.StringVar(&f.caFile, "gateway-ca", "", "PEM `file` of certificate authorities for --gateway, in addition to the system's")
}

// signerUses are the images and workloads that depend on a signer.
type signerUses struct {
	output.Verdicts `json:"-"`

	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Signer     string `json:"signer"`
	*dependents.List
}

// Write implements output.Result.
func (s *signerUses) Write(w io.Writer, to output.Destination) error {
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
const signerSource = `--signer needs one source: want one of --gateway URL, --decision-log FOLDER and --reports
- The dashboard of the leader, which scans, on loopback (dashboard.address is not set). In another terminal:
    kubectl -n quaymaster port-forward pod/$(kubectl -n quaymaster get lease quaymaster -o jsonpath='{.spec.holderIdentity}') 8001
  then --gateway http://127.0.0.1:8001
- The dashboard at another address: --gateway https://HOST:PORT --gateway-ca FILE --token-file FILE, with
  a token of a user with permission to get its path (kubectl create token NAME)
- The reports in a cluster: --reports, with --context NAME for another than the current one
- A decision log: --decision-log with a copy of a replica's folder`

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
	named := strings.TrimSpace(f.signer.signer)
	query, err := dependents.ParseQuery(named)
	if err != nil {
		return fmt.Errorf("--signer %s: %w", named, err)
	}
	files, err := f.outputs.Open(t)
	if err != nil {
		return err
	}
	found := &signerUses{APIVersion: report.APIVersion, Kind: "SignerUses", Signer: f.signer.signer, List: &dependents.List{}}
	list, err := f.dependents(ctx, t, query)
	if err != nil {
		found.Failure = err
	} else {
		found.List = list
	}
	err = writeAll(t, files, found, found.Failure)
	if err == nil && found.NotRead > 0 {
		return command.Status(command.ExitError)
	}
	return err
}

// dependents reads from the source that the flags name.
func (f *scanFlags) dependents(ctx context.Context, t command.Terminal, query dependents.Query) (found *dependents.List, err error) {
	source := "--decision-log"
	switch {
	case f.signer.gateway != "":
		gateway, wrong := f.signer.client()
		if wrong != nil {
			return nil, wrong
		}
		source = "--gateway " + f.signer.gateway
		found, err = gateway.Read(ctx, query)
	case f.signer.reports:
		client, wrong := f.client(t)
		if wrong != nil {
			return nil, wrong
		}
		source = "--reports"
		found, err = dependents.FromReports(ctx, client.Dynamic, query)
	default:
		found, err = dependents.FromLog(f.signer.decisionLogs[0], query)
	}
	if err != nil {
		return nil, roundError{fmt.Errorf("%s: %w", source, err)}
	}
	return found, nil
}

// client makes a client of the gateway.
func (f *signerFlags) client() (*dependents.Gateway, error) {
	base, err := url.Parse(strings.TrimSuffix(f.gateway, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" {
		return nil, fmt.Errorf("--gateway %s: want http://host:port or https://host:port", f.gateway)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the default transport has this type
	if f.caFile != "" {
		pool, err := certpool.Read(f.caFile, true)
		if err != nil {
			return nil, fmt.Errorf("--gateway-ca: %w", err)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	g := &dependents.Gateway{Base: base, Client: &http.Client{Timeout: signerTimeout, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if f.tokenFile != "" {
		text, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		g.Token = strings.TrimSpace(string(text))
	}
	return g, nil
}

// text writes a line for each image and workload.
func (s *signerUses) text(w io.Writer) error {
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
		fmt.Fprintf(&b, "not read: %s of the gateway, which cannot be parsed\n", command.Count(s.NotRead, "report"))
	}
	fmt.Fprintf(&b, "at least %s, %s and %s depend on %s, %s\n", command.Count(len(s.Images), "image"), command.Count(workloads, "workload"),
		command.Count(pods, "pod"), report.Escape(s.Signer), s.source())
	_, err := io.WriteString(w, b.String())
	return err
}

// source names the source of the data.
func (s *signerUses) source() string {
	if s.InReports {
		return "from the reports in the cluster, which name the first signer that a rule accepted"
	}
	source := fmt.Sprintf("from the decisions of replica %s since %s", report.Escape(s.About.Replica), s.About.Since.UTC().Format(time.RFC3339))
	if s.About.Scanned.IsZero() {
		source += "; no completed scan yet, so older workloads are missing"
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
