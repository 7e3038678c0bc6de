package peers

import (
	"os"
	"runtime"
	"testing"
)

// maxProgram is how large the stripped program for linux/amd64 may be, in bytes. That includes all exported
// methods of the types in it, called or not: CUE executes text/template, which calls methods by their names.
const maxProgram = 140_000_000

func TestProgramSize(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the bound is that of linux/amd64")
	}
	info, err := os.Stat(Quaymaster(t).Path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxProgram {
		t.Errorf("the program has %d bytes: want at most %d", info.Size(), maxProgram)
	}
}
