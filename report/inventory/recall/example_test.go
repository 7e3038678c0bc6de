package recall_test

import (
	"fmt"
	"os"

	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/report/inventory/recall"
)

// A log that is new has nothing to tell.
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
