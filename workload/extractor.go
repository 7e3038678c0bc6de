package workload

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Extractor describes the paths of images outside pod specifications, as Kyverno's
// imageExtractors do.
type Extractor struct {
	// Name groups the extracted images; empty means "custom".
	Name string
	// Path is a JSON pointer, in which * matches every element of a list or every member of an
	// object. It leads to the entries that hold an image, or, without Value, to the images
	// themselves.
	Path string
	// Value is the member of an entry that holds the image; empty means the last element of Path.
	Value string
	// Key is the member of an entry that names it; empty means that its path does.
	Key string
	// Transform converts the text at the path to an image reference; nil leaves it unchanged.
	Transform func(string) (string, error)
}

// ExtractWith returns the images at the extractors' paths instead of the standard ones, each path
// once, in the order of the extractors. An absent value is ignored. A value that is not text, an
// entry without its Key, and a path through text are errors: ignoring them would let an image run
// without verification.
func ExtractWith(o Object, extractors []Extractor) ([]Use, error) {
	if o.IsZero() {
		return nil, nil
	}
	var uses []Use
	seen := map[[2]string]bool{}
	for i, e := range extractors {
		found, err := e.extract(o.Root())
		if err != nil {
			return nil, fmt.Errorf("images of %s: extractor %d (%s): %w", o, i+1, e.Path, err)
		}
		for _, use := range found {
			if place := [2]string{use.Pointer, use.Image}; !seen[place] {
				seen[place] = true
				uses = append(uses, use)
			}
		}
	}
	return uses, nil
}

func (e Extractor) extract(content Value) ([]Use, error) {
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

// spot is the current position of a walk.
type spot struct {
	at    pointer
	entry Value // the nearest object that contains it
}

func (x *extraction) follow(value Value, path []string, s spot) error {
	switch {
	case value.IsNull():
		return nil
	case len(path) == 0:
		return x.take(value, s)
	case value.IsObject():
		return x.followObject(value, path, s)
	case value.IsList():
		return x.followList(value, path, s)
	}
	return fmt.Errorf("%s: want an object or a list, got %s", s.at, kindName(value.Kind()))
}

func (x *extraction) followObject(object Value, path []string, s spot) error {
	token, rest := path[0], path[1:]
	if token != "*" {
		return x.follow(object.Member(token), rest, spot{s.at.child(token), object})
	}
	members := maps.Collect(object.Members())
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if err := x.follow(members[name], rest, spot{s.at.child(name), object}); err != nil {
			return err
		}
	}
	return nil
}

func (x *extraction) followList(list Value, path []string, s spot) error {
	token, rest := path[0], path[1:]
	wanted, isNumber := position(token, math.MaxInt)
	if !isNumber && token != "*" {
		return fmt.Errorf("%s is a list: want a number or * in its place, got %q", s.at, token)
	}
	for i, element := range list.Elements() {
		if isNumber && i != wanted {
			continue
		}
		if err := x.follow(element, rest, spot{s.at.index(i), s.entry}); err != nil {
			return err
		}
	}
	return nil
}

// take converts a text to a use.
func (x *extraction) take(value Value, s spot) error {
	e, text := x.extractor, value.Text()
	switch {
	case !value.IsText():
		return fmt.Errorf("%s: want text, got %s", s.at, kindName(value.Kind()))
	case text == "":
		return nil
	}
	name := e.Name
	if e.Key != "" {
		key := s.entry.Member(e.Key)
		if !key.IsText() {
			return fmt.Errorf("%s: the entry has no text %q to name it by", s.at, e.Key)
		}
		name += "/" + key.Text()
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
