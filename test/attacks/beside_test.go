package attacks

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// The environment selects the role of a process of this benchmark.
const (
	attacked = "QUAYMASTER_ATTACKED" // the registry of that attack
	asking   = "QUAYMASTER_ASKING"   // the client of the webhook, with the registry of the other images
)

// The normal load is that of a steady day (docs/engineering/performance.md): of the pods, one
// in twenty is of an uncached image, in a registry that is some way off.
const (
	pods       = 300
	pace       = 10 * time.Millisecond
	attackPace = 100 * time.Millisecond
	oneIn      = 20
	distance   = 20 * time.Millisecond
)

// quay is an image in the registry of a process, and the policy for it.
type quay struct {
	Image, Policy string
}

// order requests one measurement of the client, in parallel with the evil review if there is
// one.
type order struct {
	URL  string
	Evil []byte
}

// measured is what a measurement gave.
type measured struct {
	Known, New []time.Duration
	Attacks    int
}

// replies encodes the answers of a process of this benchmark.
func replies() *json.Encoder { return json.NewEncoder(os.NewFile(3, "told")) }

// serve is the attacker's registry. It writes its quay and, for each line that it reads, the
// number of requests since then, until the input ends. From the first line on it attacks.
func serve(b *testing.B, c *crowd, attack string) {
	b.Helper()
	tells := replies()
	s := newScene(b, c, admitting)
	evil := s.built("evil")
	policy := strings.Replace(s.fill(signedBy(ofKey)), "{name: images}", "{name: evil}", 1)
	s.check(tells.Encode(quay{Image: evil.Name, Policy: policy}))
	begin := sync.OnceFunc(func() {
		i := slices.IndexFunc(costly(), func(one attackOnCost) bool { return one.name == attack })
		costly()[i].crowd(s, evil)
	})
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		begin()
		s.check(tells.Encode(len(s.Registry.Requests())))
		s.Registry.Reset()
	}
}

// ask is the client process, in the role of an API server: it writes its quay, and a
// measurement for each order that it reads.
func ask(b *testing.B, c *crowd) {
	b.Helper()
	tells := replies()
	s := newScene(b, c, admitting)
	s.hostile(registrytest.Options{Delay: distance})
	known := s.signed("known").ByDigest()
	s.check(tells.Encode(quay{Image: known, Policy: s.fill(signedBy(ofKey))}))
	a := &asker{scene: s, known: s.creation(known), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: pods}}}
	for orders := json.NewDecoder(os.Stdin); ; {
		var next order
		if err := orders.Decode(&next); err != nil {
			return // there are no more
		}
		s.check(tells.Encode(a.measure(next)))
	}
}

// creation is the review of a pod.
func (s *scene) creation(image string) []byte {
	s.t.Helper()
	of := request{now: pod(image)}
	return s.review(of, of.text(s))
}

type asker struct {
	*scene
	client *http.Client
	known  []byte
	made   int // images
}

// measure asks at a pace, whether or not those before have their answers.
func (a *asker) measure(now order) (got measured) {
	bodies := make([][]byte, pods)
	for i := range bodies {
		bodies[i] = a.known
		if i%oneIn == oneIn-1 {
			a.made++
			bodies[i] = a.creation(a.signed(fmt.Sprint("new", a.made)).ByDigest())
		}
	}
	stop, done := make(chan struct{}), make(chan int)
	if now.Evil != nil {
		go func() { done <- besiege(stop, attackPace, func() { _ = a.post(now.URL, now.Evil) }) }()
	}
	took, errs := make([]time.Duration, pods), make([]error, pods)
	var group sync.WaitGroup
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for i := range bodies {
		<-tick.C
		group.Go(func() {
			began := time.Now()
			errs[i] = a.post(now.URL, bodies[i])
			took[i] = time.Since(began)
		})
	}
	group.Wait()
	close(stop)
	if now.Evil != nil {
		got.Attacks = <-done
	}
	a.check(errs...)
	for i, one := range took {
		if i%oneIn == oneIn-1 {
			got.New = append(got.New, one)
		} else {
			got.Known = append(got.Known, one)
		}
	}
	return got
}

// post sends a review to the webhook; a denial is an error.
func (a *asker) post(url string, body []byte) error {
	response, err := a.client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && !bytes.Contains(text, []byte(`"allowed":true`)) {
		err = fmt.Errorf("not allowed: %s", text)
	}
	return err
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

// process starts this benchmark again in the role that the environment selects, and returns
// its input and output.
func process(b *testing.B, environment string, before ...string) (io.Writer, *json.Decoder) {
	b.Helper()
	own, err := os.Executable()
	told, tells, err2 := os.Pipe()
	if err != nil || err2 != nil {
		b.Fatal(err, err2)
	}
	words := append(before, own, "-test.run=^$", "-test.bench=^BenchmarkBesideAttacks$", "-test.benchtime=1x")
	command := exec.CommandContext(b.Context(), words[0], words[1:]...)
	command.Env, command.ExtraFiles = append(os.Environ(), environment), []*os.File{tells}
	asks := testkit.Must(command.StdinPipe())(b)
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	_ = tells.Close()
	b.Cleanup(func() {
		_, _ = asks.Close(), command.Wait()
		_ = told.Close()
	})
	return asks, json.NewDecoder(told)
}

// besieged starts the registry of an attack with the scheduling policy SCHED_IDLE, since
// outside this benchmark it would not share the gateway's processors. requests returns the
// number of requests since the last call.
func besieged(b *testing.B, attack string) (q quay, requests func() int) {
	b.Helper()
	asks, answers := process(b, attacked+"="+attack, "chrt", "--idle", "0")
	read := func(into any) {
		if err := answers.Decode(into); err != nil {
			b.Fatalf("the registry of %s does not answer: %v", attack, err)
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

// others starts the client that uses other images than the attacker's.
func others(b *testing.B) (q quay, measure func(order) measured) {
	b.Helper()
	orders, answers := process(b, asking+"=")
	read := func(into any) {
		if err := answers.Decode(into); err != nil {
			b.Fatal("nothing was measured: ", err)
		}
	}
	read(&q)
	return q, func(now order) (got measured) {
		if err := json.NewEncoder(orders).Encode(now); err != nil {
			b.Fatal(err)
		}
		read(&got)
		return got
	}
}

// BenchmarkBesideAttacks times the webhook under a normal load, alone and in parallel with
// expensive requests: ten a second, or one after another where one takes longer. The client
// and the registries are separate processes, as in production.
func BenchmarkBesideAttacks(b *testing.B) {
	c := newCrowd(b)
	if attack := os.Getenv(attacked); attack != "" {
		serve(b, c, attack)
		return
	}
	if _, is := os.LookupEnv(asking); is {
		ask(b, c)
		return
	}
	for _, one := range costly() {
		b.Run(one.name, func(b *testing.B) { besideAttack(b, c, one.name) })
	}
}

func besideAttack(b *testing.B, c *crowd, attack string) {
	s := newScene(b, c, admitting)
	s.patience, s.ages.Fact, s.ages.Tag = budget, time.Hour, time.Hour
	at, requests := besieged(b, attack)
	usual, measure := others(b)
	s.documents = []string{at.Policy, usual.Policy}
	s.admitted(usual.Image)
	now := order{URL: fmt.Sprintf("%s/%s?timeout=%s", s.wire().open(s), admission.Mutate, s.patience)}
	evil := s.creation(at.Image)
	measure(now) // until connections are open, and the processes warm
	requests()
	var alone, beside measured // of all rounds
	for b.Loop() {
		now.Evil = nil
		alone.add(measure(now))
		if asked := requests(); asked > 0 {
			b.Fatalf("%d requests to the attacker for another registry's image", asked)
		}
		now.Evil = evil
		beside.add(measure(now))
		if requests() == 0 {
			b.Fatal("the attack sent no request")
		}
	}
	report := func(what string, alone, beside []time.Duration) {
		b.ReportMetric(part(alone, 50), what+"-p50-alone-µs")
		b.ReportMetric(part(beside, 50)/part(alone, 50), what+"-p50-ratio")
		b.ReportMetric(part(beside, 99)/part(alone, 99), what+"-p99-ratio")
		b.ReportMetric(float64(sum(beside))/float64(sum(alone)), what+"-mean-ratio")
	}
	report("known", alone.Known, beside.Known)
	report("new", alone.New, beside.New)
	report("all", append(alone.Known, alone.New...), append(beside.Known, beside.New...))
	b.ReportMetric(float64(beside.Attacks)/float64(b.N), "attacks")
}

func (m *measured) add(more measured) {
	m.Known, m.New, m.Attacks = append(m.Known, more.Known...), append(m.New, more.New...), m.Attacks+more.Attacks
}

// part is the time that a part of all do not exceed, in microseconds.
func part(all []time.Duration, percent int) float64 {
	return float64(slices.Sorted(slices.Values(all))[len(all)*percent/100].Microseconds())
}

func sum(all []time.Duration) (total time.Duration) {
	for _, one := range all {
		total += one
	}
	return total
}
