package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/test/peers"
)

// The names of the signers and judges.
const (
	ours     = "quaymaster"
	cosign2  = peers.Cosign2
	cosign3  = peers.Cosign3
	notation = "notation"
)

// patience is for one answer.
const patience = 30 * time.Second

// answer is the answer of a judge.
type answer struct {
	Accepted bool
	Said     string
	codes    []string // of our refusal
}

func (a answer) String() string {
	if a.Accepted {
		return "accepts"
	}
	return "refuses: " + a.Said
}

// judges are all programs.
type judges map[string]*peers.Program

func newJudges(t *testing.T) judges {
	t.Helper()
	j := judges{cosign2: peers.Get(t, cosign2), cosign3: peers.Get(t, cosign3)}
	if path := os.Getenv("QUAYMASTER"); path != "" { // a released one, or one that was built already
		p := *j[cosign3]
		p.Path, j[ours] = path, &p
		return j
	}
	j[ours] = peers.Quaymaster(t)
	return j
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cosign asks one of its versions.
func (j judges) cosign(ctx context.Context, name string, args, env []string) answer {
	said, err := j[name].With(env...).Run(ctx, args...)
	if _, problem, ok := strings.Cut(said, "Error: "); ok {
		said = problem // and no warnings
	}
	return answer{Accepted: err == nil, Said: said}
}

// ask asks quaymaster for its record. Status 3, an error, is no acceptance.
func (j judges) ask(ctx context.Context, args []string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p := j[ours]
	command := exec.CommandContext(ctx, p.Path, args...)
	command.Dir, command.Env = p.Folder, p.Env
	var problem bytes.Buffer
	command.Stderr = &problem
	said, err := command.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1 && exit.ExitCode() != 3) {
		return answer{}, fmt.Errorf("quaymaster gave no answer: %w\n%s\n%s", err, &problem, strings.Join(args, " "))
	}
	a := answer{Accepted: err == nil}
	var record struct {
		Items []struct {
			Images []struct {
				Reasons []struct{ Code, Message, Expected, Found string }
			}
		}
	}
	if err := json.Unmarshal(said, &record); err != nil || len(record.Items) != 1 || len(record.Items[0].Images) != 1 {
		return answer{}, fmt.Errorf("the record cannot be read (%w): %s\n%s", err, said, strings.Join(args, " "))
	}
	for _, r := range record.Items[0].Images[0].Reasons {
		a.codes = append(a.codes, r.Code)
		a.Said += fmt.Sprintf("[%s] %s %s %s; ", r.Code, r.Message, r.Expected, r.Found)
	}
	slices.Sort(a.codes)
	a.codes = slices.Compact(a.codes)
	return a, nil
}

// fetch gets what a server on loopback has.
func fetch(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return content, err
}

func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
