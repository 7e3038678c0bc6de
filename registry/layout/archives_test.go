package layout

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
)

// block is a header of tar with its content, as no writer would pack it.
func block(kind byte, name, content string) string {
	return sizedBlock(kind, name, fmt.Sprintf("%011o", len(content)), content)
}

func sizedBlock(kind byte, name, size, content string) string {
	header := make([]byte, blockSize)
	copy(header, name)
	copy(header[100:], "0000644\x000000000\x000000000\x00")
	copy(header[124:136], size)
	copy(header[136:], "00000000000\x00        ")
	header[156] = kind
	copy(header[257:], "ustar\x0000")
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
	return string(header) + content + strings.Repeat("\x00", int(blocks(int64(len(content))))-len(content))
}

// linkTo is a symbolic link.
func linkTo(name, target string) string {
	var packed bytes.Buffer
	_ = tar.NewWriter(&packed).WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target})
	return packed.String()
}

// record is one of a PAX header.
func record(key, value string) string {
	for n := len(key) + len(value) + 3; ; n++ {
		if text := fmt.Sprintf("%d %s=%s\n", n, key, value); len(text) == n {
			return text
		}
	}
}

// tarOf writes an archive of parts.
func tarOf(t *testing.T, parts ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "layout.tar")
	if err := os.WriteFile(path, []byte(strings.Join(parts, "")+strings.Repeat("\x00", 2*blockSize)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestArchiveHasOneReading: an archive that programs unpack differently is refused;
// one that all read alike is read.
func TestArchiveHasOneReading(t *testing.T) {
	const good, evil = `{"manifests":[]}`, `{"manifests":[{}]}`
	long := strings.Repeat("long/", 30)
	begin := []string{block('0', "oci-layout", `{"imageLayoutVersion":"1.0.0"}`), block('0', "index.json", good)}
	for _, test := range []struct {
		reason string
		parts  []string
		says   string // empty: it is read
	}{
		{"files", []string{block('0', "x", evil)}, ""},
		{"a file of the oldest type", []string{block(0, "x", evil)}, ""},
		{"the index again, as a file of the oldest type", []string{block(0, "index.json", evil)}, "index.json twice"},
		{"a folder of the oldest type", []string{block(0, "x/", "")}, ""},
		{"a folder", []string{block('5', "x/", ""), block('0', "x/index.json", evil)}, ""},
		{"a file that is called a folder", []string{block('0', "x/", "")}, "x/ is a file that is called a folder"},
		{"a contiguous file", []string{block('7', "x", evil)}, "x is neither a file nor a folder nor a link"},
		{"the index again, as a contiguous file", []string{block('7', "index.json", evil)}, "index.json is neither"},
		{"the index again, as what has no type", []string{block('Z', "index.json", evil)}, "index.json is neither"},
		{"a pipe", []string{block('6', "x", "")}, "x is neither"},
		{"a device", []string{block('3', "x", "")}, "x is neither"},
		{"a label", []string{block('V', "x", "")}, "x is neither"},

		{"a link", []string{linkTo("x/layer.tar", "../y/layer.tar"), block('0', "x/json", "{}")}, ""},
		{"a file beside a link of a like name", []string{linkTo("x", "."), block('0', "x-/index.json", evil), block('0', "x.json", evil), block('0', "xx/index.json", evil)}, ""},
		{"a file below a link", []string{linkTo("x", "."), block('0', "x/index.json", evil)}, "x/index.json leads through a link"},
		{"a file below a link, written otherwise", []string{linkTo("./x/", "."), block('0', "/x//./index.json", evil)}, "x/index.json leads through a link"},
		{"a file far below a link", []string{linkTo("x", "."), block('0', "x/y/index.json", evil)}, "x/y/index.json leads through a link"},
		{"a file below what becomes a link", []string{block('0', "x/index.json", evil), linkTo("x", ".")}, "x/index.json leads through a link"},
		{"a file below a link that is a folder, too", []string{linkTo("x", "."), block('5', "x/", ""), block('0', "x/index.json", evil)}, "x/index.json leads through a link"},
		{"a link below a link", []string{linkTo("x", "."), linkTo("x/index.json", "y")}, "x/index.json leads through a link"},
		{"a file below a hard link", []string{block('1', "x", ""), block('0', "x/index.json", evil)}, "x/index.json leads through a link"},
		{"a folder above", []string{block('0', "x/../index.json", evil)}, "x/../index.json leads through a folder above"},
		{"a folder with dots in its name", []string{block('0', "x/..y/index.json", evil)}, ""},

		{"a link with content", []string{block('2', "x", block('0', "y", evil))}, "x is a folder or a link and has content"},
		{"a hard link with content", []string{block('1', "index.json", evil)}, "index.json is a folder or a link and has content"},
		{"a folder with content", []string{block('5', "x", block('0', "y", evil))}, "x is a folder or a link and has content"},

		{"a long name", []string{block('x', "h", record("path", long+"x")), block('0', "x", evil)}, ""},
		{"the index again, by a long name", []string{block('x', "h", record("path", "index.json")), block('0', "x", evil)}, "index.json twice"},
		{"a long name as GNU has it", []string{block('L', "h", long+"x\x00"), block('0', "x", evil)}, ""},
		{"a long name of a long link as GNU has it", []string{block('K', "h", long+"\x00"), block('L', "h", long+"\x00"), linkTo("x", "y")}, ""},
		{"the same the other way round", []string{block('L', "h", long+"\x00"), block('K', "h", long+"\x00"), linkTo("x", "y")}, ""},
		{"a long link as GNU has it", []string{block('K', "h", long+"\x00"), linkTo("x", "y")}, ""},
		{"two headers with records", []string{block('x', "h", record("path", "index.json")), block('x', "h", record("path", "y")), block('0', "x", evil)}, "extended headers"},
		{"two long names", []string{block('L', "h", "index.json\x00"), block('L', "h", "y\x00"), block('0', "x", evil)}, "extended headers"},
		{"a long name and another", []string{block('L', "h", "y\x00"), block('x', "h", record("path", "index.json")), block('0', "x", evil)}, "extended headers"},
		{"a header too many", []string{block('L', "h", "y\x00"), block('K', "h", "y\x00"), block('L', "h", "y\x00"), linkTo("x", "y")}, "extended headers"},
		{"a header with a size that only some programs read", []string{sizedBlock('x', "h", "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"+string(rune(len(record("a", "b")))), record("a", "b")), block('0', "x", evil)}, "extended headers"},

		{"a comment on all", []string{block('g', "h", record("comment", "a commit")), block('0', "x", evil)}, ""},
		{"a time of all", []string{block('g', "h", record("mtime", "1")+record("comment", "a commit")), block('0', "x", evil)}, ""},
		{"nothing about all", []string{block('g', "h", ""), block('0', "x", evil)}, ""},
		{"a comment on all, and a long name", []string{block('g', "h", record("comment", "a commit")), block('x', "h", record("path", long+"x")), block('0', "x", evil)}, ""},
		{"a name of all", []string{block('g', "h", record("path", "index.json")), block('0', "x", evil)}, "index.json has a record"},
		{"a size of all", []string{block('g', "h", record("size", "0")), block('0', "x", evil)}, "h has a record"},
		{"a name before a comment on all", []string{block('x', "h", record("path", "index.json")), block('g', "h", record("comment", "a commit")), block('0', "x", evil)}, "extended headers"},
		{"a name before nothing about all", []string{block('x', "h", record("path", "index.json")), block('g', "h", ""), block('0', "x", evil)}, "extended headers"},

		{"an attribute", []string{block('x', "h", record("SCHILY.xattr.user.a", "b")), block('0', "x", evil)}, ""},
		{"another name for what has holes", []string{block('x', "h", record("GNU.sparse.name", "index.json")), block('0', "x", evil)}, "x has a record"},
		{"another size for what has holes", []string{block('x', "h", record("SCHILY.realsize", "5")), block('0', "x", evil)}, "x has a record"},
		{"holes", []string{block('x', "h", record("SUN.holesdata", " 0")), block('0', "x", evil)}, "x has a record"},
		{"holes as GNU has them", []string{block('x', "h", record("GNU.sparse.major", "1")+record("GNU.sparse.minor", "0")), block('0', "x", "0\n"+strings.Repeat("\x00", blockSize-2))}, "x has a record"},
	} {
		for order, parts := range map[string][]string{"after": slices.Concat(begin, test.parts), "before": slices.Concat(test.parts, begin)} {
			layout, err := Open(tarOf(t, parts...))
			if test.says != "" {
				if image.KindOf(err) != image.Corrupt || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%s, %s the index: %v, want one that contains %q", test.reason, order, err, test.says)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, %s the index: %v", test.reason, order, err)
				continue
			}
			if body, err := layout.readFile("index.json", maxIndex); err != nil || string(body) != good {
				t.Errorf("%s, %s the index: %q, %v", test.reason, order, body, err)
			}
			_ = layout.Close()
		}
	}
	if err := oddHeaders(bytes.NewReader(nil), 0, 2*blockSize, false); !errors.Is(err, io.EOF) {
		t.Errorf("headers that cannot be read: %v", err)
	}
}
