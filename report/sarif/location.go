package sarif

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/quaymaster/quaymaster/report/finding"
)

// locate returns the location of a finding: its line, or the first line of its file. An image
// without a file gets its name as the file, since GitHub rejects all results if one has no file.
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

// logicals are the object, the path in it, and the template of the object.
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

// uriOf returns the URI of a file: relative to the working directory, which in CI is the
// checkout, or absolute.
func uriOf(file string) string {
	path := filepath.ToSlash(filepath.Clean(file))
	if strings.HasPrefix(path, "/") {
		return (&url.URL{Scheme: "file", Path: path}).String()
	}
	return (&url.URL{Path: path}).String() // ./ before a name with a colon, which would be a scheme
}
