package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFlags(t *testing.T) {
	for _, row := range []struct {
		reason string
		args   []string
		epoch  string
		says   string // of the error; empty: accepted
	}{
		{"built and written", []string{"--version", "v1", "--output", "out"}, "", ""},
		{"built and pushed", []string{"--version", "v1", "--push", "quay.test/a"}, "1700000000", ""},
		{"pushed as it was built", []string{"--from", "out", "--push", "quay.test/a"}, "", ""},
		{"nothing to do", []string{"--version", "v1"}, "", "nothing to do"},
		{"no version", []string{"--output", "out"}, "", "--version is required"},
		{"a version of built images", []string{"--from", "out", "--push", "quay.test/a", "--version", "v1"}, "", "no say"},
		{"a program that is none of ours", []string{"--program", "sh", "--version", "v1", "--output", "out"}, "", "no such image"},
		{"something behind the flags", []string{"--version", "v1", "--output", "out", "more"}, "", "is no flag"},
		{"no time", []string{"--version", "v1", "--output", "out"}, "yesterday", "SOURCE_DATE_EPOCH"},
		{"a time before 1970", []string{"--version", "v1", "--output", "out"}, "-1", "SOURCE_DATE_EPOCH"},
		{"an unknown flag", []string{"--tag", "latest"}, "", "not defined"},
	} {
		s, err := parse(row.args, func(string) string { return row.epoch })
		switch {
		case row.says == "" && err != nil, row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says)):
			t.Errorf("%s: %v, want %q", row.reason, err, row.says)
		case row.says == "" && row.epoch != "" && s.created.Unix() != 1700000000:
			t.Errorf("%s: time %s", row.reason, s.created)
		}
	}
}

// TestOutputIsNotMixed: a layout with two images in it would push both.
func TestOutputIsNotMixed(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "quaymaster", "blobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"--program", "quaymaster", "--version", "v1", "--binaries", folder, "--output", folder}, new(bytes.Buffer), os.Getenv)
	if err == nil || !strings.Contains(err.Error(), "there already") {
		t.Errorf("an old layout was written into: %v", err)
	}
}
