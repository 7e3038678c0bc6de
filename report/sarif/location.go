package sarif

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/quaymaster/quaymaster/report/finding"
)

// locate returns where a finding is: at its line, or at the first one of what it was
// read from. What was read from nothing, as an image that was named alone, is called by
// its name: a result without a file makes GitHub refuse all of them.
func locate(o finding.Object, f finding.Finding) location {
	at := location{Physical: physical{Region: region{StartLine: 1}}, Logical: logicals(o, f)}
	switch {
	case f.Position != nil:
		at.Physical.Artifact.URI = uriOf(f.Position.File)
		at.Physical.Region = region{StartLine: f.Position.Line, StartColumn: f.Position.Column}
	case o.Source != "":
		file, _, _ := strings.Cut(o.Source, ", document")
		at.Physical.Artifact.URI = uriOf(file)
	default:
		at.Physical.Artifact.URI = uriOf(f.Subject(o))
	}
	return at
}

// logicals name the object, the place in it, and what it was rendered from.
func logicals(o finding.Object, f finding.Finding) []logical {
	list := []logical{{Name: f.Place, QualifiedName: o.Title, Kind: "resource"}}
	if f.Pointer != "" {
		list[0].QualifiedName += " " + f.Pointer
	}
	if o.Template != "" {
		list = append(list, logical{Name: o.Template, QualifiedName: "template " + o.Template, Kind: "module"})
	}
	return list
}

// uriOf returns the URI of a file: relative to where the program ran, which in CI is
// the checkout, or absolute.
func uriOf(file string) string {
	path := filepath.ToSlash(filepath.Clean(file))
	if strings.HasPrefix(path, "/") {
		return (&url.URL{Scheme: "file", Path: path}).String()
	}
	return (&url.URL{Path: path}).String() // ./ before a name with a colon, which would be a scheme
}
