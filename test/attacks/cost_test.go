package attacks

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// mostMemory is how much more memory than a usual image any other may cost.
const mostMemory = 64 << 20

// costly are the attacks that are to cost the attacker: each lies beside one image.
func costly() []attackOnCost {
	return []attackOnCost{
		{"thousand-signatures", thousandBundles},
		{"thousand-layers", thousandLayers},
		{"ten-thousand-referrers", tenThousand},
		{"endless-manifest", fault(registrytest.Manifest, registrytest.Endless())},
		{"endless-referrers", fault(registrytest.Referrers, registrytest.Endless())},
		{"entry-as-large-as-a-list", fault(registrytest.Referrers, registrytest.Oversize(ocispec.MediaTypeImageIndex, 31<<20))},
		{"endless-blob", func(s *scene, image gatetest.Image) {
			s.check(s.SignBundle(image, by(s.stranger), nil))
			s.listed = true
			s.misbehaves(registrytest.Fault{Method: http.MethodGet, Kind: registrytest.Blob, Do: registrytest.Endless()})
		}},
		{"bomb-of-referrers", fault(registrytest.Referrers, registrytest.GzipBomb(bombs))},
		{"bomb-of-a-manifest", fault(registrytest.Manifest, registrytest.GzipBomb(bombs))},
	}
}

type attackOnCost struct {
	name  string
	crowd func(*scene, gatetest.Image)
}

// usage is what one run of the program took.
type usage struct {
	code   int
	memory int64 // the most that it had of its own at once, in bytes
	took   time.Duration
	work   time.Duration // of processors
}

// run verifies an image by the program, and looks at the process while it does.
func (s *scene) run(image string) usage {
	t := s.t
	t.Helper()
	program := s.program()
	command := exec.CommandContext(t.Context(), program.Path, s.arguments(t.TempDir(), request{now: pod(image)})...)
	command.Dir, command.Env = program.Folder, program.Env
	began := time.Now()
	s.check(command.Start())
	ended := make(chan struct{})
	most := make(chan int64)
	go func() { most <- watched(command.Process.Pid, ended) }()
	_ = command.Wait() // the exit status is read below
	close(ended)
	state := command.ProcessState
	return usage{code: state.ExitCode(), memory: <-most, took: time.Since(began), work: state.UserTime() + state.SystemTime()}
}

// watched returns the most memory that a process had which no file stands behind
// (RssAnon): it looks every two milliseconds, until the process has ended.
func watched(process int, ended <-chan struct{}) (most int64) {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
		if err != nil {
			return most
		}
		for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
			if text, is := strings.CutPrefix(lines.Text(), "RssAnon:"); is {
				kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
				most = max(most, kib<<10)
			}
		}
		select {
		case <-ended:
			return most
		case <-ticker.C:
		}
	}
}

// holdsCosts bounds the cost of an attack in every process that verifies the image: the time
// of a request, and little more memory than any image. The attacks run one by one, before the
// other tests.
func holdsCosts(t *testing.T, c *crowd) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("memory is read in /proc")
	}
	for _, one := range costly() {
		t.Run(one.name, func(t *testing.T) {
			s := newScene(t, c, commandLine)
			s.patience = budget
			usual, evil := s.signed("usual"), s.built("evil")
			s.policies(signedBy(ofKey))
			least := s.run(usual.Name)
			if least.code != 0 || least.memory == 0 {
				t.Fatalf("a usual image: %+v", least)
			}
			one.crowd(s, evil)
			s.Registry.Reset()
			got := s.run(evil.Name)
			if got.code != exitDenied && got.code != exitError {
				t.Errorf("exit status %d", got.code)
			}
			s.cheap(got.took)
			more := got.memory - least.memory
			if more >= mostMemory {
				t.Errorf("%d MiB more than the %d MiB of a usual image, want less than %d", more>>20, least.memory>>20, mostMemory>>20)
			}
			t.Logf("%d requests, %v (a usual image %v), %v of processors (%v), %.1f MiB of memory (%.1f)", len(s.Registry.Requests()),
				got.took.Round(time.Millisecond), least.took.Round(time.Millisecond), got.work.Round(time.Millisecond), least.work.Round(time.Millisecond),
				float64(got.memory)/(1<<20), float64(least.memory)/(1<<20))
		})
	}
}
