package peers

import (
	"os"
	"runtime"
	"testing"
)

// maxProgram is how large the stripped program for linux/amd64 may be, in bytes. A quarter of it is exported
// methods that nothing calls. The linker keeps those of all types in interfaces, since CUE's evaluator refers to
// html/template, to debug itself, and a template calls methods by their names.
const maxProgram = 126_000_000 // 2 MB of it for the conversion to CEL and its comparison, 1 MB for SLSA and vulnerabilities

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
