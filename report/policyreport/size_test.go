package policyreport_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// TestSizes counts what etcd holds, to the byte, managedFields included: reports of a
// cluster under the 18 Pod Security policies with the rules that follow from them. A
// bare pod fails four of them, with the policies' own messages, the longest of 600
// bytes; a decent one fails none.
func TestSizes(t *testing.T) {
	const megabyte = 1_000_000
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own=%t", own), func(t *testing.T) {
			y := newYard(t, podSecurity(t, own)...)
			for _, row := range []struct {
				name               string
				spec               map[string]any
				owned, lone, count int
			}{
				{"decent", decent(), megabyte, 6 * megabyte, 1_500_000},
				{"bare", bare(), megabyte, 8 * megabyte, 4_500_000},
			} {
				owned, lone := y.hundredDeployments(t, row.spec), y.lonePods(t, row.spec)
				for _, api := range policyreport.APIs() {
					t.Run(row.name+"/"+api.Kind("any"), func(t *testing.T) {
						within(t, "1,000 pods of 100 Deployments", etcd(t, api, policyreport.Selection{}, owned), row.owned, 200)
						within(t, "1,000 lone pods", etcd(t, api, policyreport.Selection{}, lone), row.lone, 1000)
						within(t, "1,000 lone pods, passes counted", etcd(t, api, policyreport.Selection{CountPasses: true}, lone), row.count, 1000)
					})
				}
			}
		})
	}
}

func within(t *testing.T, what string, s store, size, objects int) {
	t.Helper()
	t.Logf("%s: %d bytes in %d objects", what, s.size(), len(s))
	if s.size() > size || len(s) > objects || len(s) == 0 {
		t.Errorf("%s: %d bytes in %d objects, want at most %d in %d", what, s.size(), len(s), size, objects)
	}
}

// together is what stands in one report.
type together struct {
	at      policyreport.Place
	results []result.Result
}

// etcd measures stored reports.
func etcd(t *testing.T, api policyreport.API, show policyreport.Selection, reports []together) store {
	t.Helper()
	s := store{}
	for _, each := range reports {
		r := policyreport.New(each.at, show)
		if !r.Merge(each.results) || r.Merge(each.results) {
			t.Fatal("results change a report once")
		}
		s.put(t, encode(t, r, api))
	}
	return s
}

func encode(t testing.TB, r *policyreport.Report, api policyreport.API) []policyreport.Part {
	t.Helper()
	parts, err := r.Encode(api, policyreport.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func place(t testing.TB, by policyreport.Grouping, r result.Result, workload report.Resource) policyreport.Place {
	t.Helper()
	at, ok := by.Place(r, workload)
	if !ok {
		t.Fatalf("no place for %+v", r)
	}
	return at
}

// hundredDeployments are decided about once: the others differ in their names alone, of
// the same length.
func (y *yard) hundredDeployments(t *testing.T, spec map[string]any) []together {
	t.Helper()
	owner, set, pods := deployment("team-00", "checkout-00", 10, spec)
	var results []result.Result
	for n, o := range append([]object{owner, set}, pods...) {
		results = append(results, y.results(t, o, morning.Add(time.Duration(n)*time.Millisecond))...)
	}
	var all []together
	for i := range 100 {
		one := together{results: renamed(results, "team-00", fmt.Sprintf("team-%02d", i%10), "checkout-00", fmt.Sprintf("checkout-%02d", i))}
		owner := renamed([]result.Result{{Resource: owner.resource()}}, "team-00", fmt.Sprintf("team-%02d", i%10), "checkout-00", fmt.Sprintf("checkout-%02d", i))
		one.at = place(t, policyreport.ByWorkload, one.results[0], owner[0].Resource)
		all = append(all, one)
	}
	return all
}

func renamed(results []result.Result, names ...string) []result.Result {
	results = slices.Clone(results)
	replace := strings.NewReplacer(names...)
	for i := range results {
		of := &results[i].Resource
		of.Namespace, of.Name, of.Owner = replace.Replace(of.Namespace), replace.Replace(of.Name), nil
		of.UID = uid(of.Kind + "/" + of.Namespace + "/" + of.Name)
	}
	return results
}

func (y *yard) lonePods(t *testing.T, spec map[string]any) []together {
	t.Helper()
	results := y.results(t, pod("team-00", "worker-0000", spec), morning)
	var all []together
	for i := range 1000 {
		one := renamed(results, "team-00", fmt.Sprintf("team-%02d", i%10), "worker-0000", fmt.Sprintf("worker-%04d", i))
		all = append(all, together{at: place(t, policyreport.ByWorkload, one[0], report.Resource{}), results: one})
	}
	return all
}
