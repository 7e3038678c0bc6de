package workload

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Extractor says where images are in an object that is no pod specification, as
// Kyverno's imageExtractors do.
type Extractor struct {
	// Name groups the images that it finds; empty means "custom".
	Name string
	// Path is a JSON pointer, in which * stands for every element of a list or
	// every member of an object. It leads to the entries that hold an image, or,
	// without Value, to the images themselves.
	Path string
	// Value is the member of an entry that holds the image; empty means that the
	// last element of Path is that.
	Value string
	// Key is the member of an entry that names it; empty means that its place does.
	Key string
	// Transform makes an image reference of the text that stands there; nil leaves
	// it as it is.
	Transform func(string) (string, error)
}

// ExtractWith returns the images at the extractors' places instead of the
// standard ones, each place once, in the order of the extractors. What is absent
// is no use; what is there and is no text, an entry without its Key, or a path
// that leads through text, is an error: passing over it would let an image run
// unseen.
func ExtractWith(o Object, extractors []Extractor) ([]Use, error) {
	if o.IsZero() {
		return nil, nil
	}
	var uses []Use
	for i, e := range extractors {
		found, err := e.extract(o.content)
		if err != nil {
			return nil, fmt.Errorf("images of %s: extractor %d (%s): %w", o, i+1, e.Path, err)
		}
		for _, use := range found {
			same := func(u Use) bool { return u.Pointer == use.Pointer && u.Image == use.Image }
			if !slices.ContainsFunc(uses, same) {
				uses = append(uses, use)
			}
		}
	}
	return uses, nil
}

func (e Extractor) extract(content map[string]any) ([]Use, error) {
	path, err := parsePointer(e.Path)
	if err != nil {
		return nil, err
	}
	path = slices.DeleteFunc(path, func(token string) bool { return token == "" })
	if e.Value == "" && len(path) == 0 {
		return nil, errors.New("it names neither a path nor a value")
	}
	if e.Value != "" {
		path = append(path, e.Value)
	}
	if e.Name == "" {
		e.Name = string(Custom)
	}
	search := extraction{extractor: e}
	if err := search.follow(content, path, spot{}); err != nil {
		return nil, err
	}
	return search.uses, nil
}

// extraction is one walk of an extractor.
type extraction struct {
	extractor Extractor
	uses      []Use
}

// spot is where a walk is.
type spot struct {
	at    pointer
	entry map[string]any // the nearest object that contains it
}

func (x *extraction) follow(value any, path []string, s spot) error {
	if value == nil {
		return nil
	}
	if len(path) == 0 {
		return x.take(value, s)
	}
	token, rest := path[0], path[1:]
	switch v := value.(type) {
	case map[string]any:
		names := []string{token}
		if token == "*" {
			names = slices.Sorted(maps.Keys(v))
		}
		for _, name := range names {
			if err := x.follow(v[name], rest, spot{s.at.child(name), v}); err != nil {
				return err
			}
		}
		return nil
	case []any:
		return x.followList(v, path, s)
	default:
		return fmt.Errorf("%s: want an object or a list, got %s", s.at, typeName(value))
	}
}

func (x *extraction) followList(list []any, path []string, s spot) error {
	token, rest := path[0], path[1:]
	if i, ok := position(token, len(list)); ok {
		return x.follow(list[i], rest, spot{s.at.index(i), s.entry})
	}
	if token != "*" {
		if _, beyond := position(token, int(^uint(0)>>1)); beyond {
			return nil
		}
		return fmt.Errorf("%s is a list: want a number or * in its place, got %q", s.at, token)
	}
	for i, item := range list {
		if err := x.follow(item, rest, spot{s.at.index(i), s.entry}); err != nil {
			return err
		}
	}
	return nil
}

// take makes a use of a text.
func (x *extraction) take(value any, s spot) error {
	e := x.extractor
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("%s: want text, got %s", s.at, typeName(value))
	}
	if text == "" {
		return nil
	}
	name := e.Name
	if e.Key != "" {
		key, ok := s.entry[e.Key].(string)
		if !ok {
			return fmt.Errorf("%s: the entry has no text %q to name it by", s.at, e.Key)
		}
		name += "/" + key
	}
	image := text
	if e.Transform != nil {
		made, err := e.Transform(text)
		if err != nil {
			return fmt.Errorf("%s: make an image reference of %q: %w", s.at, text, err)
		}
		image = made
	}
	x.uses = append(x.uses, Use{Image: image, Container: name, Pointer: string(s.at), Role: Custom, Text: text})
	return nil
}
