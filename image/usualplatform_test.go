package image_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
)

// TestUsual: the rules read the child that nodes run, and none where nodes may run another one.
func TestUsual(t *testing.T) {
	const other = "linux/amd64 by its configuration alone"
	for _, row := range []struct {
		reason    string
		platforms []string // os/architecture/variant; "" has none; the fourth part are features
		configs   []string // the platforms of configurations; nil: those that are listed
		want      int      // -1: refused
	}{
		{"none", nil, nil, 0},
		{"one, of another platform", []string{"linux/arm64"}, nil, 0},
		{"one without a platform, for another one", []string{""}, []string{"linux/arm64"}, 0},
		{"amd64 after another", []string{"linux/arm64/v8", "linux/amd64"}, nil, 1},
		{"amd64 of Windows before that of Linux", []string{"windows/amd64", "linux/amd64"}, nil, 1},
		{"a variant before what nodes run", []string{"linux/amd64/v9", "linux/amd64"}, nil, 1},
		{"the first variant is none", []string{"linux/amd64/v2", "linux/amd64/v1"}, nil, 1},
		{"other names of the platform", []string{"linux/arm64", "Linux/x86_64"}, nil, 1},
		{"no name of the system", []string{"linux/arm64", "/x86-64"}, nil, 1},
		{"two of the same with one configuration", []string{"", "linux/amd64", "linux/amd64"}, nil, 1},
		{"two of the same with two configurations", []string{"linux/amd64", "linux/amd64"}, []string{"linux/amd64", other}, -1},
		{"two names of one platform with two configurations", []string{"linux/amd64/v1", "Linux/amd64"}, []string{"linux/amd64", other}, -1},
		{"one without a platform, for amd64, before another architecture", []string{"linux/arm64", ""}, []string{"", "linux/amd64"}, 1},
		{"one without a platform, for another one", []string{"linux/arm64", ""}, []string{"", "linux/arm64"}, -1},
		{"one without a platform, of which the configuration names none", []string{"linux/arm64", ""}, []string{"", ""}, -1},
		{"one without a platform before a variant", []string{"linux/amd64/v3", ""}, []string{"", "linux/amd64"}, 1},
		{"two without a platform", []string{"", ""}, []string{"linux/amd64", "linux/arm64"}, -1},
		{"two without a platform, and one configuration", []string{"", ""}, []string{"linux/amd64", "linux/amd64"}, 0},
		{"386 before another architecture", []string{"linux/arm64", "linux/386"}, nil, 1},
		{"386, and one without a platform", []string{"", "linux/386"}, []string{"linux/amd64", "linux/386"}, -1},
		{"a variant alone", []string{"linux/arm64", "linux/amd64/v3"}, nil, 1},
		{"Linux without amd64", []string{"windows/amd64", "linux/arm64"}, nil, 1},
		{"another name of the platform, and one without a platform", []string{"linux/x86_64", ""}, []string{"linux/amd64", other}, -1},
		{"and no name of the system", []string{"", "/amd64"}, []string{other, "linux/amd64"}, -1},
		{"and the first variant", []string{"linux/amd64/v1", ""}, []string{"linux/amd64", other}, -1},
		{"both with one configuration", []string{"linux/x86_64", ""}, []string{"linux/amd64", "linux/amd64"}, 0},
		{"the name of the platform, and one without a platform", []string{"", "linux/amd64"}, []string{other, "linux/amd64"}, 1},
		{"another name of the platform, and 386", []string{"linux/x86_64", "linux/386"}, nil, 0},
		{"features of the system, and one without a platform", []string{"linux/amd64//erofs", ""}, []string{"linux/amd64", other}, -1},
		{"and 386", []string{"linux/amd64//erofs", "linux/386"}, nil, -1},
		{"and none", []string{"linux/amd64//erofs", "linux/amd64"}, []string{"linux/amd64", other}, -1},
		{"features of the system, and another architecture", []string{"linux/arm64", "linux/amd64//erofs"}, nil, 1},
		{"no Linux", []string{"windows/amd64", "darwin/arm64"}, nil, 0},
	} {
		children := make([]image.Descriptor, len(row.platforms))
		for i, text := range row.platforms {
			parts := strings.Split(text+"///", "/")
			children[i].Digest = image.DigestOf([]byte{byte(i)})
			if text != "" {
				children[i].Platform = &image.Platform{OS: parts[0], Architecture: parts[1], Variant: parts[2]}
				if parts[3] != "" {
					children[i].Platform.OSFeatures = parts[3:4]
				}
			}
		}
		got, err := image.Usual(children, func(child int) []byte {
			text := row.platforms[child]
			if row.configs != nil {
				text = row.configs[child]
			}
			os, architecture, _ := strings.Cut(strings.TrimSuffix(text, " by its configuration alone"), "/")
			return []byte(`{"os":"` + os + `","architecture":"` + architecture + `","of":"` + text + `"}`)
		})
		if (err != nil) != (row.want < 0) || err == nil && got != row.want {
			t.Errorf("%s: %d, %v, want %d", row.reason, got, err, row.want)
		}
	}
}
