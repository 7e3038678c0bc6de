package attacks

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/webhook/admission"
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
	_ = command.Wait() // the exit status says it
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

// holdsCosts holds what an attack may cost whoever looks at the image: the time of a
// request, and little more memory than any image. It goes one by one, before anything
// else does.
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
			if got.code != exitDenied && got.code != exitUnable {
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

// BenchmarkBesideAttacks times both webhooks about an image that is known, at a hundred pods
// a second, alone and while somebody else asks about what costs: ten times a second, or one
// after another where one takes longer. Registry and gateway share this machine's
// processors, so that the attacker's own work is in it.
func BenchmarkBesideAttacks(b *testing.B) {
	c := newCrowd(b)
	for _, one := range costly() {
		b.Run(one.name, func(b *testing.B) {
			s := newScene(b, c, admitting)
			s.patience, s.ages.Fact, s.ages.Tag = budget, time.Hour, time.Hour
			usual, evil := s.signed("usual"), s.built("evil")
			s.policies(signedBy(ofKey))
			s.admitted(usual.ByDigest())
			one.crowd(s, evil)
			asks := func(image string) time.Duration {
				began := time.Now()
				s.post(admission.Mutate, s.review(request{now: pod(image)}, request{now: pod(image)}.text(s)))
				return time.Since(began)
			}
			const rounds, pace, attackPace = 300, 10 * time.Millisecond, 100 * time.Millisecond
			measure := func() []time.Duration {
				all := make([]time.Duration, rounds)
				tick := time.NewTicker(pace)
				defer tick.Stop()
				for i := range all {
					<-tick.C
					all[i] = asks(usual.ByDigest())
				}
				return all
			}
			s.Registry.Reset()
			var alone, beside []time.Duration // of all rounds
			attacks := 0
			for b.Loop() {
				alone = append(alone, measure()...)
				if asked := len(s.Registry.Requests()); asked > 0 {
					b.Fatalf("%d requests for what is known", asked)
				}
				stop, done := make(chan struct{}), make(chan int)
				go func() { done <- besiege(stop, attackPace, func() { asks(evil.Name) }) }()
				beside = append(beside, measure()...)
				close(stop)
				attacks += <-done
				s.Registry.Reset()
			}
			slices.Sort(alone)
			slices.Sort(beside)
			at := func(all []time.Duration, percent int) float64 {
				return float64(all[len(all)*percent/100].Microseconds())
			}
			b.ReportMetric(at(alone, 50), "p50-alone-µs")
			b.ReportMetric(at(alone, 99), "p99-alone-µs")
			b.ReportMetric(at(beside, 50), "p50-beside-µs")
			b.ReportMetric(at(beside, 99), "p99-beside-µs")
			b.ReportMetric(at(beside, 50)/at(alone, 50), "p50-ratio")
			b.ReportMetric(at(beside, 99)/at(alone, 99), "p99-ratio")
			b.ReportMetric(float64(sum(beside))/float64(sum(alone)), "mean-ratio")
			b.ReportMetric(float64(attacks)/float64(b.N), "attacks")
		})
	}
}

func sum(all []time.Duration) (total time.Duration) {
	for _, one := range all {
		total += one
	}
	return total
}

// besiege attacks at a pace until it is stopped, once at least, and counts.
func besiege(stop <-chan struct{}, pace time.Duration, attack func()) (count int) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		attack()
		count++
		select {
		case <-stop:
			return count
		case <-tick.C:
		}
	}
}
