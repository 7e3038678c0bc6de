package recall_test

import (
	"fmt"
	"os"

	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/report/inventory/recall"
)

// A new log has no decisions.
func ExampleFill() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	known, err := inventory.New(inventory.Options{Replica: "a"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(recall.Fill(known, recall.Source{Folder: folder}))
	// Output: 0 <nil>
}
