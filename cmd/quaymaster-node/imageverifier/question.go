package imageverifier

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
)

const (
	// mediaType is the only supported payload.
	mediaType = "application/vnd.oci.descriptor.v1+json"
	// maxDescriptor bounds standard input, in bytes: containerd sends a registry's
	// own annotations along.
	maxDescriptor = 1 << 20
	// maxReason bounds the reason, in bytes. containerd cuts at 32 KiB, and its log
	// and the pod's event get all of it.
	maxReason = 1 << 10
)

// The exit statuses.
const (
	Allow = 0
	Deny  = 1
)

// Question is containerd's request: whether the image of this digest may be pulled under that
// name.
type Question struct {
	// Image is the name with the digest: [registry/]repository[:tag]@digest.
	Image string
	Ref   image.Ref
	// Digest is the digest that containerd resolved the name to; that of an index for an image
	// of several platforms.
	Digest image.Digest
}

// IsAsked reports whether the arguments begin as containerd's do, which contain no command.
func IsAsked(args []string) bool { return len(args) > 0 && args[0] == "-name" }

// Read reads a request from the arguments, without the program's name, and standard input. It
// accepts containerd's arguments alone: an unknown argument may change what has to be verified.
func Read(args []string, stdin io.Reader) (Question, error) {
	values, err := arguments(args)
	if err != nil {
		return Question{}, err
	}
	if values["-stdin-media-type"] != mediaType {
		return Question{}, fmt.Errorf("-stdin-media-type %q: want %s", values["-stdin-media-type"], mediaType)
	}
	digest, err := image.ParseDigest(values["-digest"])
	if err != nil {
		return Question{}, fmt.Errorf("-digest: %w", err)
	}
	if err := checkDescriptor(stdin, digest); err != nil {
		return Question{}, fmt.Errorf("standard input: %w", err)
	}
	name := values["-name"]
	ref, err := image.Parse(name)
	if err != nil {
		return Question{}, fmt.Errorf("-name: %w", err)
	}
	switch ref.Digest() {
	case image.Digest{}:
		name += "@" + digest.String()
	case digest:
		return Question{Image: name, Ref: ref, Digest: digest}, nil
	default:
		return Question{}, fmt.Errorf("-name %s and -digest %s contradict one another", name, digest)
	}
	ref, err = image.Parse(name)
	if err != nil {
		return Question{}, fmt.Errorf("-name: %w", err)
	}
	return Question{Image: name, Ref: ref, Digest: digest}, nil
}

// arguments accepts three flags, each once and with its own value.
func arguments(args []string) (map[string]string, error) {
	values := map[string]string{}
	for i := 0; i < len(args); i += 2 {
		flag := args[i]
		switch flag {
		case "-name", "-digest", "-stdin-media-type":
		default:
			return nil, fmt.Errorf("argument %q is not known: want -name, -digest and -stdin-media-type", flag)
		}
		if _, twice := values[flag]; twice {
			return nil, fmt.Errorf("%s stands twice", flag)
		}
		if i+1 == len(args) || args[i+1] == "" {
			return nil, fmt.Errorf("%s has no value", flag)
		}
		values[flag] = args[i+1]
	}
	for _, flag := range []string{"-name", "-digest", "-stdin-media-type"} {
		if values[flag] == "" {
			return nil, fmt.Errorf("%s is missing", flag)
		}
	}
	return values, nil
}

// checkDescriptor reads a descriptor, ignores its other fields, and compares it with the digest.
func checkDescriptor(stdin io.Reader, digest image.Digest) error {
	raw, err := limit.ReadAll(stdin, maxDescriptor, "the descriptor")
	if err != nil {
		return err
	}
	var d struct {
		MediaType string `json:"mediaType"`
		Digest    string `json:"digest"`
		Size      int64  `json:"size"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("want a descriptor in JSON: %w", err)
	}
	switch {
	case d.Digest != digest.String():
		return fmt.Errorf("the descriptor is of %q, and -digest is %s", d.Digest, digest)
	case d.MediaType == "":
		return errors.New("the descriptor has no media type")
	case d.Size <= 0:
		return fmt.Errorf("the descriptor's size is %d", d.Size)
	}
	return nil
}

// line converts a text to a reason: one line of bounded length, without control characters.
func line(text string) string {
	text = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "..."
	}
	return text
}
