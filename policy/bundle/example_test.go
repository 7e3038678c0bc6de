package bundle_test

import (
	"bytes"
	"fmt"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/bundle"
)

// A bundle is read whole or not at all.
func ExampleOpen() {
	var file bytes.Buffer
	err := bundle.Write(&file, &bundle.Contents{
		Policies: []bundle.Item{{Name: "ClusterPolicy/signed", Source: "policies/signed.yaml", Text: []byte("{}")}},
		Notes:    []string{"ClusterPolicy signed: it calls a service"},
	})
	if err != nil {
		fmt.Println(err)
	}
	pinned := image.DigestOf(file.Bytes())
	read, err := bundle.Open(bytes.NewReader(file.Bytes()), pinned)
	fmt.Println(read.Entries[0].Path, read.Notes, err)
	_, err = bundle.Open(bytes.NewReader(file.Bytes()), image.DigestOf(nil))
	fmt.Println(err != nil)
	// Output:
	// policies/000000.json [ClusterPolicy signed: it calls a service] <nil>
	// true
}
