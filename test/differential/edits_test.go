package differential

import (
	"bytes"
	"encoding/base64"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// edit is one change in the making.
type edit struct {
	random *rand.Rand
	root   *node
	path   string
	at     *node
	// donor is the same of another signer, or of another image; may be nil.
	donor *node
}

// treeEdits change one place of a JSON document. Each reports whether it could.
func treeEdits() map[string]func(e *edit) bool {
	return map[string]func(e *edit) bool{
		"twice, the same":       func(e *edit) bool { return e.insert(1, e.at.clone()) },
		"twice, another first":  func(e *edit) bool { return e.insert(0, e.another()) },
		"twice, another last":   func(e *edit) bool { return e.insert(1, e.another()) },
		"twice, nothing last":   func(e *edit) bool { return e.insert(1, &node{scalar: "null"}) },
		"left out":              (*edit).drop,
		"null":                  func(e *edit) bool { e.at.become(&node{scalar: "null"}); return true },
		"empty":                 (*edit).empty,
		"in capitals":           func(e *edit) bool { return e.rename(capital) },
		"in snake case":         func(e *edit) bool { return e.rename(snake) },
		"in capitals, beside":   func(e *edit) bool { return e.beside(capital) },
		"in snake case, beside": func(e *edit) bool { return e.beside(snake) },
		"in another order":      (*edit).shuffle,
		"something more":        (*edit).extend,
		"an empty object more":  (*edit).lengthen,
		"another's":             (*edit).exchange,
		"another number":        (*edit).number,
		"a number as text":      (*edit).quoted,
		"another letter":        func(e *edit) bool { return e.letters(flipByte) },
		"other capitals":        func(e *edit) bool { return e.letters(swapCase) },
		"a blank more":          func(e *edit) bool { return e.letters(func(_ *rand.Rand, b []byte) []byte { return append(b, ' ') }) },
		"shorter text":          func(e *edit) bool { return e.letters(truncate) },
		"a flipped bit":         func(e *edit) bool { return e.bytes(flipBit) },
		"fewer bytes":           func(e *edit) bool { return e.bytes(truncate) },
		"a byte more":           func(e *edit) bool { return e.bytes(func(_ *rand.Rand, b []byte) []byte { return append(b, 0) }) },
		"a byte before": func(e *edit) bool {
			return e.bytes(func(_ *rand.Rand, b []byte) []byte { return append([]byte{0}, b...) })
		},
		"zeroes": func(e *edit) bool {
			return e.bytes(func(_ *rand.Rand, b []byte) []byte { return make([]byte, len(b)) })
		},
		"encoded for URLs":     func(e *edit) bool { return e.encode(base64.URLEncoding.EncodeToString) },
		"encoded without ends": func(e *edit) bool { return e.encode(base64.RawStdEncoding.EncodeToString) },
		"encoded in lines":     func(e *edit) bool { return e.encode(inLines) },
		"encoded twice": func(e *edit) bool {
			return e.encode(func(b []byte) string {
				return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(b)))
			})
		},
		"encoded with loose end": func(e *edit) bool { return e.encode(looseEnd) },
		"within":                 (*edit).within,
	}
}

// insert adds a member of the same name, before (0) or after (1), or an element.
func (e *edit) insert(after int, extra *node) bool {
	parent, i := e.root.parent(e.path)
	if parent == nil || i < 0 || extra == nil {
		return false
	}
	extra.name = e.at.name
	parent.children = slices.Insert(parent.children, i+after, extra)
	return true
}

// another is the donor's, or else something of the same kind.
func (e *edit) another() *node {
	if e.donor != nil {
		if found := e.donor.at(e.path); found != nil && !bytes.Equal(found.text(), e.at.text()) {
			return found.clone()
		}
	}
	if text, ok := e.at.str(); ok {
		changed := &node{}
		changed.setString(string(flipByte(e.random, []byte(text))))
		return changed
	}
	return nil
}

func (e *edit) exchange() bool {
	if e.donor == nil {
		return false
	}
	found := e.donor.at(e.path)
	if found == nil || bytes.Equal(found.text(), e.at.text()) {
		return false
	}
	e.at.become(found)
	return true
}

func (e *edit) drop() bool {
	parent, i := e.root.parent(e.path)
	if parent == nil || i < 0 {
		return false
	}
	parent.children = slices.Delete(parent.children, i, i+1)
	return true
}

func (e *edit) empty() bool {
	switch {
	case e.at.opening != 0:
		e.at.children = nil
	case strings.HasPrefix(e.at.scalar, `"`):
		e.at.setString("")
	default:
		e.at.scalar = "0"
	}
	return true
}

func (e *edit) rename(to func(string) string) bool {
	if e.at.name == "" || to(e.at.name) == e.at.name {
		return false
	}
	e.at.name = to(e.at.name)
	return true
}

// beside adds another's value under a name that some readers take for the same.
func (e *edit) beside(to func(string) string) bool {
	extra := e.another()
	parent, i := e.root.parent(e.path)
	if extra == nil || parent == nil || i < 0 || e.at.name == "" || to(e.at.name) == e.at.name {
		return false
	}
	extra.name = to(e.at.name)
	parent.children = slices.Insert(parent.children, i+e.random.IntN(2), extra)
	return true
}

func capital(name string) string {
	if name == "" {
		return ""
	}
	return string(unicode.ToUpper(rune(name[0]))) + name[1:]
}

func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if unicode.IsUpper(c) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

func (e *edit) shuffle() bool {
	if len(e.at.children) < 2 {
		return false
	}
	e.random.Shuffle(len(e.at.children), func(i, j int) {
		e.at.children[i], e.at.children[j] = e.at.children[j], e.at.children[i]
	})
	return true
}

func (e *edit) extend() bool {
	switch e.at.opening {
	case '{':
		e.at.children = append(e.at.children, &node{name: "unheardOf", scalar: `"x"`})
	case '[':
		e.at.children = append(e.at.children, &node{scalar: pick(e.random, []string{"null", "{}", `"x"`})})
	default:
		return false
	}
	return true
}

func (e *edit) lengthen() bool {
	if e.at.opening != '[' {
		return false
	}
	e.at.children = append(e.at.children, &node{opening: '{'})
	return true
}

func (e *edit) number() bool {
	text, isText := e.at.str()
	if !isText {
		text = e.at.scalar
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return false
	}
	text = strconv.FormatInt(pick(e.random, []int64{n + 1, n - 1, 0, -n, n + 1<<32}), 10)
	e.at.scalar = text
	if isText {
		e.at.setString(text)
	}
	return true
}

func (e *edit) quoted() bool {
	if e.at.opening != 0 || e.at.scalar[0] == '"' && !isDigits(e.at.scalar[1:len(e.at.scalar)-1]) {
		return false
	}
	if text, ok := e.at.str(); ok {
		e.at.scalar = text
		return true
	}
	e.at.setString(e.at.scalar)
	return true
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// letters changes the text of a string.
func (e *edit) letters(change func(*rand.Rand, []byte) []byte) bool {
	text, ok := e.at.str()
	if !ok || text == "" {
		return false
	}
	changed := string(change(e.random, []byte(text)))
	e.at.setString(changed)
	return changed != text
}

// bytes changes what a string encodes.
func (e *edit) bytes(change func(*rand.Rand, []byte) []byte) bool {
	content, encoding := e.content()
	if content == nil {
		return false
	}
	changed := change(e.random, slices.Clone(content))
	e.at.setString(encoding.EncodeToString(changed))
	return !bytes.Equal(changed, content)
}

// content decodes a string in base64, of which most strings of letters look like.
func (e *edit) content() ([]byte, *base64.Encoding) {
	text, ok := e.at.str()
	if !ok || len(text) < 16 {
		return nil, nil
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
		if content, err := encoding.DecodeString(text); err == nil {
			return content, encoding
		}
	}
	return nil, nil
}

func (e *edit) encode(as func([]byte) string) bool {
	content, _ := e.content()
	before, _ := e.at.str()
	if content == nil || as(content) == before {
		return false
	}
	e.at.setString(as(content))
	return true
}

func inLines(content []byte) string {
	text := base64.StdEncoding.EncodeToString(content)
	return text[:8] + "\n" + text[8:] + "\n"
}

// looseEnd sets unused bits of the last letter.
func looseEnd(content []byte) string {
	text := []byte(base64.StdEncoding.EncodeToString(content))
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	last := len(strings.TrimRight(string(text), "=")) - 1
	if last < len(text)-1 {
		text[last] = letters[strings.IndexByte(letters, text[last])|1]
	}
	return string(text)
}

// within changes a JSON document that is encoded in a string.
func (e *edit) within() bool {
	content, encoding := e.content()
	inner, err := parse(content)
	if err != nil || inner.opening == 0 {
		return false
	}
	var donor *node
	if e.donor != nil {
		if found := e.donor.at(e.path); found != nil {
			other := &edit{at: found}
			theirs, _ := other.content()
			donor, _ = parse(theirs)
		}
	}
	if applyTree(change{At: e.random.Uint64()}, inner, donor) == "" {
		return false
	}
	e.at.setString(encoding.EncodeToString(inner.text()))
	return true
}

// applyTree makes one change in a document, and returns its name; "" if none was possible.
func applyTree(c change, root, donor *node) string {
	all := treeEdits()
	random := rand.New(rand.NewPCG(c.At, 0))
	names := slices.Sorted(maps.Keys(all))
	for range 50 {
		what, where := c.What, c.Where
		if what == "" {
			what = pick(random, names)
		}
		if where == "" {
			places := root.paths("")
			if len(places) == 0 {
				return ""
			}
			where = pick(random, places)
		}
		at := root.at(where)
		if at == nil || all[what] == nil {
			return ""
		}
		if all[what](&edit{random: random, root: root, path: where, at: at, donor: donor}) {
			return what + " at " + where
		}
	}
	return ""
}
