package inventory_test

import (
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
)

func Example() {
	known, err := inventory.New(inventory.Options{Replica: "gateway-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	known.Add(report.Occasion{Time: now, Process: report.ProcessAdmission, Operation: "CREATE", Allowed: true}, record(gate.Allow, proved("r.example/web:1", keyA)), podOf("shop", "web", 1))
	known.Add(report.Occasion{Time: now, Process: report.ProcessScan}, record(gate.Allow, proved("r.example/api:1", keyB)), podOf("shop", "api", 1))

	// What stands on this key?
	page, err := known.Images(inventory.ImageQuery{Key: keyA})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, image := range page.Items {
		fmt.Println(image.Reference, image.Verdict, image.Namespaces)
	}
	// Output: r.example/web:1 allowed [shop]
}
