package converttest

import (
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert"
)

//go:embed root
var root embed.FS

// Files is the folder that policies of tests may name files in: etc/pki has keys and
// certificates, truststore those of notation.
func Files() fs.FS {
	files, err := fs.Sub(root, "root")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return files
}

// Options are those of a user who sets everything.
func Options() convert.Options {
	return convert.Options{Files: Files(), DropSignedIdentity: true}
}

// Fill puts files of etc/pki into a policy: ${file} is replaced by one as JSON text, and
// ${base64:file} by its bytes in base64.
func Fill(text string) ([]byte, error) {
	var failed error
	filled := regexp.MustCompile(`\$\{(base64:)?([a-z.]+)\}`).ReplaceAllStringFunc(text, func(place string) string {
		name, encoded := strings.CutPrefix(strings.Trim(place, "${}"), "base64:")
		data, err := fs.ReadFile(Files(), "etc/pki/"+name)
		if err != nil {
			failed = fmt.Errorf("fill in %s: %w", place, err)
			return place
		}
		if encoded {
			return base64.StdEncoding.EncodeToString(data)
		}
		quoted, _ := json.Marshal(string(data)) // of text: does not fail
		return string(quoted)
	})
	return []byte(filled), failed
}

// Read reads a policy from a file and fills it in.
func Read(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Fill(string(text))
}
