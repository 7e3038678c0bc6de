package attacks

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/webhook/admission"
)

// attacked, in the environment, has the process be the registry of that attack.
const attacked = "QUAYMASTER_ATTACKED"

// quay is what a registry of an attack has, in a process of its own.
type quay struct {
	Usual, Evil, Policy string
}

// serve is the registry's process: it tells what it has, and, for each line that it reads,
// how many requests came since; until there are no more lines. From the first line on it is
// the attack's.
func serve(b *testing.B, c *crowd, attack string) {
	b.Helper()
	told := json.NewEncoder(os.NewFile(3, "told"))
	s := newScene(b, c, admitting)
	usual, evil := s.signed("usual"), s.built("evil")
	s.check(told.Encode(quay{Usual: usual.ByDigest(), Evil: evil.Name, Policy: s.fill(signedBy(ofKey))}))
	begin := sync.OnceFunc(func() {
		i := slices.IndexFunc(costly(), func(one attackOnCost) bool { return one.name == attack })
		costly()[i].crowd(s, evil)
	})
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		begin()
		s.check(told.Encode(len(s.Registry.Requests())))
		s.Registry.Reset()
	}
}

// besieged starts the registry of an attack so that it runs when nobody else wants to
// (SCHED_IDLE), since its processors are not the gateway's but in this benchmark. requests
// are those since it was asked last.
func besieged(b *testing.B, attack string) (q quay, requests func() int) {
	b.Helper()
	own, err := os.Executable()
	told, tells, err2 := os.Pipe()
	if err != nil || err2 != nil {
		b.Fatal(err, err2)
	}
	command := exec.CommandContext(b.Context(), "chrt", "--idle", "0", own, "-test.run=^$", "-test.bench=^BenchmarkBesideAttacks$", "-test.benchtime=1x")
	command.Env, command.ExtraFiles = append(os.Environ(), attacked+"="+attack), []*os.File{tells}
	asks := must(command.StdinPipe())(b)
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	_ = tells.Close()
	b.Cleanup(func() {
		_, _ = asks.Close(), command.Wait()
		_ = told.Close()
	})
	answers := json.NewDecoder(told)
	read := func(into any) {
		if err := answers.Decode(into); err != nil {
			b.Fatalf("the registry of %s says nothing: %v", attack, err)
		}
	}
	read(&q)
	return q, func() (count int) {
		if _, err := io.WriteString(asks, "\n"); err != nil {
			b.Fatal(err)
		}
		read(&count)
		return count
	}
}

// BenchmarkBesideAttacks times both webhooks about an image that is known, at a hundred pods
// a second, alone and while somebody else asks about what costs: ten times a second, or one
// after another where one takes longer.
func BenchmarkBesideAttacks(b *testing.B) {
	c := newCrowd(b)
	if attack := os.Getenv(attacked); attack != "" {
		serve(b, c, attack)
		return
	}
	for _, one := range costly() {
		b.Run(one.name, func(b *testing.B) {
			s := newScene(b, c, admitting)
			s.patience, s.ages.Fact, s.ages.Tag = budget, time.Hour, time.Hour
			at, requests := besieged(b, one.name)
			s.documents = []string{at.Policy}
			s.admitted(at.Usual)
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
					all[i] = asks(at.Usual)
				}
				return all
			}
			requests()
			var alone, beside []time.Duration // of all rounds
			attacks := 0
			for b.Loop() {
				alone = append(alone, measure()...)
				if asked := requests(); asked > 0 {
					b.Fatalf("%d requests for what is known", asked)
				}
				stop, done := make(chan struct{}), make(chan int)
				go func() { done <- besiege(stop, attackPace, func() { asks(at.Evil) }) }()
				beside = append(beside, measure()...)
				close(stop)
				attacks += <-done
				if requests() == 0 {
					b.Fatal("nobody was attacked")
				}
			}
			slices.Sort(alone)
			slices.Sort(beside)
			of := func(all []time.Duration, percent int) float64 {
				return float64(all[len(all)*percent/100].Microseconds())
			}
			b.ReportMetric(of(alone, 50), "p50-alone-µs")
			b.ReportMetric(of(alone, 99), "p99-alone-µs")
			b.ReportMetric(of(beside, 50), "p50-beside-µs")
			b.ReportMetric(of(beside, 99), "p99-beside-µs")
			b.ReportMetric(of(beside, 50)/of(alone, 50), "p50-ratio")
			b.ReportMetric(of(beside, 99)/of(alone, 99), "p99-ratio")
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
