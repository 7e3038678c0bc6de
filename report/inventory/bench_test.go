package inventory_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/report/inventory"
)

// large is an inventory of 10,000 images in 200 namespaces.
func large(t testing.TB) *inventory.Inventory {
	known, _ := newInventory(t)
	for n := range 10_000 {
		image := proved(fmt.Sprintf("registry.example/team-%d/service-%d:1.%d", n%40, n, n%9), keyA)
		if n%17 == 0 {
			image = unsigned(image.Reference)
		}
		known.Add(admitted(begin), record(image.Result, image), podOf(fmt.Sprintf("namespace-%d", n%200), fmt.Sprintf("service-%d", n), n))
	}
	return known
}

// BenchmarkAdd is what a decision costs beside the path of requests.
func BenchmarkAdd(b *testing.B) {
	known, _ := newInventory(b)
	r, about := record(gate.Allow, proved("r.example/web:1", keyA)), podOf("shop", "web", 1)
	b.ReportAllocs()
	for b.Loop() {
		known.Add(admitted(begin), r, about)
	}
}

// BenchmarkImages are queries over 10,000 images.
func BenchmarkImages(b *testing.B) {
	known := large(b)
	for _, row := range []struct {
		name  string
		query inventory.ImageQuery
	}{
		{"All", inventory.ImageQuery{}},
		{"Text", inventory.ImageQuery{Text: "service-77"}},
		{"Key", inventory.ImageQuery{Key: keyA[:8]}},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := known.Images(row.query); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("Overview", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := known.Overview(inventory.Day); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMemory is what 10,000 images take.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		known := large(b)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
		runtime.KeepAlive(known)
	}
}
